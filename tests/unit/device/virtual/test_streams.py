"""Who waits for the default stream, per GPU."""

from __future__ import annotations

from labkit.device.api import Work
from labkit.device.virtual import VirtualDevice
from labkit.device.virtual.hardware import Hardware
from labkit.device.virtual.streams import STREAMS_PER_POOL, StreamPool


def test_a_default_stream_is_a_barrier_on_its_own_gpu_only() -> None:
    device = VirtualDevice("zero", hardware=Hardware(gpus=2))
    work = Work("fixed", fixed_ns=1000)
    blocking = device.stream("b", blocking=True, gpu=0)
    device.launch(None, blocking, work=work, label="b")
    mine = device.launch(None, device.default_streams[0], work=work, label="0")
    other = device.launch(None, device.default_streams[1], work=work, label="1")
    device.synchronize()
    assert (mine.start, other.start) == (1000, 0)
    assert [stream.name for stream in device.streams.of_gpu(1)] == ["default:1"]
    assert device.streams.with_peers(device.default_streams[0]) == [device.default_streams[0], blocking]


def test_a_pool_makes_streams_only_as_they_are_asked_for() -> None:
    made: list[str] = []
    device = VirtualDevice("zero")

    def make(name: str, priority: int) -> object:
        made.append(name)
        return device.stream(name, priority=priority)

    pool = StreamPool(make)
    streams = [pool.next(0) for _ in range(STREAMS_PER_POOL + 2)]
    assert len(made) == STREAMS_PER_POOL
    assert streams[-2:] == streams[:2]
    assert pool.next(-1).name == "stream 1 (priority -1)"
