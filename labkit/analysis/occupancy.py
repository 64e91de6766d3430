"""How busy the GPU was: one Report per trace, and the exact busy time per bin.

Two shares are easily confused, so both are named and defined:

    GPU active     device time in which a kernel really runs on the compute lane, divided by the window. Operations of
                   several streams that overlap count once; the launch gaps inside an operation do not count.
    stream active  time in which an operation is running on the compute lane, its inner launch gaps included, divided
                   by the window.

A trace of a real GPU knows its operations, from events around them, and not the kernels inside: there both are the
second, at *stream level*, until ``kernels.py`` puts a profiler's kernels in. ``Report.level`` says which it is.

The window goes from the start of the first span to the end of the last. All times are integer ns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from labkit.analysis.idle import REASONS, Gap, idle_gaps
from labkit.analysis.intervals import per_bin, total, union
from labkit.analysis.units import bytes_text, share_text, time_text
from labkit.errors import InvalidArgument
from labkit.trace.events import DEVICE_KINDS, HOST_WAIT_KINDS, LANES, PHASES, Span, Trace

__all__ = ["GPU_ACTIVE", "Gap", "IN_OPERATION", "Occupancy", "PhaseTime", "Report", "idle_gaps", "occupancy", "report"]

GPU_ACTIVE = "share of the run in which a kernel is running on the compute lane"
GPU_ACTIVE_STREAM = "stream level: share of the run with an operation on the compute lane, gaps included"
IN_OPERATION = "launch gaps inside an operation"


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Host time spent in one phase."""

    count: int
    total_ns: int

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.count


@dataclass(frozen=True)
class Report:
    """The numbers of a run.

    busy_ns     device time with a kernel running on the compute lane
    stream_ns   time with an operation on the compute lane
    steps       steps with an operation on the device; a plan that found nothing to do is not one
    host_waits  ``synchronize`` calls and blocking copies
    phases      host time per phase
    idle        ns per reason; the values sum to ``idle_ns`` exactly
    level       what ``busy_ns`` counts: ``kernel``, or ``stream`` where no trace of the kernels is there
    """

    window_ns: int
    busy_ns: int
    stream_ns: int
    steps: int
    host_waits: int
    bytes_up: int
    bytes_down: int
    phases: dict[str, PhaseTime] = field(default_factory=dict)
    idle: dict[str, int] = field(default_factory=dict)
    level: str = "kernel"

    @property
    def gpu_active(self) -> float:
        return self.busy_ns / self.window_ns if self.window_ns else 0.0

    @property
    def gpu_active_means(self) -> str:
        """What ``gpu_active`` is the share of."""
        return GPU_ACTIVE if self.level == "kernel" else GPU_ACTIVE_STREAM

    @property
    def stream_active(self) -> float:
        return self.stream_ns / self.window_ns if self.window_ns else 0.0

    @property
    def idle_ns(self) -> int:
        return self.window_ns - self.busy_ns

    @property
    def host_waits_per_step(self) -> float:
        return self.host_waits / self.steps if self.steps else 0.0

    @property
    def ns_per_step(self) -> float:
        return self.window_ns / self.steps if self.steps else 0.0

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """(name, value, definition) for a reader, in order of importance."""
        yield "GPU active", share_text(self.gpu_active), self.gpu_active_means
        yield "stream active", share_text(self.stream_active), "share of the run with an operation on the compute lane"
        yield "window", time_text(self.window_ns), "start of the first span to the end of the last"
        yield "steps", str(self.steps), f"{time_text(self.ns_per_step)} per step"
        yield "host waits", str(self.host_waits), f"{self.host_waits_per_step:.2f} per step: synchronize, blocking copy"
        yield "copied up", bytes_text(self.bytes_up), "host to device"
        yield "copied down", bytes_text(self.bytes_down), "device to host"
        for name, phase in self.phases.items():
            yield f"phase {name}", time_text(phase.total_ns), f"{phase.count} times, {time_text(phase.mean_ns)} each"
        yield "idle", time_text(self.idle_ns), "window minus the time in which a kernel runs"
        for reason, ns in self.idle.items():
            yield f"idle: {reason}", time_text(ns), f"{share_text(ns / self.idle_ns)} of the idle time"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON: the fields and the derived values, times in ns."""
        phases = {
            name: {"count": p.count, "total_ns": p.total_ns, "mean_ns": p.mean_ns} for name, p in self.phases.items()
        }
        derived = ("gpu_active", "stream_active", "idle_ns", "host_waits_per_step", "ns_per_step")
        return (
            vars(self) | {name: getattr(self, name) for name in derived} | {"phases": phases, "idle": dict(self.idle)}
        )

    def __str__(self) -> str:
        rows = list(self.rows())
        left, middle = (max(len(row[column]) for row in rows) for column in (0, 1))
        return "\n".join(f"{name:<{left}}  {value:>{middle}}  {meaning}" for name, value, meaning in rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:right">{escape(value)}</td><td style="text-align:left">{escape(meaning)}</td></tr>'
            for name, value, meaning in self.rows()
        )
        return f"<table><caption>What the run did</caption><tbody>{cells}</tbody></table>"


def report(trace: Trace) -> Report:
    """The numbers of a run; all zero for an empty trace."""
    compute = list(trace.lane("compute"))
    merged = union((span.start_ns, span.end_ns) for span in compute)
    busy_ns, stream_ns = sum(busy_in(compute, merged)), total(merged)
    copies = [span for span in trace.spans if span.kind == "copy"]
    return Report(
        window_ns=trace.duration_ns,
        busy_ns=busy_ns,
        stream_ns=stream_ns,
        steps=len({span.step for span in trace.of_kind(*DEVICE_KINDS) if span.step >= 0}),
        host_waits=sum(1 for span in trace.spans if span.kind in HOST_WAIT_KINDS or span.blocking),
        bytes_up=sum(span.bytes for span in copies if span.lane == "H2D"),
        bytes_down=sum(span.bytes for span in copies if span.lane == "D2H"),
        phases=_phases(trace),
        idle=_idle(trace, stream_ns - busy_ns),
        level=_level(trace),
    )


def _level(trace: Trace) -> str:
    """A real GPU tells of kernels only through a profiler."""
    real = trace.meta.get("source") in ("live", "recorded")
    return "stream" if real and "kernels" not in trace.meta else "kernel"


def busy_in(compute: list[Span], merged: list[tuple[int, int]]) -> list[int]:
    """``busy_ns`` summed per stretch of the lane's union, at most its length: overlapping streams count once."""
    busy = [0] * len(merged)
    place = 0
    for span in sorted(compute, key=lambda span: span.start_ns):
        while place < len(merged) and merged[place][1] <= span.start_ns:
            place += 1
        if place < len(merged) and span.duration_ns > 0:
            busy[place] += min(span.busy_ns, span.duration_ns)
    return [min(ns, end - start) for ns, (start, end) in zip(busy, merged, strict=True)]


def _phases(trace: Trace) -> dict[str, PhaseTime]:
    counts: dict[str, int] = {}
    totals: dict[str, int] = {}
    for span in trace.of_kind("phase"):
        counts[span.name] = counts.get(span.name, 0) + 1
        totals[span.name] = totals.get(span.name, 0) + span.duration_ns
    others = sorted(name for name in counts if name not in PHASES)
    return {name: PhaseTime(counts[name], totals[name]) for name in (*PHASES, *others) if name in counts}


def _idle(trace: Trace, inside_ns: int) -> dict[str, int]:
    """ns per reason, zero ones left out."""
    sums = dict.fromkeys((*REASONS, IN_OPERATION), 0)
    for gap in idle_gaps(trace):
        sums[gap.reason] += gap.duration_ns
    sums[IN_OPERATION] = inside_ns
    return {reason: ns for reason, ns in sums.items() if ns}


@dataclass(frozen=True)
class Occupancy:
    """Busy time of a lane per bin. Bin i is ``[edges_ns[i], edges_ns[i + 1])``; its bounds are whole ns."""

    lane: str
    edges_ns: tuple[int, ...]
    busy_ns: tuple[int, ...]

    @property
    def share(self) -> tuple[float, ...]:
        """Busy share of each bin, 0 to 1 (0 for a bin without length)."""
        widths = (end - start for start, end in zip(self.edges_ns, self.edges_ns[1:], strict=False))
        return tuple(busy / width if width else 0.0 for busy, width in zip(self.busy_ns, widths, strict=True))


def occupancy(trace: Trace, lane: str, bins: int = 400) -> Occupancy:
    """The busy time of ``lane`` in each of ``bins`` equal parts of the window: an exact integral.

    The bins sum to the length of the union of the lane's spans, to the ns.

    Raises:
        InvalidArgument: an unknown lane, or fewer than one bin.
    """
    if lane not in LANES:
        raise InvalidArgument("lane", lane, f"the lanes are {', '.join(LANES)}")
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 1:
        raise InvalidArgument("bins", bins, "an integer of at least 1")
    start, length = trace.start_ns, trace.duration_ns
    edges = tuple(start + length * index // bins for index in range(bins + 1))
    merged = union((span.start_ns, span.end_ns) for span in trace.lane(lane))
    return Occupancy(lane, edges, tuple(per_bin(merged, edges)))
