"""Every pair of conflicting, unordered accesses of a trace, grouped: the same two operations, the same buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.analysis.accesses import Access, Graphs, Memory, Part, family, parts_of, touches
from labkit.analysis.happens_before import HOST, HOST_AGENT, Clock, HappensBefore
from labkit.analysis.shadow import Shadow
from labkit.trace.events import DEVICE_KINDS, Span, Trace

READ_AFTER_WRITE = "read after write"
WRITE_AFTER_READ = "write after read"
WRITE_AFTER_WRITE = "write after write"

TOUCHING = DEVICE_KINDS | {"host_read", "host_write"}
_HOST_ORDER = frozenset({"record", "wait", "query", "synchronize"})


@dataclass(frozen=True, slots=True)
class Side:
    """What one side of a conflict has in common over all steps. ``stream`` is ``host`` for the host."""

    operation: str
    stream: str
    write: bool

    @property
    def by_host(self) -> bool:
        return self.stream == HOST


@dataclass(frozen=True, slots=True)
class ConflictKey:
    """The same conflict in every step. ``buffer`` is a family: ``inputs_dev`` for ``inputs_dev[A]``."""

    first: Side
    second: Side
    buffer: str

    @property
    def kind(self) -> str:
        if not self.second.write:
            return READ_AFTER_WRITE
        return WRITE_AFTER_WRITE if self.first.write else WRITE_AFTER_READ


@dataclass(slots=True)
class Conflict:
    """The first pair of a kind, in issue order, and how many there are."""

    key: ConflictKey
    first: Access
    second: Access
    count: int = 1


def side_of(access: Access) -> Side:
    """The side that an access belongs to."""
    return Side(family(access.name), access.stream, access.write)


def find_conflicts(trace: Trace) -> list[Conflict]:
    """All races in groups, in the order in which the second access of their first pair was issued."""
    found: dict[ConflictKey, Conflict] = {}
    for first, second in racing_pairs(trace):
        key = ConflictKey(side_of(first), side_of(second), family(second.touch.buffer))
        if key in found:
            found[key].count += 1
        else:
            found[key] = Conflict(key, first, second)
    return list(found.values())


def racing_pairs(trace: Trace) -> Iterator[tuple[Access, Access]]:
    """Each access that nothing orders after an earlier one, with the latest such of each other agent.

    Linear in the number of spans; host phases and launches count for nothing.
    """
    walk = _Walk(trace)
    for position, span in enumerate(trace.spans):
        if span.kind in _HOST_ORDER:
            walk.order.call(span)
        elif span.kind in TOUCHING:
            yield from walk.visit(position, span)


class _Walk:
    def __init__(self, trace: Trace) -> None:
        self.order, self.memory, self.graphs = HappensBefore(trace), Memory(trace), Graphs(trace)
        self.shadow = Shadow()

    def visit(self, position: int, span: Span) -> Iterator[tuple[Access, Access]]:
        """The host's part comes first: it happens during the call, the device's after it."""
        parts = parts_of(span, self.graphs)
        for part in parts:
            if part.by_host:
                yield from self._touch(part, span, position, HOST_AGENT, self.order.host_access(), self.order.host)
        if span.kind not in DEVICE_KINDS:
            return
        agent, clock = self.order.operation(span)
        ancestors = self.graphs.ancestors(span.name) if span.kind == "graph" else ()
        for part in parts:
            if not part.by_host:
                before = ancestors[part.node] if ancestors else 0
                yield from self._touch(part, span, position, agent, clock[agent], clock, before)
        self.order.after_operation(span)

    def _touch(
        self, part: Part, span: Span, position: int, agent: int, epoch: int, clock: Clock, ancestors: int = 0
    ) -> Iterator[tuple[Access, Access]]:
        for touch, write in touches(part):
            access = Access(part, span, position, agent, epoch, touch, write)
            for old in self.shadow.visit(access, *self.memory.locate(touch), clock, ancestors):
                yield old, access
