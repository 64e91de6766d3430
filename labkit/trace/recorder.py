"""Collects what a device did, as cheap tuples while the run is on and as a Trace afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from labkit.trace.events import Edge, GraphNode, Span, Trace


class Recorder:
    """Spans in issue order. A device operation's times are asked for when the trace is taken, not before.

    Edges are kept between operations, not between markers: a wait makes an edge from the last operation before the
    record to the next operation after the wait.
    """

    def __init__(self) -> None:
        self._spans: dict[int, tuple[dict[str, Any], Any]] = {}  # id -> (fields, device op or None)
        self._next_id = 0
        self._edges: list[Edge] = []
        self._last_op: dict[str, int] = {}  # stream -> span id of its last operation
        self._records: dict[str, tuple[int, int]] = {}  # event -> (operation before the record, number of the record)
        self._waits: dict[str, list[tuple[int, str]]] = {}  # stream -> edges to its next operation

    def __len__(self) -> int:
        return len(self._spans)

    def host(self, **fields: Any) -> int:
        """Add a span of the host; returns its id."""
        return self._add(fields, None)

    def operation(self, op: Any, call: int, **fields: Any) -> int:
        """Add a device operation issued by host span ``call``; returns its id."""
        number, stream = self._add(fields, op), fields["stream"]
        self._edges.append(Edge(call, number, "issue"))
        for before, event in self._waits.pop(stream, ()):
            self._edges.append(Edge(before, number, "event", event))
        self._last_op[stream] = number
        return number

    def record(self, event: str, stream: str) -> int:
        """An event was recorded; returns the number of this record, from 1."""
        number = self._records.get(event, (-1, 0))[1] + 1
        self._records[event] = (self._last_op.get(stream, -1), number)
        return number

    def latest(self, event: str) -> int:
        """The number of the event's latest record, 0 if there is none."""
        return self._records.get(event, (-1, 0))[1]

    def wait(self, stream: str, event: str) -> int:
        """A stream waits for an event; returns the record it waits for, 0 if there is none."""
        before, number = self._records.get(event, (-1, 0))
        if before >= 0:
            self._waits.setdefault(stream, []).append((before, event))
        return number

    def host_waited(self, span: int, *, event: str = "", streams: Iterable[str] = ()) -> None:
        """The host waited, in span ``span``, for an event or for streams."""
        before, _ = self._records.get(event, (-1, 0))
        for operation in [before, *(self._last_op.get(stream, -1) for stream in streams)]:
            if operation >= 0:
                self._edges.append(Edge(operation, span, "host", event))

    def streams(self) -> tuple[str, ...]:
        """Streams that have had an operation."""
        return tuple(self._last_op)

    def take(
        self,
        times: Callable[[Any], tuple[int, int, int]],
        meta: dict[str, Any],
        graphs: dict[str, tuple[GraphNode, ...]],
    ) -> Trace:
        """The trace so far; the recorder starts anew, remembering no operation of it."""
        start = min((fields["start_ns"] for fields, op in self._spans.values() if op is None), default=0)
        spans = tuple(_span(number, fields, op, times, start) for number, (fields, op) in self._spans.items())
        trace = Trace(spans, tuple(self._edges), meta, graphs)
        self.__init__()  # type: ignore[misc]
        return trace

    def take_ended(
        self, times: Callable[[Any], tuple[int, int, int]], ended: Callable[[Any], bool]
    ) -> tuple[tuple[Span, ...], tuple[Edge, ...]]:
        """What has ended so far, and the edges so far; operations that have not stay, and ids count on.

        Times are the device's own: nothing is known of where a recording without an end begins.
        """
        over = [number for number, (_, op) in self._spans.items() if op is None or ended(op)]
        spans = tuple(_span(number, *self._spans.pop(number), times, 0) for number in over)
        edges, self._edges = tuple(self._edges), []
        return spans, edges

    def _add(self, fields: dict[str, Any], op: Any) -> int:
        number, self._next_id = self._next_id, self._next_id + 1
        self._spans[number] = (fields, op)
        return number


def _span(
    number: int, fields: dict[str, Any], op: Any, times: Callable[[Any], tuple[int, int, int]], zero: int
) -> Span:
    if op is not None:
        start, end, busy = times(op)
        issued = fields.pop("issued_ns") - zero
        return Span(id=number, start_ns=start - zero, end_ns=end - zero, busy_ns=busy, issued_ns=issued, **fields)
    start, end = fields.pop("start_ns"), fields.pop("end_ns")
    return Span(id=number, start_ns=start - zero, end_ns=end - zero, issued_ns=start - zero, **fields)
