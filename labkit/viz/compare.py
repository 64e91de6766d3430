"""Two runs on one time scale, one above the other, with the difference per step and where each one finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import plotly.graph_objects as go

from labkit.analysis.comparison import Comparison, compare_runs, step_begin, step_ends
from labkit.analysis.occupancy import GPU_ACTIVE, Report
from labkit.analysis.units import share_text, time_text
from labkit.errors import InvalidArgument
from labkit.switches import RUNG_NAMES, ladder
from labkit.trace.events import LANES, Trace
from labkit.viz import style
from labkit.viz.bars import Selection, select
from labkit.viz.drawing import ROW, bar_traces, label_trace
from labkit.viz.frame import Table, domains, frame, trace_of

PREDICTABLE = {"gpu_active": (0.0, 100.0), "total_ms": (0.0, float("inf"))}  # of the second run
_STEADY = (8, 6, 4, 3, 2, 1)  # steps shown of runs that have too many bars
_LANES_PX, _NUMBERS_PX, _AXIS_PX, _BETWEEN_PX = 300, 150, 105, 12
_TOP, _HEADLINE = 4.1, 3.82  # y of the upper edge, and of the line of text above the lanes
_FASTER, _SLOWER = style.CPU, style.IDLE


@dataclass(frozen=True)
class _Side:
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


def compare(
    a: Any,
    b: Any,
    *,
    align_step: int | None = None,
    steps: tuple[int, int] | None = None,
    names: tuple[str, str] | None = None,
    prediction: Mapping[str, float] | None = None,
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
        max_bars: above this many bars in one run, steps in the middle are drawn.

    Raises:
        InvalidArgument: a step that one of the runs does not have, or a prediction of something else.
    """
    a, b = trace_of(a, "a"), trace_of(b, "b")
    told = _checked_prediction(prediction)
    result = compare_runs(a, b)
    steps = _checked_steps(result, steps, align_step) or _steps_that_fit(result, a, b, max_bars)
    align_step = steps[0] if steps and align_step is None else align_step
    first, second = _sides((a, b), names or (_name(a, "first"), _name(b, "second")), result, steps, align_step)
    notes = _notes(first, second, result, told, steps, align_step)
    predicted_us = told.get("total_ms", 0.0) * 1000 if align_step is None else 0.0
    figure = go.Figure(layout=_layout(first, second, result, notes, predicted_us))
    for place, side in (("y", first), ("y2", second)):
        _draw(figure, side, place, legend_of=first if side is second else None)
    _draw_differences(figure, result)
    _draw_active(figure, (first, second), told)
    if predicted_us:
        _draw_predicted_end(figure, predicted_us)
    return figure


# -- what is drawn -----------------------------------------------------------------------------------------------------


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


def _steps_that_fit(result: Comparison, a: Trace, b: Trace, most: int) -> tuple[int, int] | None:
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


def _sides(
    traces: tuple[Trace, Trace],
    names: tuple[str, str],
    result: Comparison,
    steps: tuple[int, int] | None,
    align_step: int | None,
) -> Iterator[_Side]:
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
        yield _Side(name, trace, numbers, replace(drawn, start_ns=window[0], end_ns=window[1]), zero, end, step)


def _name(trace: Trace, otherwise: str) -> str:
    """The rung that a trace was made on."""
    on = tuple(trace.meta.get("switches", ("?",)))
    rungs = (number for number in range(len(RUNG_NAMES)) if ladder(number).on == on)
    return next((f"rung {number} {RUNG_NAMES[number]}" for number in rungs), otherwise)


# -- drawing -----------------------------------------------------------------------------------------------------------


def _draw(figure: go.Figure, side: _Side, axis: str, legend_of: _Side | None) -> None:
    """The lanes of one run, its name and where it finished; the legend has each kind once."""
    shown = {trace.name for trace in figure.data} if legend_of else set()
    for trace in (*bar_traces(side.selection.bars, side.zero_ns), label_trace(side.selection, side.zero_ns)):
        trace.update(yaxis=axis)
        if trace.name in shown:
            trace.update(showlegend=False)
        figure.add_trace(trace)
    end = side.us(side.ends_ns)
    figure.add_trace(_upright(end, _TOP, axis, f"{escape(side.name)}: {side.finish}", dash="solid"))
    headline = f"<b>{escape(side.name)}</b>: GPU active {share_text(side.numbers.gpu_active)}"
    _write(figure, headline, x=0, xref="paper", xanchor="left", yref=axis)
    low, high = figure.layout.xaxis.range
    room = (high - end) / (high - low)  # to the right of the mark
    _write(figure, side.finish, x=end, xref="x", xanchor="left" if room > 0.3 else "right", yref=axis)


def _write(figure: go.Figure, text: str, **where: Any) -> None:
    options: dict[str, Any] = {"y": _HEADLINE, "showarrow": False, "yanchor": "middle", "borderpad": 1}
    figure.add_annotation(text=text, font={"size": style.NOTE, "color": style.INK}, **(options | where))


def _upright(x: float, top: float, axis: str, text: str, dash: str) -> go.Scatter:
    """A vertical line over the lanes."""
    return go.Scatter(
        x=[x, x],
        y=[-0.55, top],
        yaxis=axis,
        mode="lines",
        line={"color": style.INK, "width": 3, "dash": dash},
        hoverinfo="text",
        text=text,
        name=text,
        showlegend=False,
    )


def _draw_predicted_end(figure: go.Figure, predicted_us: float) -> None:
    text = f"you predicted {predicted_us / 1000:g} ms"
    figure.add_trace(_upright(predicted_us, _HEADLINE - 0.3, "y2", text, dash="dash"))
    side = "left" if predicted_us < figure.layout.xaxis.range[1] / 2 else "right"
    _write(figure, text, x=predicted_us, xref="x", xanchor=side, y=-0.05, yref="y2", bgcolor=style.PAPER)


def _draw_differences(figure: go.Figure, result: Comparison) -> None:
    steps = result.steps
    differences = [step.difference_ns / 1000 for step in steps]
    figure.add_trace(
        go.Bar(
            x=[step.step for step in steps],
            y=differences,
            xaxis="x2",
            yaxis="y3",
            name="difference per step",
            showlegend=False,
            customdata=[[time_text(step.a_ns), time_text(step.b_ns)] for step in steps],
            hovertemplate="step %{x}: %{customdata[0]}, then %{customdata[1]}: %{y:+,.1f} µs<extra></extra>",
            marker={
                "color": [_SLOWER if value > 0 else _FASTER for value in differences],
                "pattern": {"shape": ["/" if value > 0 else "" for value in differences], "fgopacity": 0.6},
            },
        )
    )


def _draw_active(figure: go.Figure, sides: tuple[_Side, _Side], told: dict[str, float]) -> None:
    shares = [side.numbers.gpu_active * 100 for side in sides]
    figure.add_trace(
        go.Bar(
            x=shares,
            y=[1, 0],
            width=0.7,
            orientation="h",
            xaxis="x3",
            yaxis="y4",
            name="GPU active",
            showlegend=False,
            text=[f"{share:.1f} %" for share in shares],
            textposition="inside",
            insidetextanchor="start",
            textfont={"color": style.PAPER, "size": style.NOTE},
            hovertext=[escape(side.name) for side in sides],
            hovertemplate="%{hovertext}: GPU active %{x:.1f} %<extra></extra>",
            marker={"color": style.GRAPH},
        )
    )
    if "gpu_active" in told:
        figure.add_trace(
            go.Scatter(
                x=[told["gpu_active"]],
                y=[0],
                xaxis="x3",
                yaxis="y4",
                mode="markers",
                marker={
                    "symbol": "diamond",
                    "size": 18,
                    "color": style.PAPER,
                    "line": {"color": style.INK, "width": 3},
                },
                name=f"predicted: {told['gpu_active']:g} %",
                hovertemplate="you predicted %{x:g} %<extra></extra>",
                legendgroup="prediction",
                legendgrouptitle={"text": "Prediction"},
            )
        )


# -- texts and axes ----------------------------------------------------------------------------------------------------


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
    first: _Side,
    second: _Side,
    result: Comparison,
    told: dict[str, float],
    steps: tuple[int, int] | None,
    align_step: int | None,
) -> list[str]:
    notes = [f"GPU active: {GPU_ACTIVE}."]
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


def _layout(first: _Side, second: _Side, result: Comparison, notes: list[str], up_to_us: float) -> go.Layout:
    inner, (top, below, numbers) = domains([_LANES_PX, _LANES_PX, _NUMBERS_PX], [_BETWEEN_PX, _AXIS_PX])
    low = min(side.us(side.selection.start_ns) for side in (first, second))
    high = max(side.us(side.selection.end_ns) for side in (first, second))
    high = max(high, up_to_us) + (high - low) * 0.005  # the mark at the end stays inside
    time = {"range": [low, high], "anchor": "y2", "tickformat": ",", "exponentformat": "none"}
    layout = frame(
        summary(result),
        notes,
        inner,
        _table(result, (first.name, second.name)),
        xaxis=time | {"title": {"text": "time (µs), the same for both"}},
        yaxis=_lanes(top),
        yaxis2=_lanes(below),
    )
    return layout.update(_number_axes(numbers))


def _lanes(domain: list[float]) -> dict[str, Any]:
    return {
        "domain": domain,
        "tickvals": [ROW[lane] for lane in LANES],
        "ticktext": [f"<b>{lane}</b>" for lane in LANES],
        "tickfont": {"size": style.LANE - 2},
        "range": [-0.55, _TOP],
        "fixedrange": True,
        "showgrid": False,
    }


def _number_axes(domain: list[float]) -> dict[str, Any]:
    """Differences on the left, GPU active on the right."""
    return {
        "xaxis2": {"domain": [0, 0.62], "anchor": "y3", "title": {"text": "step"}, "tickformat": "d", "nticks": 12},
        "yaxis3": {
            "domain": domain,
            "anchor": "x2",
            "title": {"text": "difference (µs)", "standoff": 4},
            "zeroline": True,
            "zerolinecolor": style.INK,
            "tickformat": ",",
            "nticks": 5,
            "fixedrange": True,
        },
        "xaxis3": {
            "domain": [0.74, 1],
            "anchor": "y4",
            "range": [0, 100],
            "title": {"text": "GPU active (%)"},
            "tickvals": [0, 50, 100],
        },
        "yaxis4": {
            "domain": domain,
            "anchor": "x3",
            "range": [-0.6, 1.6],
            "tickvals": [1, 0],
            "ticktext": ["above", "below"],
            "fixedrange": True,
            "showgrid": False,
        },
    }
