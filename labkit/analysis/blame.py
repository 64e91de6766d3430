"""Where the idle time went, down to what the GPU waited for: the host's phases, the operations, the launches.

``idle.py`` gives every gap a reason. Here a gap that waited for the CPU is split over the phases that the CPU was in,
and the others are named after what they waited for. The parts sum to the idle time of the report, to the ns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.analysis.accesses import family
from labkit.analysis.idle import COPY, CPU, DRAINED, EVENT, LAUNCH, REASONS, Gap, idle_gaps
from labkit.analysis.occupancy import IN_OPERATION, report
from labkit.trace.events import Span, Trace

__all__ = ["COPY", "CPU", "DRAINED", "EVENT", "IN_OPERATION", "LAUNCH", "OUTSIDE", "Part", "blame"]

OUTSIDE = "outside the phases"


@dataclass(frozen=True, slots=True)
class Part:
    """Idle time of one reason and one cause.

    cause     the phase that the CPU was in, or the operation waited for
    ended_by  names of the compute operations that ended these gaps, in order of appearance
    gaps      how many gaps it is spread over
    """

    reason: str
    cause: str
    ns: int
    gaps: int
    ended_by: tuple[str, ...]


def blame(trace: Trace) -> tuple[Part, ...]:
    """The idle time in parts: reasons in the order of ``idle.REASONS``, within each the longest part first.

    The parts sum to ``report(trace).idle_ns`` exactly; parts of no length are left out.
    """
    spans = {span.id: span for span in trace.spans}
    phases = _Phases(trace)
    sums: dict[tuple[str, str], tuple[int, int, dict[str, None]]] = {}
    for gap in idle_gaps(trace):
        ended_by = family(spans[gap.ended_by].name) if gap.ended_by in spans else "nothing"
        for cause, ns in _causes(gap, spans, phases):
            before, gaps, names = sums.get((gap.reason, cause), (0, 0, {}))
            sums[gap.reason, cause] = (before + ns, gaps + 1, names | {ended_by: None})
    parts = [Part(*key, ns, gaps, tuple(names)) for key, (ns, gaps, names) in sums.items()]
    inside = report(trace).idle.get(IN_OPERATION, 0)
    if inside:
        parts.append(Part(IN_OPERATION, "launches slower than kernels", inside, 0, ()))
    order = (*REASONS, IN_OPERATION)
    return tuple(sorted(parts, key=lambda part: (order.index(part.reason), -part.ns, part.cause)))


def _causes(gap: Gap, spans: dict[int, Span], phases: _Phases) -> Iterator[tuple[str, int]]:
    if gap.reason == CPU:
        yield from phases.split(gap.start_ns, gap.end_ns)
    elif gap.reason in (EVENT, COPY):
        yield family(spans[gap.cause].name), gap.duration_ns
    elif gap.reason == DRAINED:
        yield "no more work", gap.duration_ns
    else:
        yield family(spans[gap.ended_by].name), gap.duration_ns


class _Phases:
    """How long the host was in each phase."""

    def __init__(self, trace: Trace) -> None:
        self._spans = sorted(trace.of_kind("phase"), key=lambda span: span.start_ns)  # one after the other
        self._starts = [span.start_ns for span in self._spans]

    def split(self, start: int, end: int) -> Iterator[tuple[str, int]]:
        """The phases of ``[start, end)`` and the ns of each; the rest is outside. Summed, the whole length."""
        shares: dict[str, int] = {}
        first = max(0, bisect_right(self._starts, start) - 1)
        done = start  # an instant counts once, even where phases overlap
        for span in self._spans[first : bisect_right(self._starts, end)]:
            shared = min(span.end_ns, end) - max(span.start_ns, done)
            if shared > 0:
                shares[span.name] = shares.get(span.name, 0) + shared
                done = min(span.end_ns, end)
        outside = end - start - sum(shares.values())
        yield from shares.items()
        if outside:
            yield OUTSIDE, outside
