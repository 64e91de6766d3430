"""Why the compute lane was idle: every gap, and what ended it.

The lane is idle where none of its operations runs. What ended the gap is the operation that starts at its end, and the
gap is cut where its causes follow each other:

    gap begins        operation issued       what it waited for ends     operation starts
        |--- waiting for the CPU ---|--- waiting for an event / a copy ---|--- launch latency ---|

The pieces of all gaps sum to the idle time of the lane exactly: integer ns, no rounding, nothing left over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.analysis.intervals import complement, union
from labkit.trace.events import DEVICE_KINDS, Edge, Span, Trace

CPU = "waiting for the CPU"  # the next operation had not been issued yet
EVENT = "waiting for an event"  # it was issued, and its stream waited for an event
COPY = "waiting for a copy"  # it was issued, behind a copy in its own stream
LAUNCH = "launch latency"  # it was issued and free to run: the way from the host to the device
DRAINED = "drained"  # nothing was issued any more

REASONS: tuple[str, ...] = (CPU, EVENT, COPY, LAUNCH, DRAINED)


@dataclass(frozen=True, slots=True)
class Gap:
    """A piece of an idle gap, with one reason.

    detail    in words: the phases the CPU was in, the event and the operation waited for
    ended_by  id of the compute operation that ended the gap, -1 where none followed
    cause     id of the operation waited for, -1 if none
    """

    start_ns: int
    end_ns: int
    reason: str
    detail: str = ""
    ended_by: int = -1
    cause: int = -1
    step: int = -1

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


def idle_gaps(trace: Trace) -> list[Gap]:
    """The idle time of the compute lane between the first span's start and the last span's end, in order.

    The pieces' durations sum to the window minus the union of the lane's operations, exactly.
    """
    compute = [span for span in trace.lane("compute") if span.duration_ns > 0]
    opens: dict[int, Span] = {}
    for span in sorted(compute, key=lambda span: span.id, reverse=True):
        opens[span.start_ns] = span  # of operations that start together, the first issued
    busy = union((span.start_ns, span.end_ns) for span in compute)
    waits, phases = Waits(trace), _Phases(trace)
    gaps: list[Gap] = []
    for start, end in complement(busy, trace.start_ns, trace.end_ns):
        following = opens.get(end)
        if following is None:
            gaps.append(Gap(start, end, DRAINED, "no later operation" if busy else "no operation at all"))
        else:
            gaps += _pieces(start, end, following, waits, phases)
    return gaps


def _pieces(start: int, end: int, following: Span, waits: Waits, phases: _Phases) -> Iterator[Gap]:
    """One gap, cut where the next operation was issued and where what it waited for ended."""
    step = following.step
    issued = min(max(start, following.issued_ns), end)
    if issued > start:
        yield Gap(start, issued, CPU, phases.between(start, issued), following.id, step=step)
    held = waits.last(following)
    free = issued if held is None else min(max(issued, held.before.end_ns), end)
    if held is not None and free > issued:
        reason = EVENT if held.kind == "event" else COPY
        yield Gap(issued, free, reason, str(held), following.id, held.before.id, step)
    if end > free:
        what = "graph launch" if following.kind == "graph" else f"{following.name} on its way to the device"
        yield Gap(free, end, LAUNCH, what, following.id, step=step)


@dataclass(frozen=True, slots=True)
class Wait:
    """``before`` had to end first. ``kind``: event, host, issue, graph as on an Edge, or stream (FIFO)."""

    before: Span
    kind: str
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.before.kind} {self.before.name!r}"
        if self.kind == "event":
            return f"event {self.name or self.before.event}, after {what}"
        return f"{what}, before it in stream {self.before.stream}" if self.kind == "stream" else what


class Waits:
    """What each span waited for, with event edges led back to device operations.

    An edge may name the host calls ``record`` and ``wait``: what really waits is the next operation of the waiting
    stream, and what is waited for is the last operation of the recording stream at that call (semantics 15 and 20).
    """

    def __init__(self, trace: Trace) -> None:
        self._spans = {span.id: span for span in trace.spans}
        self._streams: dict[str, list[int]] = {}
        for span in sorted(trace.spans, key=lambda span: span.id):
            if span.kind in DEVICE_KINDS:
                self._streams.setdefault(span.stream, []).append(span.id)
        self._incoming: dict[int, list[Wait]] = {}
        for edge in trace.edges:
            self._add(edge)

    def of(self, span: Span) -> tuple[Wait, ...]:
        """What had to end before ``span``, edges only, in the trace's order."""
        return tuple(self._incoming.get(span.id, ()))

    def last(self, span: Span) -> Wait | None:
        """Of the events, graph nodes and the stream's operation before it, the one that ended last."""
        held = [wait for wait in self.of(span) if wait.kind in ("event", "graph")]
        earlier = self._operation(span.stream, span.id, -1)
        if earlier is not None:
            held.append(Wait(earlier, "stream"))
        return max(held, key=lambda wait: wait.before.end_ns, default=None)

    def _add(self, edge: Edge) -> None:
        before, after = self._spans.get(edge.before), self._spans.get(edge.after)
        if before is not None and before.kind == "record":
            before = self._operation(before.stream, before.id, -1)
        if after is not None and after.kind == "wait":
            after = self._operation(after.stream, after.id, 0)
        if before is not None and after is not None:
            self._incoming.setdefault(after.id, []).append(Wait(before, edge.kind, edge.name))

    def _operation(self, stream: str, number: int, offset: int) -> Span | None:
        """The stream's last operation before id ``number`` (offset -1), or its next after (offset 0)."""
        ids = self._streams.get(stream, [])
        place = (bisect_right(ids, number - 1) - 1) if offset else bisect_right(ids, number)
        return self._spans[ids[place]] if 0 <= place < len(ids) else None


class _Phases:
    """Which phases the CPU was in."""

    def __init__(self, trace: Trace) -> None:
        self._spans = sorted(trace.of_kind("phase"), key=lambda span: span.start_ns)
        self._starts = [span.start_ns for span in self._spans]

    def between(self, start: int, end: int) -> str:
        """The names of the phases that touch ``[start, end)``, in order; host phases do not overlap each other."""
        names: list[str] = []
        for span in self._spans[max(0, bisect_right(self._starts, start) - 1) : bisect_right(self._starts, end - 1)]:
            if span.end_ns > start and span.name not in names:
                names.append(span.name)
        return f"the CPU was in {', '.join(names)}" if names else "the CPU was outside the six phases"
