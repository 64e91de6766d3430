"""Two runs on one time scale, one above the other, with the difference per step and where each one finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from labkit.analysis.comparison import Comparison, compare_runs
from labkit.analysis.units import share_text, time_text
from labkit.errors import InvalidArgument
from labkit.viz import compare_drawing as drawing
from labkit.viz.frame import Table, frame, trace_of
from labkit.viz.sides import Side, rung_name, sides, steps_that_fit

PREDICTABLE = {"gpu_active": (0.0, 100.0), "total_ms": (0.0, float("inf"))}  # of the second run


def compare(
    a: Any,
    b: Any,
    *,
    align_step: int | None = None,
    steps: tuple[int, int] | None = None,
    names: tuple[str, str] | None = None,
    prediction: Mapping[str, float] | None = None,
    beneath: bool = True,
    max_bars: int = 2000,
) -> go.Figure:
    """Draw two runs above each other on one time scale, and below them what each step lost or gained.

    Args:
        a, b: traces, or runs with a trace; b is compared with a.
        align_step: put 0 where this step begins on the GPU in both runs. Default: the first step that is drawn, or
            where each run starts if it is drawn whole. Steps are counted from the first one of each run.
        steps: first and last step to draw; default the whole runs, or the steps in the middle of long ones.
        names: what the runs are called; default: their rungs.
        prediction: what was expected of b, drawn with what was measured: ``gpu_active`` in percent, ``total_ms``.
        beneath: draw the difference per step and GPU active beneath the lanes.
        max_bars: above this many bars in one run, steps in the middle are drawn.

    Raises:
        InvalidArgument: a step that one of the runs does not have, or a prediction of something else.
    """
    a, b = trace_of(a, "a"), trace_of(b, "b")
    told = _checked_prediction(prediction)
    result = compare_runs(a, b)
    steps = _checked_steps(result, steps, align_step) or steps_that_fit(result, a, b, max_bars)
    align_step = steps[0] if steps and align_step is None else align_step
    first, second = sides((a, b), names or (rung_name(a, "first"), rung_name(b, "second")), result, steps, align_step)
    notes = _notes(first, second, result, told, steps, align_step)
    predicted_us = told.get("total_ms", 0.0) * 1000 if align_step is None else 0.0
    rows = _table(result, (first.name, second.name))
    inner, axes = drawing.axes(first, second, predicted_us, beneath)
    figure = go.Figure(layout=frame(summary(result), notes, inner, rows, **axes))
    for place, side in (("y", first), ("y2", second)):
        drawing.draw_run(figure, side, place, legend_of=first if side is second else None)
    if beneath:
        drawing.draw_differences(figure, result)
        drawing.draw_active(figure, (first, second), told)
    if predicted_us:
        drawing.draw_predicted_end(figure, predicted_us)
    return figure


def _checked_prediction(prediction: Mapping[str, float] | None) -> dict[str, float]:
    for name, value in (prediction or {}).items():
        low, high = PREDICTABLE.get(name, (1.0, 0.0))
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            allowed = "gpu_active in percent, 0 to 100, or total_ms of at least 0"
            raise InvalidArgument("prediction", {name: value}, allowed)
    return {name: float(value) for name, value in (prediction or {}).items()}


def _checked_steps(result: Comparison, steps: tuple[int, int] | None, align_step: int | None) -> tuple[int, int] | None:
    count = len(result.steps)
    both = f"a step that both runs have: 0 to {count - 1}" if count else "nothing: the runs have no steps"
    if align_step is not None and align_step not in range(count):
        raise InvalidArgument("align_step", align_step, both)
    if steps is not None and not (len(steps) == 2 and steps[0] in range(count) and steps[1] in range(steps[0], count)):
        raise InvalidArgument("steps", steps, f"the first and the last, each {both}")
    return steps


def summary(result: Comparison) -> str:
    """The comparison in one sentence: the change of time and the ratio, side by side."""
    before, after = result.a, result.b
    if not before.window_ns or not after.window_ns:
        return "One of the traces is empty: nothing to compare."
    return (
        f"{result.change * 100:+.1f} % time, {result.speedup:.2f}x: {time_text(before.window_ns)} to "
        f"{time_text(after.window_ns)}; GPU active {share_text(before.gpu_active)} to {share_text(after.gpu_active)}."
    )


def _notes(
    first: Side,
    second: Side,
    result: Comparison,
    told: dict[str, float],
    steps: tuple[int, int] | None,
    align_step: int | None,
) -> list[str]:
    meanings = dict.fromkeys(side.numbers.gpu_active_means for side in (first, second))
    notes = [f"GPU active: {means}." for means in meanings]
    if steps is not None:
        notes.append(f"Drawn: steps {steps[0]} to {steps[1]}; the numbers are of the whole runs.")
    if align_step is not None:
        notes.append(f"Time 0 is where step {align_step} begins on the GPU, in both runs.")
    if len({side.numbers.steps for side in (first, second)}) > 1:
        notes.append(f"The runs have {first.numbers.steps} and {second.numbers.steps} steps.")
    measured = {"gpu_active": result.b.gpu_active * 100, "total_ms": result.b.window_ns / 1e6}
    said = {"gpu_active": "GPU active {:.1f} %", "total_ms": "{:.3f} ms in all"}
    for name, value in told.items():
        notes.append(
            f"You predicted {said[name].format(value)} of {second.name}; measured: {said[name].format(measured[name])}."
        )
    return notes


def _table(result: Comparison, names: tuple[str, str]) -> Table:
    return [
        {
            "step": step.step,
            f"{names[0]}_us": step.a_ns / 1000,
            f"{names[1]}_us": step.b_ns / 1000,
            "difference_us": step.difference_ns / 1000,
        }
        for step in result.steps
    ]
