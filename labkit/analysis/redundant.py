"""Which waits of a clean trace order nothing new, found by leaving each out, and which of those replace each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from labkit.analysis.accesses import family
from labkit.analysis.conflicts import find_conflicts
from labkit.trace.events import Span, Trace


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of the program, in all its steps.

    name       ``compute_waits_h2d``: who waits, and the event without its ``_done``
    count      how often it is made
    needed_if  names of other redundant waits; if one of these is dropped, this one is needed
    """

    name: str
    count: int
    needed_if: tuple[str, ...] = ()


def redundant_waits(trace: Trace) -> tuple[Wait, ...]:
    """The waits without any of which a clean trace stays clean; none for a trace that has races.

    Calls of one stream (or the host) for the events of one family are one wait.
    """
    if find_conflicts(trace):
        return ()
    counts: dict[str, int] = {}
    for span in trace.spans:
        if (name := wait_name(span)) is not None:
            counts[name] = counts.get(name, 0) + 1
    redundant = [name for name in counts if _clean_without(trace, [name])]
    pairs = [pair for pair in combinations(redundant, 2) if not _clean_without(trace, pair)]
    partners = {name: tuple(o for pair in pairs if name in pair for o in pair if o != name) for name in redundant}
    return tuple(Wait(name, counts[name], partners[name]) for name in redundant)


def wait_name(span: Span) -> str | None:
    """The name of the wait that a span is part of; None for any other span."""
    if span.kind == "wait":
        return f"{span.stream}_waits_{_short(span.event)}"
    if span.kind == "synchronize" or (span.kind == "query" and span.record):
        return f"host_waits_{_short(span.event) or _stream(span.stream)}"
    return None


def without(trace: Trace, names: Iterable[str]) -> Trace:
    """The trace without some of its waits."""
    dropped = set(names)
    return replace(trace, spans=tuple(span for span in trace.spans if wait_name(span) not in dropped), edges=())


def _clean_without(trace: Trace, names: Iterable[str]) -> bool:
    return not find_conflicts(without(trace, names))


def _short(event: str) -> str:
    return family(event).removesuffix("_done")


def _stream(streams: str) -> str:
    return "device" if "," in streams or not streams else streams
