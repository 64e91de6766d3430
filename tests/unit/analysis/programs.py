"""Programs by hand: a builder of traces with invented ids, and an independent account of what orders what.

No time passes in these traces, so that no verdict can come from one.
"""

from __future__ import annotations

from collections.abc import Iterable

from labkit.trace.events import GraphNode, Span, Touch, Trace

STREAMS = {
    "L": {"default": True, "blocking": True},
    "bl": {"default": False, "blocking": True},
    "bl2": {"default": False, "blocking": True},
}  # every other stream is one of PyTorch's: non-blocking


def touch(what: str | Touch, place: str = "device") -> Touch:
    """``x`` is bytes [0, 64) of a buffer, ``x:0:32`` some of them."""
    if isinstance(what, Touch):
        return what
    name, *ends = what.split(":")
    start, stop = (int(ends[0]), int(ends[1])) if ends else (0, 64)
    return Touch(name, start, stop, place)


def touches(text: str | Iterable[Touch], place: str = "device") -> tuple[Touch, ...]:
    return tuple(touch(part, place) for part in (text.split() if isinstance(text, str) else text))


def node(name: str, r: str = "", w: str = "", after: tuple[int, ...] = (), place: str = "device") -> GraphNode:
    """A node of a captured graph."""
    return GraphNode(name, "compute", touches(r, place), touches(w, place), after, "capture.py:1")


class Program:
    """Calls in order of issue. ``r`` and ``w`` name what is read and written."""

    def __init__(self, **meta: object) -> None:
        self.spans: list[Span] = []
        self.meta = {"streams": STREAMS, **meta}
        self.graphs: dict[str, tuple[GraphNode, ...]] = {}
        self._records: dict[str, int] = {}

    def add(self, kind: str, name: str, *, lane: str = "CPU", **more: object) -> Program:
        number = len(self.spans)
        self.spans.append(Span(number, kind, name, lane, 0, 0, source=f"line.py:{number}", **more))  # type: ignore[arg-type]
        return self

    def kernel(self, name: str, stream: str, r: object = "", w: object = "", **more: object) -> Program:
        return self.add("kernel", name, lane="compute", stream=stream, reads=touches(r), writes=touches(w), **more)

    def h2d(self, name: str, stream: str, r: str, w: str, place: str = "pinned", **more: object) -> Program:
        reads = touches(r, place)
        return self.add("copy", name, lane="H2D", stream=stream, reads=reads, writes=touches(w), **more)

    def d2h(self, name: str, stream: str, r: str, w: str, place: str = "pinned", **more: object) -> Program:
        writes = touches(w, place)
        return self.add("copy", name, lane="D2H", stream=stream, reads=touches(r), writes=writes, **more)

    def replay(self, graph: str, stream: str, *nodes: GraphNode, **more: object) -> Program:
        if nodes:
            self.graphs[graph] = nodes
        return self.add("graph", graph, lane="compute", stream=stream, **more)

    def record(self, event: str, stream: str) -> Program:
        self._records[event] = self._records.get(event, 0) + 1
        return self.add("record", f"record {event}", stream=stream, event=event, record=self._records[event])

    def wait(self, stream: str, event: str) -> Program:
        return self.add("wait", f"wait {event}", stream=stream, event=event, record=self._records.get(event, 0))

    def wait_stream(self, stream: str, other: str) -> Program:
        """As ``Stream.wait_stream``: a fresh event, recorded now (21)."""
        event = f"fresh{len(self.spans)}"
        return self.record(event, other).wait(stream, event)

    def query(self, event: str, reached: bool) -> Program:
        return self.add("query", f"query {event}", event=event, record=self._records.get(event, 0) if reached else 0)

    def esync(self, event: str) -> Program:
        return self.add("synchronize", f"host waits for {event}", event=event, record=self._records.get(event, 0))

    def ssync(self, *streams: str) -> Program:
        return self.add("synchronize", "host waits", stream=",".join(streams))

    def read(self, what: str) -> Program:
        return self.add("host_read", f"read {what}", reads=touches(what, "pinned"))

    def write(self, what: str) -> Program:
        return self.add("host_write", f"write {what}", writes=touches(what, "pinned"))

    def phase(self, name: str) -> Program:
        return self.add("phase", name)

    @property
    def trace(self) -> Trace:
        return Trace(tuple(self.spans), (), self.meta, self.graphs)


class Reachability:
    """Happens-before as plain reachability: a point for the start and the end of every call, one for every operation
    and node. Quadratic, and written from the rules alone.
    """

    def __init__(self, trace: Trace) -> None:
        self.before: dict[object, set[object]] = {}  # point -> the points it directly follows
        self.accesses: list[tuple[int, object, Touch, bool]] = []  # position, point, touch, write
        self._trace = trace
        self._tail: dict[str, object] = {}  # stream -> its last operation
        self._replay: dict[str, object] = {}
        self._record: dict[str, object] = {}
        for position, span in enumerate(trace.spans):
            self._call(position, span)

    def races(self) -> set[tuple[int, int]]:
        """Positions of all pairs of conflicting accesses that no path connects."""
        return {
            (early, late)
            for early, point, one, wrote in self.accesses
            for late, other_point, two, writes in self.accesses
            if (early, str(point)) < (late, str(other_point)) and point != other_point and (wrote or writes)
            if one.buffer == two.buffer and one.start < two.stop and two.start < one.stop
            if point not in self._past(other_point) and other_point not in self._past(point)
        }

    def _past(self, point: object) -> set[object]:
        seen: set[object] = set()
        todo = [point]
        while todo:
            for earlier in self.before.get(todo.pop(), ()):
                if earlier not in seen:
                    seen.add(earlier)
                    todo.append(earlier)
        return seen

    def _edge(self, early: object, late: object) -> None:
        if early is not None:
            self.before.setdefault(late, set()).add(early)

    def _call(self, position: int, span: Span) -> None:
        start, end = ("start", position), ("end", position)
        self._edge(("end", position - 1), start)
        self._edge(start, end)
        if span.kind in ("kernel", "copy", "graph", "record", "wait"):
            self._submit(position, span, start, end)
        elif span.event and (span.kind == "synchronize" or span.record):
            self._edge(self._record.get(span.event), end)
        elif span.kind == "synchronize":
            blocking = [name for name, flags in STREAMS.items() if flags["blocking"]]
            for name in {*span.stream.split(","), *(blocking if "L" in span.stream.split(",") else ())}:
                self._edge(self._tail.get(name), end)
        for one, write in ((t, w) for w, side in ((False, span.reads), (True, span.writes)) for t in side):
            if span.kind in ("host_read", "host_write"):
                self.accesses.append((position, start, one, write))

    def _submit(self, position: int, span: Span, start: object, end: object) -> None:
        first, last = ("op", position), ("done", position)
        self._edge(start, first)
        self._edge(first, last)
        self._edge(self._tail.get(span.stream), first)
        flags = STREAMS.get(span.stream, {"default": False, "blocking": False})
        peers = [name for name, f in STREAMS.items() if flags["blocking"] and f["default"] != flags["default"]]
        for peer in peers:
            self._edge(self._tail.get(peer), first)
        if span.kind == "record":
            self._record[span.event] = last
        elif span.kind == "wait":
            self._edge(self._record.get(span.event), first)
        elif span.kind == "graph":
            self._edge(self._replay.get(span.name), first)
            self._replay[span.name] = last
            self._nodes(position, span, first, last)
        pageable = [t for t in span.reads if t.place == "pageable" and span.lane == "H2D"]
        if span.blocking or any(t.place == "pageable" for t in span.writes):
            self._edge(last, end)
        if span.kind in ("kernel", "copy"):
            self.accesses += [(position, start if t in pageable else first, t, False) for t in span.reads]
            self.accesses += [(position, first, t, True) for t in span.writes]
        self._tail[span.stream] = last

    def _nodes(self, position: int, span: Span, first: object, last: object) -> None:
        for number, part in enumerate(self._trace.graphs[span.name]):
            point = ("node", position, number)
            self._edge(first, point)
            self._edge(point, last)
            for parent in part.parents:
                self._edge(("node", position, parent), point)
            self.accesses += [(position, point, t, False) for t in part.reads]
            self.accesses += [(position, point, t, True) for t in part.writes]
