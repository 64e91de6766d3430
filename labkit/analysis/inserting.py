"""Put records and waits into a trace, to see what it would be with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from labkit.analysis.accesses import Graphs, Memory, MemoryKey, family, parts_of, touches
from labkit.analysis.conflicts import TOUCHING, ConflictKey, Side
from labkit.analysis.happens_before import HOST
from labkit.trace.events import GraphNode, Span, Touch, Trace


class Inserter:
    """Goes through a trace and yields its spans, with the records and waits of one fix between them.

    A record goes behind every operation with the first access of ``key``, with one event per buffer; a wait goes before
    the next operation of the second stream that conflicts with it. With ``recorded`` there are only waits, for the
    first event of family ``event`` that is recorded behind the operation.
    """

    def __init__(self, trace: Trace, key: ConflictKey, buffer: str, event: str, recorded: bool) -> None:
        self.key, self.buffer, self.event, self.recorded = key, buffer, event, recorded
        self.before: dict[str, None] = {}  # the operations that a wait was put in front of
        self._trace, self._memory, self._graphs = trace, Memory(trace), Graphs(trace)
        self._id = max((span.id for span in trace.spans), default=0)
        self._due: dict[MemoryKey, int] = {}  # memory with a first access that nobody waited for, and its position
        self._latest: dict[str, tuple[int, Span]] = {}  # event -> its latest record, with its position
        self._events: dict[MemoryKey, str] = {}

    def __iter__(self) -> Iterator[Span]:
        for position, span in enumerate(self._trace.spans):
            if span.kind == "record":
                self._latest[span.event] = (position, span)
            if span.kind not in TOUCHING:
                yield span
                continue
            yield from self._waits(span)
            yield span
            yield from self._record(span, position)

    def _waits(self, span: Span) -> Iterator[Span]:
        for key in self._seconds(span) if self._due else ():
            event = self._event_for(key)
            if event:
                del self._due[key]
                self.before[_place(span)] = None
                kind = "synchronize" if self.key.second.by_host else "wait"
                yield self._call(kind, event, self._latest[event][1].record)

    def _record(self, span: Span, position: int) -> Iterator[Span]:
        for key, touch in self._firsts(span).items():
            self._due[key] = position
            if not self.recorded:
                event = self._events.setdefault(key, self._new_event(touch))
                number = self._latest[event][1].record + 1 if event in self._latest else 1
                self._latest[event] = (position + 1, self._call("record", event, number))
                yield self._latest[event][1]

    def _firsts(self, span: Span) -> dict[MemoryKey, Touch]:
        """The memory on which a span makes the first access of the key."""
        found: dict[MemoryKey, Touch] = {}
        for part in parts_of(span, self._graphs):
            for touch, write in touches(part):
                side = Side(family(part.name), HOST if part.by_host else span.stream, write)
                if side == self.key.first and family(touch.buffer) == self.buffer:
                    found[self._memory.locate(touch)[0]] = touch
        return found

    def _seconds(self, span: Span) -> list[MemoryKey]:
        """The memory with a due access that a span of the second stream conflicts with."""
        found: dict[MemoryKey, None] = {}
        for part in parts_of(span, self._graphs):
            if (HOST if part.by_host else span.stream) == self.key.second.stream:
                for touch, write in touches(part):
                    if write or self.key.first.write:
                        found[self._memory.locate(touch)[0]] = None
        return [key for key in found if key in self._due]

    def _event_for(self, key: MemoryKey) -> str:
        """The event to wait for; empty if there is none."""
        if not self.recorded:
            return self._events[key]
        behind = [
            (position, name)
            for name, (position, record) in self._latest.items()
            if position > self._due[key] and record.stream == self.key.first.stream and family(name) == self.event
        ]
        return min(behind)[1] if behind else ""

    def _new_event(self, touch: Touch) -> str:
        """``upload_done[A]`` for a buffer named ``inputs_dev[A]``; other memory of that name gets a number."""
        name = self.event + touch.buffer[len(family(touch.buffer)) :]
        taken = list(self._events.values())
        return name if name not in taken else f"{name}#{len(taken)}"

    def _call(self, kind: str, event: str, record: int) -> Span:
        self._id += 1
        stream = {"record": self.key.first.stream, "wait": self.key.second.stream, "synchronize": ""}[kind]
        return Span(self._id, kind, f"{kind} {event}", "CPU", 0, 0, stream=stream, event=event, record=record)


def _place(span: Span) -> str:
    """What a learner sees in the program where the span is submitted."""
    return f"replay of {family(span.name)}" if span.kind == "graph" else family(span.name)


def add_edge(nodes: tuple[GraphNode, ...], first: str, second: str) -> tuple[GraphNode, ...]:
    """The nodes with every later node named ``second`` starting after the nodes named ``first`` before it."""
    firsts = [number for number, node in enumerate(nodes) if family(node.name) == first]
    return tuple(
        replace(node, parents=tuple(dict.fromkeys((*node.parents, *(f for f in firsts if f < number)))))
        if family(node.name) == second
        else node
        for number, node in enumerate(nodes)
    )
