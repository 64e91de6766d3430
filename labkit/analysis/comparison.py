"""Two runs beside each other: how long each step took in one and in the other, and what is gained in all.

A step *ends* when its tokens are known: at the end of its settle phase, or, in a trace without phases, of its last
span. It *takes* the time since the step before it ended, so that the steps of a run sum to the end of its last step.
Steps are counted from the first of each run.
"""

from __future__ import annotations

from dataclasses import dataclass

from labkit.analysis.occupancy import Report, report
from labkit.trace.events import Trace


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What one step took in both runs, ns."""

    step: int
    a_ns: int
    b_ns: int

    @property
    def difference_ns(self) -> int:
        """Below zero where b was faster."""
        return self.b_ns - self.a_ns


@dataclass(frozen=True)
class Comparison:
    """Two runs. ``steps`` are those that both have."""

    a: Report
    b: Report
    steps: tuple[StepTimes, ...]

    @property
    def change(self) -> float:
        """Time of b compared with a: -0.22 is 22 % less."""
        return self.b.window_ns / self.a.window_ns - 1 if self.a.window_ns else 0.0

    @property
    def speedup(self) -> float:
        """How many times as fast b is: 1.28 where it needs 22 % less time."""
        return self.a.window_ns / self.b.window_ns if self.b.window_ns else 0.0


def compare_runs(a: Trace, b: Trace) -> Comparison:
    """Compare two traces step by step, and as wholes."""
    pairs = zip(_durations(a), _durations(b), strict=False)
    steps = tuple(StepTimes(number, first, second) for number, (first, second) in enumerate(pairs))
    return Comparison(report(a), report(b), steps)


def step_numbers(trace: Trace) -> list[int]:
    """The numbers of the steps that a trace has tokens of, ascending."""
    return sorted(step_ends(trace))


def step_ends(trace: Trace) -> dict[int, int]:
    """When each step ended, ns on the trace's clock, by number."""
    settles = [span for span in trace.of_kind("phase") if span.name == "settle" and span.step >= 0]
    ends: dict[int, int] = {}
    for span in settles or trace.spans:
        if span.step >= 0:
            ends[span.step] = max(ends.get(span.step, span.end_ns), span.end_ns)
    return dict(sorted(ends.items()))


def step_begin(trace: Trace, step: int) -> int:
    """When a step begins on the GPU: its first operation on the compute lane, or its first span if it has none."""
    spans = trace.step(step)
    return min(span.start_ns for span in [s for s in spans if s.lane == "compute"] or spans)


def _durations(trace: Trace) -> list[int]:
    ends = list(step_ends(trace).values())
    return [end - before for before, end in zip([trace.start_ns, *ends], ends, strict=False)]
