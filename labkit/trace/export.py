"""A Trace as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open, and back again without loss.

The format is the Trace Event Format (JSON object form). What is kept of it, and why:

    X events  one per span; ``ts`` and ``dur`` in microseconds, with ns as fraction. The exact integer ns and all
              other fields are in ``args``, fields at their default left out
    threads   CPU phases, CPU calls, H2D, compute, D2H, in this order. X events of one thread must nest, so operations
              of several streams that overlap on a lane go to further threads of the same name
    s and f   one pair per edge, the same ``id``, ``cat`` and ``name`` in both. An arrow binds to the slice that is
              open on the thread at its ``ts`` ("bp": "e" for the end), so ``s`` lies 1 ns before the end of its
              slice and ``f`` on the start of its own, or within it: a host wait begins before what it waits for ends
    labkit    a top-level key, metadata to the viewers: version, meta, edges, the nodes of the graphs

``args`` hold what a reader filters by: step, slot, stream, bytes, event, reads, writes, source.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from labkit.errors import InvalidArgument
from labkit.trace.events import KINDS, LANES, Edge, GraphNode, Span, Touch, Trace

VERSION = 1
_THREADS: tuple[str, ...] = ("CPU phases", "CPU calls", "H2D", "compute", "D2H")
_PROCESS = 1
_FIELDS = fields(Span)
_REQUIRED = {f.name for f in _FIELDS if f.default is MISSING}


def to_chrome(trace: Trace) -> dict[str, Any]:
    """The trace as a dict for ``json.dump``; the same trace always gives the same dict.

    Raises:
        InvalidArgument: ``trace.meta`` holds something other than None, bool, int, float, str, tuple, list and dict.
    """
    threads = _assign_threads(trace.spans)
    slices = [_slice(span, threads[place], place) for place, span in enumerate(trace.spans)]
    names = _thread_names(set(threads))
    events = sorted(slices + _flows(trace, threads), key=_event_order)
    kept = {
        "version": VERSION,
        "meta": _plain(trace.meta),
        "edges": [[edge.before, edge.after, edge.kind, edge.name] for edge in trace.edges],
        "graphs": {name: [_node(node) for node in nodes] for name, nodes in trace.graphs.items()},
    }
    return {"traceEvents": names + events, "displayTimeUnit": "ns", "labkit": kept}


def save_chrome(trace: Trace, path: str | Path) -> None:
    """Write the trace as Chrome / Perfetto JSON, compressed if ``path`` ends with ``.gz``.

    Raises:
        InvalidArgument: as ``to_chrome``.
        OSError: the file cannot be written.
    """
    text = json.dumps(to_chrome(trace), separators=(",", ":"), allow_nan=False).encode()
    path = Path(path)
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def load_chrome(path: str | Path) -> Trace:
    """The trace that ``save_chrome`` wrote, equal in every field.

    Raises:
        InvalidArgument: the file is not a labkit trace, or is damaged.
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        return _from_chrome(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, zlib.error) as error:
        allowed = "a Chrome trace that labkit.trace.save_chrome wrote"
        raise InvalidArgument("path", str(path), f"{allowed} ({type(error).__name__}: {error})") from error


# Writing


def _assign_threads(spans: tuple[Span, ...]) -> list[tuple[int, int]]:
    """(lane thread, overflow number) per span: the first thread of the lane in which the span nests."""
    threads: list[tuple[int, int]] = [(0, 0)] * len(spans)
    open_ends: dict[tuple[int, int], list[int]] = {}
    for place in sorted(range(len(spans)), key=lambda i: (spans[i].start_ns, -spans[i].end_ns, i)):
        span = spans[place]
        thread = (_lane_thread(span), 0)
        while not _nests(open_ends.setdefault(thread, []), span):
            thread = (thread[0], thread[1] + 1)
        open_ends[thread].append(span.end_ns)
        threads[place] = thread
    return threads


def _nests(ends: list[int], span: Span) -> bool:
    """Whether the span lies within the innermost open slice. Closes the slices that ended before it."""
    while ends and ends[-1] <= span.start_ns:
        ends.pop()
    return not ends or span.end_ns <= ends[-1]


def _lane_thread(span: Span) -> int:
    if span.lane == "CPU":
        return 0 if span.kind == "phase" else 1
    return 1 + LANES.index(span.lane)


def _tid(thread: tuple[int, int]) -> int:
    return 1000 * (thread[0] + 1) + thread[1]


def _thread_names(used: set[tuple[int, int]]) -> list[dict[str, Any]]:
    """Metadata events: the process, and each thread's name and place."""
    events = [_metadata("process_name", 0, {"name": "labkit"})]
    for thread in sorted(used | {(number, 0) for number in range(len(_THREADS))}):
        name = _THREADS[thread[0]] + (f" ({thread[1] + 1})" if thread[1] else "")
        events.append(_metadata("thread_name", _tid(thread), {"name": name}))
        events.append(_metadata("thread_sort_index", _tid(thread), {"sort_index": _tid(thread)}))
    return events


def _metadata(name: str, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": _PROCESS, "tid": tid, "args": args}


def _slice(span: Span, thread: tuple[int, int], place: int) -> dict[str, Any]:
    args = {f.name: _field(getattr(span, f.name)) for f in _FIELDS if getattr(span, f.name) != f.default}
    return {
        "ph": "X",
        "name": span.name or span.kind,
        "cat": span.kind,
        "pid": _PROCESS,
        "tid": _tid(thread),
        "ts": span.start_ns / 1000,
        "dur": span.duration_ns / 1000,
        "args": {**args, "order": place},
    }


def _field(value: Any) -> Any:
    """A field of a Span for JSON; only reads and writes are tuples."""
    return [[t.buffer, t.start, t.stop, t.place, t.allocation] for t in value] if isinstance(value, tuple) else value


def _node(node: GraphNode) -> list[Any]:
    return [node.name, node.lane, _field(node.reads), _field(node.writes), list(node.parents), node.source]


def _flows(trace: Trace, threads: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """An arrow per edge between two spans that are in the trace."""
    places = {span.id: place for place, span in enumerate(trace.spans)}
    flows: list[dict[str, Any]] = []
    for number, edge in enumerate(trace.edges):
        if edge.before not in places or edge.after not in places:
            continue
        before, after = places[edge.before], places[edge.after]
        source, target = trace.spans[before], trace.spans[after]
        latest = max(target.start_ns, target.end_ns - 1)  # a host wait began before what it waits for ended
        leaves = max(source.start_ns, min(source.end_ns - 1, latest))
        arrives = min(max(target.start_ns, leaves), latest)
        common = {"name": edge.name or edge.kind, "cat": edge.kind, "id": number, "pid": _PROCESS}
        flows.append({"ph": "s", **common, "tid": _tid(threads[before]), "ts": leaves / 1000})
        flows.append({"ph": "f", "bp": "e", **common, "tid": _tid(threads[after]), "ts": arrives / 1000})
    return flows


def _event_order(event: dict[str, Any]) -> tuple[float, int, int, float, int]:
    """By time; a slice before the arrows that bind to it, the longer slice before the one it contains."""
    rank = {"X": 0, "s": 1, "f": 2}[event["ph"]]
    number = event["args"]["order"] if rank == 0 else event["id"]
    return event["ts"], rank, event["tid"], -event.get("dur", 0.0), number


def _plain(value: Any) -> Any:
    """``meta`` for JSON, which knows no tuples, no keys but strings and no infinities: those carry a tag."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [_plain(item) for item in value]}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _plain(item) for key, item in value.items()}
        return {"$dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    raise InvalidArgument("trace.meta", value, "None, bool, int, float, str, and tuples, lists and dicts of them")


# Reading


def _from_chrome(data: dict[str, Any]) -> Trace:
    kept = data["labkit"]
    if kept["version"] != VERSION:
        raise ValueError(f"version {kept['version']}, this labkit reads {VERSION}")
    slices = [event["args"] for event in data["traceEvents"] if event["ph"] == "X"]
    slices.sort(key=lambda args: args["order"])
    edges = tuple(Edge(*_checked_edge(edge)) for edge in kept["edges"])
    graphs = {name: tuple(_graph_node(*node) for node in nodes) for name, nodes in kept["graphs"].items()}
    return Trace(tuple(_span(args) for args in slices), edges, _original(kept["meta"]), graphs)


def _span(args: dict[str, Any]) -> Span:
    values = {f.name: args[f.name] for f in _FIELDS if f.name in args or f.name in _REQUIRED}
    for name in ("reads", "writes"):
        if name in values:
            values[name] = _touches(values[name])
    span = Span(**values)
    if span.kind not in KINDS or span.lane not in LANES:
        raise ValueError(f"span {span.id}: kind {span.kind!r} on lane {span.lane!r}")
    if not all(isinstance(time, int) for time in (span.id, span.start_ns, span.end_ns)):
        raise TypeError(f"span {span.id}: times are integer ns")
    return span


def _touches(kept: list[list[Any]]) -> tuple[Touch, ...]:
    return tuple(Touch(*touch) for touch in kept)


def _graph_node(name: str, lane: str, reads: Any, writes: Any, parents: list[int], source: str) -> GraphNode:
    return GraphNode(name, lane, _touches(reads), _touches(writes), tuple(parents), source)


def _checked_edge(edge: Iterable[Any]) -> tuple[int, int, str, str]:
    before, after, kind, name = edge
    return int(before), int(after), str(kind), str(name)


def _original(value: Any) -> Any:
    """The inverse of ``_plain``."""
    if isinstance(value, list):
        return [_original(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$tuple" in value:
        return tuple(_original(item) for item in value["$tuple"])
    if "$dict" in value:
        return {_original(key): _original(item) for key, item in value["$dict"]}
    return {key: _original(item) for key, item in value.items()}
