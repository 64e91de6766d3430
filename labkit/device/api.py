"""What the engine asks of a GPU, and the ordering rules that every device keeps.

The rules, in the words of ``docs/semantics.md`` (numbers are that document's):

    1   a launch returns before the work is done
    2   one stream is FIFO
    3   different streams may overlap, and only an event, a host wait or a graph edge orders them (4)
    8   a stream made here does not synchronise with the default stream
    15  ``record`` captures the stream's content at the call; 17 ``wait_event`` uses the latest record
    20  ``wait_event`` never blocks the host and touches only later work
    26  a non-blocking copy of pinned memory returns at once; 28 a blocking one waits for its own stream
    32  overwriting a pinned source before its copy is done corrupts the copy
    55  a graph freezes addresses and host scalars, not the contents of memory

The host is an actor: it touches a buffer that a stream also uses only through ``host_read`` and ``host_write``, and
every launch and copy declares what it reads and writes, so that a missing wait can be seen and named.

A handle (Stream, Event) remembers its device; the verbs on handles are torch.cuda's own names. Times are integer ns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch

Place = Literal["pageable", "pinned", "device"]


@dataclass(eq=False, slots=True)
class Buffer:
    """A named allocation: its tensor and the place it lives in."""

    name: str
    place: Place
    tensor: torch.Tensor
    extra: Any = None  # the device's own bookkeeping

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.element_size()

    def span(self, start: int, stop: int) -> Access:
        """The bytes ``[start, stop)`` of this buffer, for a declaration."""
        return Access(self, start, stop)


@dataclass(frozen=True, slots=True)
class Access:
    """A declared access to a byte range of a buffer."""

    buffer: Buffer
    start: int  # bytes
    stop: int  # bytes


Accesses = Sequence[Buffer | Access]


@dataclass(frozen=True, slots=True)
class Work:
    """What a launch does, for pricing it: ``kind`` names an entry of the cost profile, or ``fixed`` with its own ns."""

    kind: str
    rows: int = 0
    tokens: int = 0
    context: int = 0  # summed over the rows
    fixed_ns: int = 0
    fraction: float = 1.0  # of the GPU that the kernel fills; two kernels overlap where the sum is at most 1


@dataclass(eq=False, slots=True)
class Stream:
    """A queue of device work, in order."""

    name: str
    device: Device
    handle: Any = None
    is_default: bool = False

    def wait_event(self, event: Event) -> None:
        """Later work of this stream waits for the event's latest record. The host goes on at once."""
        self.device.wait(self, event)

    def synchronize(self) -> None:
        """The host waits for all work of this stream."""
        self.device.synchronize(self)


@dataclass(eq=False, slots=True)
class Event:
    """A marker in a stream."""

    name: str
    device: Device
    handle: Any = None

    def record(self, stream: Stream) -> None:
        """Mark the stream's content as it is now; an earlier record is forgotten."""
        self.device.record(self, stream)

    def synchronize(self) -> None:
        """The host waits for the latest record; returns at once if there is none."""
        self.device.synchronize(self)

    def query(self) -> bool:
        """Whether the latest record has been reached (True if there is none)."""
        return self.device.query(self)


@dataclass(eq=False, slots=True)
class Graph:
    """A captured sequence of launches: addresses and host scalars are frozen, memory contents are not."""

    name: str
    device: Device
    handle: Any = None
    extra: dict[str, Any] = field(default_factory=dict)

    def replay(self, stream: Stream, work: Work | None = None) -> None:
        """Enqueue the whole graph as one item of ``stream``. ``work`` prices it for this batch (virtual GPU only)."""
        self.device.replay(self, stream, work)


class Device(Protocol):
    """A GPU and the host that drives it."""

    name: str
    default_stream: Stream
    warm_up_before_capture: bool  # whether a launch must have run once, uncaptured, before it can be captured

    # resources
    def buffer(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, place: Place, fill: float | None = None
    ) -> Buffer: ...
    def free(self, buffer: Buffer) -> None: ...
    def stream(self, name: str, *, priority: int = 0) -> Stream: ...
    def event(self, name: str) -> Event: ...

    # enqueue: each returns before the work is done
    def copy(self, dst: Buffer, src: Buffer, stream: Stream, *, non_blocking: bool, label: str) -> Any: ...
    def launch(
        self, fn: Callable[[], None], stream: Stream, *, reads: Accesses, writes: Accesses, work: Work, label: str
    ) -> Any: ...
    def capture(self, name: str, stream: Stream, pool: Any = None) -> AbstractContextManager[Graph]: ...
    def replay(self, graph: Graph, stream: Stream, work: Work | None = None) -> Any: ...
    def graph_pool(self) -> Any: ...
    def record(self, event: Event, stream: Stream) -> None: ...
    def wait(self, stream: Stream, event: Event) -> None: ...

    # the host
    def synchronize(self, target: Stream | Event | None = None) -> None: ...
    def query(self, event: Event) -> bool: ...
    def host_read(self, buffer: Buffer) -> torch.Tensor: ...
    def host_write(self, buffer: Buffer) -> AbstractContextManager[torch.Tensor]: ...
    def phase(
        self, name: str, *, step: int, slot: str = "", rows: int = 0, tokens: int = 0
    ) -> AbstractContextManager[None]: ...
    def now_ns(self) -> int: ...
    def op_times(self, op: Any) -> tuple[int, int, int]: ...  # start, end, busy ns of an enqueued op that is done
    def op_ended(self, op: Any) -> bool: ...  # whether an enqueued op is done, as far as the host knows; no waiting
    def sleep_until(self, when_ns: int) -> None: ...
    def reset(self) -> None: ...
    def close(self) -> None: ...
