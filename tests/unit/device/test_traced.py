"""The recording device: what each call leaves."""

from __future__ import annotations

import torch

from labkit.device.api import Work
from labkit.device.traced import TracedDevice
from labkit.device.virtual import VirtualDevice
from labkit.device.virtual.hardware import Hardware

WORK = Work("fixed", fixed_ns=1000)


def test_a_call_leaves_a_span_and_its_edges() -> None:
    device = TracedDevice(VirtualDevice("toy-u"))
    s, t, e = device.stream("s"), device.stream("t"), device.event("e")
    x = device.buffer("x", (4,), torch.int32, "device")
    device.launch(lambda: None, s, reads=(), writes=(x,), work=WORK, label="a")
    e.record(s)
    t.wait_event(e)
    device.launch(lambda: None, t, reads=(x.span(0, 8),), writes=(), work=WORK, label="b")
    trace = device.take()
    kinds = [span.kind for span in trace.spans]
    assert kinds == ["launch", "kernel", "record", "wait", "launch", "kernel"]
    a, b = trace.of_kind("kernel")
    assert [(touch.buffer, touch.start, touch.stop) for touch in (*a.writes, *b.reads)] == [("x", 0, 16), ("x", 0, 8)]
    assert {(edge.before, edge.after, edge.kind) for edge in trace.edges} >= {(a.id, b.id, "event")}
    assert {span.source.split(":")[0] for span in trace.spans} == {"test_traced.py"}


def test_the_streams_of_every_gpu_are_in_the_meta_data() -> None:
    device = TracedDevice(VirtualDevice("zero", hardware=Hardware(gpus=2)))
    device.stream("b", blocking=True, gpu=1)
    streams = device.take().meta["streams"]
    assert streams["default"] == {"default": True, "blocking": True}
    assert streams["default:1"] == {"default": True, "blocking": True, "gpu": 1}
    assert streams["b"] == {"default": False, "blocking": True, "gpu": 1}


def test_buffers_of_one_block_share_memory() -> None:
    device = TracedDevice(VirtualDevice("zero"))
    s = device.stream("s")
    first = device.buffer("first", (4,), torch.int32, "device", stream=s)
    device.free(first)
    device.buffer("second", (4,), torch.int32, "device", stream=s)
    device.buffer("own", (4,), torch.int32, "device")
    assert device.take().meta["memory"] == {1: (1, 0), 2: (1, 0)}


def test_a_part_of_a_buffer_is_an_access_to_its_bytes() -> None:
    device = TracedDevice(VirtualDevice("zero"))
    x = device.buffer("x", (4,), torch.int32, "pinned", fill=0)
    with device.part(x, x.tensor[2:], 8, 16) as part, device.host_write(part) as data:
        data.fill_(5)
    assert x.tensor.tolist() == [0, 0, 5, 5]
    (write,) = device.take().of_kind("host_write")
    assert [(touch.start, touch.stop, touch.allocation) for touch in write.writes] == [(8, 16, 1)]


def test_a_capture_that_does_not_wait_leaves_no_wait() -> None:
    for synchronize, waits in ((True, 1), (False, 0)):
        device = TracedDevice(VirtualDevice("zero"))
        with device.capture("g", device.stream("s"), synchronize=synchronize):
            pass
        assert len(list(device.take().of_kind("synchronize"))) == waits
