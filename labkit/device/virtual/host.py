"""The host's half of the virtual GPU: waiting, asking, touching memory, and passing time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from labkit.device.api import Buffer, Event, Stream
from labkit.device.virtual import memory
from labkit.device.virtual.capture import Capturing
from labkit.device.virtual.events import VirtualEvent
from labkit.device.virtual.queue import Item
from labkit.errors import DeviceError, InvalidArgument, Livelock

_FREE_QUERIES = 10_000  # identical answers at one virtual instant before a poll counts as a livelock


class HostSide(Capturing):
    """The calls of the host that enqueue nothing."""

    def synchronize(self, target: Stream | Event | None = None) -> None:
        """The host waits: for an event's latest record, for a stream, or for every GPU.

        Raises:
            CaptureError: forbidden by a capture, which it invalidates (code 900; an event of the capture: 907), or the
                event's latest record was inside a capture (code 1).
            The payload's own exception, if one failed.
        """
        if isinstance(target, Event):
            self._synchronize_event(target)
        elif isinstance(target, Stream):
            self._check_host_call(f"a host wait for {target.name}", stream=target)
            self._wait_for_streams(self.streams.with_peers(target))
        else:
            self._check_host_call("a host wait for the device", every_stream=True)
            self._wait_for_streams(self.streams.all)

    def _synchronize_event(self, event: Event) -> None:
        self._check_host_call(f"a host wait for {event.name}", event=event)
        handle: VirtualEvent = event.handle
        if handle.record is not None:
            asleep = handle.blocking and not self.reached(handle.record)
            self._wait_for(
                handle.record, self.profile.sync_blocking_return_ns if asleep else self.profile.sync_return_ns
            )
        self._raise_fault()

    def query(self, target: Event | Stream) -> bool:
        """Whether the event's latest record has been reached, or the stream is empty.

        Raises:
            CaptureError: as for ``synchronize``.
            Livelock: polled without end in a profile where a query costs nothing.
        """
        if isinstance(target, Event):
            self._check_host_call(f"a query of {target.name}", event=target)
            item: Item | None = target.handle.record
        else:
            self._check_host_call(f"a query of {target.name}", stream=target)
            item = target.handle.tail
        self._now += self.profile.query_ns
        self.queue.advance(self._now, inclusive=True)
        self._raise_fault()
        reached = item is None or item.done
        self._free_queries = 0 if reached or self.profile.query_ns else self._free_queries + 1
        if self._free_queries >= _FREE_QUERIES:
            raise Livelock(
                f"{target.name} was queried {_FREE_QUERIES} times at {self._now} ns: a query costs no time here"
            )
        return reached

    def elapsed_ns(self, start: Event, end: Event) -> int:
        """Time between two recorded events (semantics, 24). It does not wait.

        Raises:
            InvalidArgument: an event without timing, or never recorded.
            DeviceError: one is not reached yet.
        """
        for event in (start, end):
            handle: VirtualEvent = event.handle
            if not handle.timing:
                raise InvalidArgument("event", event.name, "both events must be made with enable_timing=True")
            if handle.record is None:
                raise InvalidArgument(
                    "event", event.name, "both events must be recorded before their times are compared"
                )
        if not (self.reached(start.handle.record) and self.reached(end.handle.record)):
            raise DeviceError("an event is not reached yet: device not ready (CUDA error 600)")
        return int(end.handle.record.end - start.handle.record.end)

    def host_read(self, buffer: Buffer) -> torch.Tensor:
        """The buffer's contents as the host sees them now."""
        self.queue.advance(self._now, inclusive=True)
        return buffer.tensor

    @contextmanager
    def host_write(self, buffer: Buffer) -> Iterator[torch.Tensor]:
        """The buffer, to be written by the host now."""
        self.queue.advance(self._now, inclusive=True)
        memory.before_write(buffer, 0, buffer.nbytes)
        yield buffer.tensor

    @contextmanager
    def phase(self, name: str, *, step: int, slot: str = "", rows: int = 0, tokens: int = 0) -> Iterator[None]:
        """A phase of the host's work. Its own Python costs what the profile says; the calls in it cost extra."""
        yield
        self._now += self.costs.phase(name, rows, tokens)

    def now_ns(self) -> int:
        """The host's clock."""
        return self._now

    def op_times(self, op: Item) -> tuple[int, int, int]:
        """Start, end and busy time of a launch, copy or replay that is done, ns."""
        if not isinstance(op.extra, dict):
            return op.start, op.end, op.busy
        nodes = op.extra["nodes"] or (op,)  # a replay: from its first node's start to its last node's end
        return min(n.start for n in nodes), max(n.end for n in nodes), sum(n.busy for n in nodes)

    def op_ended(self, op: Item) -> bool:
        """Whether a launch, copy or replay is done now. Asking is free and changes nothing."""
        return op.done

    def sleep_until(self, when_ns: int) -> None:
        """The host does nothing, or something else, until then."""
        self._now = max(self._now, when_ns)

    def reset(self) -> None:
        """Drop all queued work and forget a fault, as after restarting a broken context."""
        self.queue.drop()
        self._fault = None
        for capture in self._captures:
            capture.release()
        self._captures.clear()
        for stream in self.streams.all:
            stream.handle.tail = None

    def close(self) -> None:
        """Drop queued work; the device holds nothing else."""
        self.queue.drop()
