"""What is counted along a run: steps in flight, and the share of each stretch in which a kernel runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labkit.analysis.intervals import union
from labkit.analysis.occupancy import busy_in
from labkit.trace.events import Trace

Flight = tuple[int, int]  # from the end of a step's plan to the end of its settle, ns


def flights(trace: Trace) -> dict[int, Flight]:
    """When each step was in flight: planned, and its tokens not known. Steps that are not settled are left out."""
    planned, settled = {}, {}
    for span in trace.of_kind("phase"):
        if span.name == "plan":
            planned[span.step] = span.end_ns
        elif span.name == "settle":
            settled[span.step] = span.end_ns
    return {step: (planned[step], end) for step, end in settled.items() if step in planned}


def steps_in_flight(trace: Trace) -> list[tuple[int, int]]:
    """(ns, steps in flight from then on), ascending, one entry per change; starts with 0 at the start of the trace."""
    changes: dict[int, int] = {trace.start_ns: 0}
    for start, end in flights(trace).values():
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    count = 0
    counted: list[tuple[int, int]] = []
    for ns in sorted(changes):
        count += changes[ns]
        if not counted or counted[-1][1] != count:
            counted.append((ns, count))
    return counted


def active_ns(trace: Trace, edges: Sequence[int]) -> list[float]:
    """Time in which a kernel runs in each bin ``[edges[i], edges[i + 1])``.

    Where launch gaps lie inside an operation is not known: they are spread evenly. Over the whole run the bins sum to
    the report's ``busy_ns``.
    """
    compute = list(trace.lane("compute"))
    merged = union((span.start_ns, span.end_ns) for span in compute)
    active = [0.0] * (len(edges) - 1)
    place = 0
    for (start, end), busy in zip(merged, busy_in(compute, merged), strict=True):
        while place < len(active) and edges[place + 1] <= start:
            place += 1
        for here in range(place, len(active)):
            if edges[here] >= end:
                break
            shared = min(end, edges[here + 1]) - max(start, edges[here])
            active[here] += max(0, shared) * busy / (end - start)
    return active


def token_rates(ends: Iterable[tuple[int, int]], start_ns: int) -> list[tuple[int, float]]:
    """(end of a step in ns, tokens/s over the time since the step before) for steps of (end_ns, tokens)."""
    rates = []
    for end, tokens in ends:
        rates.append((end, tokens / (end - start_ns) * 1e9 if end > start_ns else 0.0))
        start_ns = end
    return rates
