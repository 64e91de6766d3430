"""Handles of the device interface call their device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import torch

from labkit.device.api import Access, Buffer, Device, Event, Graph, Stream


class Log:
    """A device that writes down what it is asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


def test_verbs_of_handles_are_calls_of_the_device() -> None:
    log = Log()
    device = cast(Device, log)
    stream, event, graph = Stream("s", device), Event("e", device), Graph("g", device)
    event.record(stream)
    stream.wait_event(event)
    stream.synchronize()
    event.synchronize()
    event.query()
    graph.replay(stream)
    assert log.calls == [
        ("record", event, stream),
        ("wait", stream, event),
        ("synchronize", stream),
        ("synchronize", event),
        ("query", event),
        ("replay", graph, stream, None),
    ]


def test_a_span_of_a_buffer() -> None:
    buffer = Buffer("x", "device", torch.zeros(4, dtype=torch.int16))
    assert buffer.nbytes == 8
    assert buffer.span(2, 6) == Access(buffer, 2, 6)
    assert SimpleNamespace(b=buffer) == SimpleNamespace(b=buffer), "buffers are compared by identity"
