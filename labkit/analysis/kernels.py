"""The kernels that a profiler saw, inside the operations of a labkit trace of the same steps.

The two clocks are aligned by the host: every copy that the engine enqueues, every wait of a stream and of the host is a
labkit span, within which the profiler saw the call. Each pair bounds the offset between the clocks from both sides, and
all together leave a narrow interval. A kernel then belongs to the operation within whose launch span its call was made.

So one run has two shares (``occupancy.py``): *stream active*, an operation under way with the gaps between its kernels,
and *GPU active*, a kernel running. Without a profile a real GPU tells of operations alone, and both are the first.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from statistics import median

from labkit.analysis.intervals import total, union
from labkit.errors import InvalidArgument
from labkit.trace.events import DEVICE_KINDS, Span, Trace


@dataclass(frozen=True, slots=True)
class Alignment:
    """What to add to a profiler time to get a labkit time, ns.

    error_ns   half of the interval that all pairs leave; where they leave none, since one clock drifts against the
               other, the largest distance from the median instead
    pairs      how many calls were seen by both
    """

    offset_ns: int
    error_ns: int
    pairs: int


def align(trace: Trace, profile: Trace) -> Alignment:
    """The offset between the clocks of a labkit trace and a profile of the same steps.

    Raises:
        InvalidArgument: the two do not hold the same copies in the same order.
    """
    pairs = [*_copies(trace, profile), *_calls(trace, profile, "wait", "WaitEvent")]
    pairs += _calls(trace, profile, "synchronize", "EventSynchronize")
    lows = [mine.start_ns - call.start_ns for mine, call in pairs]
    highs = [mine.end_ns - call.end_ns for mine, call in pairs]
    low, high = max(lows), min(highs)
    if low <= high:
        return Alignment((low + high) // 2, (high - low + 1) // 2, len(pairs))
    middles = [(a + b) // 2 for a, b in zip(lows, highs, strict=True)]
    offset = round(median(middles))
    return Alignment(offset, max(abs(middle - offset) for middle in middles), len(pairs))


def _copies(trace: Trace, profile: Trace) -> list[tuple[Span, Span]]:
    """The engine's copies: the host span of each, and the call that the profiler saw."""
    ours, theirs = _copy_calls(trace), _copy_calls(profile)
    if not ours or [lane for _, lane in ours] != [lane for _, lane in theirs]:
        seen = f"{len(theirs)} copies, the trace has {len(ours)}"
        raise InvalidArgument("profile", seen, "a profile of the same steps: the same copies in the same order")
    return [(mine, call) for (mine, _), (call, _) in zip(ours, theirs, strict=True)]


def _copy_calls(trace: Trace) -> list[tuple[Span, str]]:
    """Host calls that issued a copy between host and device, and its lane, in order of time."""
    spans = {span.id: span for span in trace.spans}
    issues = [edge for edge in trace.edges if edge.kind == "issue" and edge.before in spans and edge.after in spans]
    between = [edge for edge in issues if spans[edge.after].kind == "copy" and spans[edge.after].lane in ("H2D", "D2H")]
    return sorted(((spans[edge.before], spans[edge.after].lane) for edge in between), key=lambda pair: pair[0].start_ns)


def _calls(trace: Trace, profile: Trace, kind: str, name: str) -> list[tuple[Span, Span]]:
    """Host spans of a kind that are one CUDA call each; none where the profiler saw another number of them."""
    ours = [span for span in trace.of_kind(kind) if span.event]
    theirs = [span for span in profile.of_kind(kind) if name in span.name]
    return list(zip(ours, theirs, strict=True)) if len(ours) == len(theirs) else []


def with_kernels(trace: Trace, profile: Trace) -> Trace:
    """The same trace with ``busy_ns`` of every compute operation as the time in which its kernels ran.

    ``meta["kernels"]`` says how many kernels were found, how many lay in no operation, and how the clocks were aligned.

    Raises:
        InvalidArgument: as ``align``.
    """
    alignment = align(trace, profile)
    owners, lost = _owners(trace, profile, alignment.offset_ns)
    busy = {number: total(union((k.start_ns, k.end_ns) for k in kernels)) for number, kernels in owners.items()}
    spans = tuple(
        replace(span, busy_ns=min(span.duration_ns, busy.get(span.id, 0))) if _computes(span) else span
        for span in trace.spans
    )
    found = {"count": sum(map(len, owners.values())), "outside": lost, "pairs": alignment.pairs}
    found |= {"offset_ns": alignment.offset_ns, "error_ns": alignment.error_ns}
    return replace(trace, spans=spans, meta={**trace.meta, "kernels": found})


def _computes(span: Span) -> bool:
    return span.kind in DEVICE_KINDS and span.lane == "compute"


def _owners(trace: Trace, profile: Trace, offset: int) -> tuple[dict[int, list[Span]], int]:
    """Kernels by the compute operation whose launch span holds their call, and how many belong to none."""
    spans = {span.id: span for span in trace.spans}
    launches = sorted(
        (spans[edge.before].start_ns, spans[edge.before].end_ns, edge.after)
        for edge in trace.edges
        if edge.kind == "issue" and edge.before in spans and edge.after in spans and _computes(spans[edge.after])
    )
    starts, events = [start for start, _, _ in launches], {span.id: span for span in profile.spans}
    owners: dict[int, list[Span]] = {}
    lost = 0
    for edge in profile.edges:
        call, kernel = events[edge.before], events[edge.after]
        if not _computes(kernel):
            continue
        middle = (call.start_ns + call.end_ns) // 2 + offset
        place = bisect_right(starts, middle) - 1
        if place >= 0 and middle <= launches[place][1]:
            owners.setdefault(launches[place][2], []).append(kernel)
        else:
            lost += 1
    return owners, lost
