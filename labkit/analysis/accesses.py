"""Who touches which bytes: the accesses of a span, those of a graph node by node, and where they lie in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from labkit.analysis.happens_before import HOST, HOST_AGENT
from labkit.trace.events import DEVICE_KINDS, GraphNode, Span, Touch, Trace

MemoryKey = int | str


class Part(NamedTuple):
    """Accesses that one agent makes at one point. ``node`` is the graph node, -1 outside a graph."""

    name: str
    node: int
    by_host: bool
    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    source: str


class Access:
    """One byte range that one agent touched; ``position`` is the span's place in the trace."""

    __slots__ = ("agent", "epoch", "name", "node", "position", "source", "span", "stream", "touch", "write")

    def __init__(
        self, part: Part, span: Span, position: int, agent: int, epoch: int, touch: Touch, write: bool
    ) -> None:
        self.name, self.node, self.source = part.name, part.node, part.source
        self.span, self.position, self.agent, self.epoch = span, position, agent, epoch
        self.stream = HOST if agent == HOST_AGENT else span.stream
        self.touch, self.write = touch, write


class Graphs:
    """The graphs of a trace: their nodes as parts, and which node comes before which."""

    def __init__(self, trace: Trace) -> None:
        self._nodes = trace.graphs
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._ancestors: dict[str, tuple[int, ...]] = {}

    def parts(self, graph: str) -> tuple[Part, ...]:
        """The nodes of a graph in captured order; none for a graph that the trace does not know."""
        if graph not in self._parts:
            self._parts[graph] = tuple(
                Part(node.name, number, False, node.reads, node.writes, node.source)
                for number, node in enumerate(self._nodes.get(graph, ()))
            )
        return self._parts[graph]

    def ancestors(self, graph: str) -> tuple[int, ...]:
        """For each node the set of nodes it starts after, as the bits of an integer."""
        if graph not in self._ancestors:
            self._ancestors[graph] = _ancestors(self._nodes.get(graph, ()))
        return self._ancestors[graph]


def _ancestors(nodes: tuple[GraphNode, ...]) -> tuple[int, ...]:
    found: list[int] = []
    for node in nodes:
        found.append(0)
        for parent in node.parents:
            found[-1] |= found[parent] | 1 << parent
    return tuple(found)


def parts_of(span: Span, graphs: Graphs) -> tuple[Part, ...]:
    """The accesses of a span, in an order that agrees with happens-before.

    A pageable upload that does not block still takes its source while the call runs, so that part is the host's (29).
    """
    if span.kind == "graph":
        return graphs.parts(span.name)
    if span.kind not in DEVICE_KINDS:
        return (Part(span.name, -1, True, span.reads, span.writes, span.source),)
    if span.lane == "H2D" and any(touch.place == "pageable" for touch in span.reads):
        staging = Part(span.name, -1, True, span.reads, (), span.source)
        return staging, Part(span.name, -1, False, (), span.writes, span.source)
    return (Part(span.name, -1, False, span.reads, span.writes, span.source),)


def touches(part: Part) -> Iterator[tuple[Touch, bool]]:
    """The touches of a part and whether each is a write; reads first."""
    for touch in part.reads:
        yield touch, False
    for touch in part.writes:
        yield touch, True


class Memory:
    """Where a touch lies: allocations that share a block (``trace.meta["memory"]``) share their bytes."""

    def __init__(self, trace: Trace) -> None:
        memory = trace.meta.get("memory", {})
        self._blocks = {number: (f"block {block}", offset) for number, (block, offset) in memory.items()}

    def locate(self, touch: Touch) -> tuple[MemoryKey, int, int]:
        """Key of the memory, first byte, last byte + 1."""
        place = self._blocks.get(touch.allocation) if self._blocks else None
        if place is None:
            return touch.allocation or touch.buffer, touch.start, touch.stop
        block, offset = place
        return block, touch.start + offset, touch.stop + offset


@lru_cache(maxsize=4096)
def family(name: str) -> str:
    """``h2d_done[A]`` and ``h2d_done[B]`` are one family, ``h2d_done``."""
    return name.split("[", 1)[0]
