"""PyTorch's CUDA sanitizer on one of our traces: its event handler is fed with what torch would have told it.

It is told of kernel launches and copies with the device tensors they touch, of allocations, events and waits. It is not
told of host memory, of byte ranges, or of what a graph replay does: PyTorch has no hook there.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch

from labkit.trace.events import DEVICE_KINDS, Span, Trace

# Importing the sanitizer turns on torch's tracing of every CUDA call, with a stack trace each: on a real GPU each call
# then takes milliseconds, in every other test of the process too.
with patch.object(torch._C, "_activate_gpu_trace", lambda: None):
    from torch.cuda._sanitizer import EventHandler


class Sanitizer:
    """Feeds a trace to ``EventHandler``; ``errors`` collects what it returns."""

    def __init__(self, trace: Trace) -> None:
        self._handler = EventHandler()
        self._memory = trace.meta.get("memory", {})
        self._owners: dict[int, int] = {}  # address -> allocation that lives there
        self._ids: dict[str, int] = {"default": 0}  # streams and events by name; the default stream is 0
        self.errors: list[Any] = []
        for span in trace.spans:
            self._take(span)

    def _id(self, name: str) -> int:
        return self._ids.setdefault(name, 1000 + len(self._ids))

    def _take(self, span: Span) -> None:
        if span.kind in DEVICE_KINDS:
            self._launch(span)
        elif span.kind == "record":
            self._handler._handle_event_record(self._id(span.event), self._id(span.stream))
        elif span.kind == "wait" and span.record:
            self._handler._handle_event_wait(self._id(span.event), self._id(span.stream))
        elif span.kind == "synchronize":
            self._synchronize(span)

    def _synchronize(self, span: Span) -> None:
        if span.event:
            self._handler._handle_event_synchronization(self._id(span.event))
        elif "," in span.stream or "device" in span.name:
            self._handler._handle_device_synchronization()
        elif span.stream:
            self._handler._handle_stream_synchronization(self._id(span.stream))

    def _launch(self, span: Span) -> None:
        """A span of a replay has no accesses of its own: like torch, this says nothing about it."""
        reads, writes = self._addresses(span.reads), self._addresses(span.writes)
        names = {address: ["tensor"] for address in reads | writes}
        self.errors += self._handler._handle_kernel_launch(
            self._id(span.stream), reads - writes, writes, set(), span.name, names
        )
        if span.blocking:
            self._handler._handle_stream_synchronization(self._id(span.stream))

    def _addresses(self, touches: Any) -> set[int]:
        return {self._address(touch) for touch in touches if touch.place == "device"}

    def _address(self, touch: Any) -> int:
        """Where a tensor lies. A new owner of a block is an allocation; the old one was freed."""
        block, offset = self._memory.get(touch.allocation, (f"own {touch.allocation}", 0))
        address = self._id(f"block {block}") * 2**20 + offset
        if self._owners.get(address) not in (None, touch.allocation):
            self._handler._handle_memory_deallocation(address)
        if self._owners.get(address) != touch.allocation:
            self._handler._handle_memory_allocation(address)
        self._owners[address] = touch.allocation
        return address


def sanitizer_errors(trace: Trace) -> int:
    """How many errors PyTorch's sanitizer reports for a trace."""
    return len(Sanitizer(trace).errors)
