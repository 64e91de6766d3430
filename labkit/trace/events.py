"""What a run leaves behind: one Trace type for the virtual GPU, a recorded GPU and a live one.

A trace holds *spans* (things with a start and an end: host phases, host calls, device operations) and *edges* (what a
span had to wait for). Times are integer ns on one clock, the host's; 0 is the start of the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

LANES: tuple[str, ...] = ("CPU", "H2D", "compute", "D2H")

PHASES: tuple[str, ...] = ("plan", "fill", "upload", "compute", "download", "settle")

# What a span is. Device kinds occupy a device lane; the others are on the CPU lane.
DEVICE_KINDS = frozenset({"kernel", "copy", "graph"})
HOST_WAIT_KINDS = frozenset({"synchronize"})
KINDS = frozenset(
    {"phase", "launch", "record", "wait", "query", "host_read", "host_write", "call"} | DEVICE_KINDS | HOST_WAIT_KINDS
)


@dataclass(frozen=True, slots=True)
class Touch:
    """A byte range of a buffer that a span read or wrote. ``place`` is pageable, pinned or device."""

    buffer: str
    start: int
    stop: int
    place: str
    allocation: int = 0  # distinguishes two buffers of one name, and reuse of an address


@dataclass(frozen=True, slots=True)
class Span:
    """One thing that took time.

    id        position in issue order; a device operation has the id of the call that issued it plus its own
    kind      one of KINDS
    lane      CPU, H2D, compute or D2H
    busy_ns   device time in which a kernel really ran: less than the duration where launches are the bottleneck
    blocking  a copy that the host waited for (pageable, or non_blocking=False), counted as a host wait
    event     name of the event recorded, waited for or synchronised with; ``record`` numbers its records from 1: the
              one made or waited for, 0 where there was none yet or where a query answered False
    """

    id: int
    kind: str
    name: str
    lane: str
    start_ns: int
    end_ns: int
    step: int = -1
    slot: str = ""
    phase: str = ""
    stream: str = ""
    issued_ns: int = 0
    busy_ns: int = 0
    bytes: int = 0
    blocking: bool = False
    event: str = ""
    record: int = 0
    reads: tuple[Touch, ...] = ()
    writes: tuple[Touch, ...] = ()
    source: str = ""  # file:line of the call
    rows: int = 0
    tokens: int = 0

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Edge:
    """``after`` could not start before ``before`` ended. ``kind``: event (record -> wait), host (device -> host
    wait), issue (host call -> device operation), graph (node -> node)."""

    before: int  # span id
    after: int  # span id
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operation of a captured graph. ``parents`` are positions in the graph's tuple of nodes."""

    name: str
    lane: str
    reads: tuple[Touch, ...] = ()
    writes: tuple[Touch, ...] = ()
    parents: tuple[int, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Trace:
    """The spans and edges of a run, in issue order, and where they came from.

    ``graphs`` holds, for each graph that was replayed, its nodes: every span of kind ``graph`` stands for all of them.

    ``meta`` says where the trace comes from (source: virtual, recorded or live; device, model, switches) and what the
    race checker cannot see in the spans:

        streams          {name: {"default": bool, "blocking": bool, "gpu": int}}; a stream not named is neither, and one
                         without a number is of GPU 0
        memory           {allocation: (block, byte offset in it)} for allocations that share memory, in a caching
                         allocator or a graph pool; one not named has memory of its own
        captured_events  names of events that were recorded inside a capture
    """

    spans: tuple[Span, ...]
    edges: tuple[Edge, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    graphs: dict[str, tuple[GraphNode, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.spans)

    def lane(self, name: str) -> Iterator[Span]:
        """Spans drawn on a lane. On the CPU lane these are the phases; calls within them have kind != 'phase'."""
        return (span for span in self.spans if span.lane == name)

    def of_kind(self, *kinds: str) -> Iterator[Span]:
        return (span for span in self.spans if span.kind in kinds)

    def step(self, number: int) -> tuple[Span, ...]:
        """All spans of one step."""
        return tuple(span for span in self.spans if span.step == number)

    @cached_property
    def start_ns(self) -> int:
        return min((span.start_ns for span in self.spans), default=0)

    @cached_property
    def end_ns(self) -> int:
        return max((span.end_ns for span in self.spans), default=0)

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def steps(self) -> int:
        """Number of different steps."""
        return len({span.step for span in self.spans if span.step >= 0})

    def window(self, start_ns: int, end_ns: int) -> Trace:
        """The spans that touch ``[start_ns, end_ns)``, whole, and the edges between them."""
        spans = tuple(s for s in self.spans if s.start_ns < end_ns and s.end_ns > start_ns)
        kept = {span.id for span in spans}
        edges = tuple(e for e in self.edges if e.before in kept and e.after in kept)
        return Trace(spans, edges, self.meta, self.graphs)

    def save(self, path: str) -> None:
        """Write Chrome / Perfetto JSON with flow arrows (see ``trace/export.py``)."""
        from labkit.trace.export import save_chrome

        save_chrome(self, path)

    def __repr__(self) -> str:
        return f"Trace({self.steps} steps, {len(self)} spans, {self.duration_ns / 1e6:.3f} ms)"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """In a notebook a trace is its timeline; without plotly, a line of text."""
        try:
            from labkit.viz.notebook import mimebundle
        except ImportError:
            return {"text/html": self._repr_html_(), "text/plain": repr(self)}
        return mimebundle(self)

    def _repr_html_(self) -> str:
        active = sum(s.duration_ns for s in self.spans if s.lane == "compute") / max(1, self.duration_ns)
        return (
            f"<b>Trace</b>: {self.steps} steps, {len(self)} spans, {self.duration_ns / 1e6:.3f} ms, "
            f"compute lane {active:.1%} occupied. <code>labkit.viz.timeline(trace)</code> draws it."
        )
