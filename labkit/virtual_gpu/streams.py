"""Streams and events under torch.cuda's names. What orders what is ``docs/semantics.md``, 1.2 and 1.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.device import api
from labkit.errors import InvalidArgument

if TYPE_CHECKING:
    from labkit.virtual_gpu.gpu import VirtualGPU


class Stream:
    """A handle of a stream: two handles of the same stream are equal. Made by ``VirtualGPU.Stream``."""

    def __init__(self, gpu: VirtualGPU, inner: api.Stream) -> None:
        self.gpu, self.inner = gpu, inner

    @property
    def name(self) -> str:
        """The stream's name in traces."""
        return self.inner.name

    @property
    def priority(self) -> int:
        """Lower is more urgent."""
        return int(self.inner.handle.priority)

    @property
    def device(self) -> str:
        """``cuda:0``"""
        return f"cuda:{self.inner.handle.gpu}"

    def wait_event(self, event: Event) -> None:
        """Later work of this stream waits for the event's latest record. The host goes on at once."""
        check_handle(self.gpu, event, Event, "event")
        self.gpu.device.wait(self.inner, event.inner)

    def wait_stream(self, other: Stream) -> None:
        """Later work of this stream waits for what ``other`` holds now: a fresh event, recorded and waited for (21)."""
        check_handle(self.gpu, other, Stream, "stream")
        self.wait_event(other.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given, and return it."""
        event = event or self.gpu.Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """The host waits for this stream alone (35)."""
        self.gpu.device.synchronize(self.inner)

    def query(self) -> bool:
        """Whether all work of this stream is done."""
        return self.gpu.machine.query(self.inner)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.inner is self.inner

    def __hash__(self) -> int:
        return id(self.inner)

    def __repr__(self) -> str:
        return f"<{self.name} on {self.device}>"


class Event:
    """A marker in a stream. Made by ``VirtualGPU.Event``."""

    def __init__(self, gpu: VirtualGPU, inner: api.Event) -> None:
        self.gpu, self.inner = gpu, inner

    @property
    def name(self) -> str:
        """The event's name in traces."""
        return self.inner.name

    def record(self, stream: Stream | None = None) -> None:
        """Mark what the stream (the current one) holds now; an earlier record is forgotten."""
        if stream is not None:
            check_handle(self.gpu, stream, Stream, "stream")
        self.gpu.device.record(self.inner, (stream or self.gpu.current_stream()).inner)

    def wait(self, stream: Stream | None = None) -> None:
        """Later work of the stream (the current one) waits for the latest record. The host goes on at once (20)."""
        (stream or self.gpu.current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether the latest record has been reached; True if there is none."""
        return self.gpu.device.query(self.inner)

    def synchronize(self) -> None:
        """The host waits for the latest record; at once if there is none."""
        self.gpu.device.synchronize(self.inner)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to ``end``. It does not wait (24).

        Raises:
            InvalidArgument: an event without timing, or never recorded. DeviceError: one is not reached yet.
        """
        return self.gpu.machine.elapsed_ns(self.inner, end.inner) / 1e6

    def __repr__(self) -> str:
        return f"<{self.name}>"


def check_handle(gpu: VirtualGPU, handle: object, kind: type[Stream | Event], name: str) -> None:
    """A handle that another machine made has a clock of its own: nothing here could wait for it.

    Raises:
        InvalidArgument: that, or something else than a handle.
    """
    if not isinstance(handle, kind):
        raise InvalidArgument(name, handle, f"what VirtualGPU.{kind.__name__}() returns")
    if handle.gpu is not gpu:
        raise InvalidArgument(name, handle, "made by this VirtualGPU; it is of another, perhaps an earlier one")


class Cudart:
    """The few calls of CUDA's own library that PyTorch leaves to others: ``VirtualGPU.cudart()``.

    Streams made here keep their flag: ``cudaStreamCreate`` makes a blocking one (14).
    """

    cudaStreamNonBlocking = 1

    def __init__(self, gpu: VirtualGPU) -> None:
        self._gpu = gpu

    def cudaStreamCreate(self) -> int:
        """A new blocking stream; returns the handle that ``VirtualGPU.ExternalStream`` takes."""
        return self.cudaStreamCreateWithFlags(0)

    def cudaStreamCreateWithFlags(self, flags: int) -> int:
        """The same; with flag ``cudaStreamNonBlocking`` a non-blocking one."""
        return self._gpu.foreign_stream(blocking=flags != self.cudaStreamNonBlocking)

    def cudaMalloc(self) -> None:
        """Costs host time, waits for nothing (39), and spoils captures according to their mode (59)."""
        self._gpu.machine.unsafe_call("cudaMalloc")
        self._gpu.machine.spend(self._gpu.machine.profile.malloc_ns)
