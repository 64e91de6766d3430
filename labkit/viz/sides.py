"""The two runs of a comparison: which stretch of each is drawn, and where its zero and its end are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from labkit.analysis.comparison import Comparison, step_begin, step_ends
from labkit.analysis.occupancy import Report
from labkit.analysis.units import time_text
from labkit.switches import RUNG_NAMES, ladder
from labkit.trace.events import Trace
from labkit.viz.bars import Selection, select

_STEADY = (8, 6, 4, 3, 2, 1)  # steps shown of runs that have too many bars


@dataclass(frozen=True)
class Side:
    """One of the two runs, as it is drawn: up to ``ends_ns``, where ``last_step`` ends, or (-1) the run."""

    name: str
    trace: Trace
    numbers: Report
    selection: Selection
    zero_ns: int
    ends_ns: int
    last_step: int

    def us(self, ns: int) -> float:
        return (ns - self.zero_ns) / 1000

    @property
    def finish(self) -> str:
        at = time_text(self.ends_ns - self.zero_ns)
        return f"finished at {at}" if self.last_step < 0 else f"step {self.last_step} finished at {at}"


def steps_that_fit(result: Comparison, a: Trace, b: Trace, most: int) -> tuple[int, int] | None:
    """Steps in the middle, for runs with too many bars; None for the whole runs."""
    if max(select(trace, None, None, most).total for trace in (a, b)) <= most or not result.steps:
        return None
    known = len(result.steps)
    for count in (n for n in _STEADY if n <= known):
        first = (known - count) // 2
        chosen = (first, first + count - 1)
        if max(select(trace, _numbers(trace, chosen), None, most).total for trace in (a, b)) <= most:
            return chosen
    return known // 2, known // 2


def _numbers(trace: Trace, steps: tuple[int, int]) -> tuple[int, int]:
    """Steps counted from the first, as the trace numbers them."""
    known = list(step_ends(trace))
    return known[steps[0]], known[steps[1]]


def sides(
    traces: tuple[Trace, Trace],
    names: tuple[str, str],
    result: Comparison,
    steps: tuple[int, int] | None,
    align_step: int | None,
) -> Iterator[Side]:
    """Both runs over the same stretch of time, which holds the chosen steps of both."""
    zeros, lows, highs, ends = [], [], [], []
    for trace in traces:
        known = step_ends(trace)
        zeros.append(trace.start_ns if align_step is None else step_begin(trace, list(known)[align_step]))
        ends.append(trace.end_ns if steps is None else known[_numbers(trace, steps)[1]])
        selection = select(trace, None if steps is None else _numbers(trace, steps), None, 10**9)
        lows.append(selection.start_ns - zeros[-1])
        highs.append(selection.end_ns - zeros[-1])
    for trace, name, numbers, zero, end in zip(traces, names, (result.a, result.b), zeros, ends, strict=True):
        window = (min(lows) + zero, max(highs) + zero)
        drawn = select(trace, None, window if trace.spans else None, 10**9)
        step = -1 if steps is None else _numbers(trace, steps)[1]
        yield Side(name, trace, numbers, replace(drawn, start_ns=window[0], end_ns=window[1]), zero, end, step)


def rung_name(trace: Trace, otherwise: str) -> str:
    """The rung that a trace was made on."""
    on = tuple(trace.meta.get("switches", ("?",)))
    rungs = (number for number in range(len(RUNG_NAMES)) if ladder(number).on == on)
    return next((f"rung {number} {RUNG_NAMES[number]}" for number in rungs), otherwise)
