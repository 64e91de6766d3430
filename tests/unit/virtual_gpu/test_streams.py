"""Handles of streams and events."""

from __future__ import annotations

import pytest

import labkit
from labkit.errors import InvalidArgument


def test_two_handles_of_one_stream_are_equal() -> None:
    gpu = labkit.VirtualGPU()
    streams = [gpu.Stream() for _ in range(33)]
    assert streams[0] == streams[32]
    assert hash(streams[0]) == hash(streams[32])
    assert streams[0] != streams[1]
    assert streams[0] != "stream 1"


def test_a_stream_says_what_it_is() -> None:
    gpu = labkit.VirtualGPU()
    s = gpu.Stream(priority=-1)
    assert (s.priority, s.device, s.name) == (-1, "cuda:0", "stream 1 (priority -1)")
    assert gpu.Stream(priority=-99).priority == -3
    assert gpu.Stream(priority=5).priority == 0
    assert repr(gpu.default_stream()) == "<default on cuda:0>"


def test_record_event_and_wait_use_the_current_stream() -> None:
    gpu = labkit.VirtualGPU("zero")
    s, t = gpu.Stream(), gpu.Stream()
    with gpu.stream(s):
        gpu.kernel("a", 30, fraction=0.3)
        event = s.record_event()
    with gpu.stream(t):
        event.wait()
        gpu.kernel("b", 10, fraction=0.3)
    gpu.synchronize()
    spans = {span.name: span for span in gpu.trace().of_kind("kernel")}
    assert spans["b"].start_ns == spans["a"].end_ns == 30_000


def test_a_stream_can_be_asked() -> None:
    gpu = labkit.VirtualGPU()
    s = gpu.Stream()
    assert s.query()
    gpu.kernel("a", 30, stream=s)
    assert not s.query()
    s.synchronize()
    assert s.query()


def test_handles_of_cuda_itself() -> None:
    gpu = labkit.VirtualGPU()
    assert gpu.ExternalStream(1) == gpu.default_stream()
    assert gpu.ExternalStream(2) == gpu.ExternalStream(2) != gpu.default_stream()
    handle = gpu.cudart().cudaStreamCreate()
    assert gpu.ExternalStream(handle) == gpu.ExternalStream(handle)
    assert gpu.ExternalStream(handle).name == "blocking stream 1"


def test_handles_of_another_machine_are_refused() -> None:
    gpu, earlier = labkit.VirtualGPU(), labkit.VirtualGPU()
    s, old_stream, old_event = gpu.Stream(), earlier.Stream(), earlier.Event()
    old_event.record(old_stream)
    for call in (
        lambda: s.wait_event(old_event),
        lambda: s.wait_stream(old_stream),
        lambda: s.record_event(old_event),
        lambda: gpu.Event().record(old_stream),
        lambda: gpu.stream(old_stream).__enter__(),
        lambda: gpu.kernel("k", 1, stream=old_stream),
    ):
        with pytest.raises(InvalidArgument, match="of another, perhaps an earlier one"):
            call()
    for call in (lambda: s.wait_event(None), lambda: s.wait_stream(3), lambda: gpu.stream(0).__enter__()):
        with pytest.raises(InvalidArgument, match="returns"):
            call()
