"""A trace as a picture: four lanes over time, what ran, what waited, and why.

Numbers come from ``analysis.report`` and bars from the raw spans: nothing is merged. A run with too many bars is shown
as the steps in its middle, with an occupancy strip over the whole run that says that it is aggregated.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from labkit.analysis.occupancy import GPU_ACTIVE, Report, report
from labkit.analysis.units import share_text, time_text
from labkit.errors import InvalidArgument
from labkit.trace.events import LANES, Trace
from labkit.viz import style
from labkit.viz.bars import Selection, select
from labkit.viz.batches import batch_view, kv_view
from labkit.viz.blame import blame
from labkit.viz.carried import carry_over_view
from labkit.viz.compare import compare
from labkit.viz.drawing import ROW, arrow_trace, bar_traces, label_trace, strip_traces
from labkit.viz.frame import table_of
from labkit.viz.memory import memory
from labkit.viz.sweep import sweep

__all__ = [
    "batch_view",
    "blame",
    "carry_over_view",
    "compare",
    "kv_view",
    "memory",
    "sweep",
    "table",
    "table_of",
    "timeline",
]

_MARGIN = {"l": 115, "r": 20, "t": 40, "b": 70}
_PLOT_PX, _STRIP_PX, _LINE_PX = 450, 190, 23  # the lanes, the strip, a line of the notes

_EMPTY = "The trace is empty: nothing was recorded."


def timeline(
    trace: Trace,
    *,
    steps: int | tuple[int, int] | None = None,
    window: tuple[int, int] | None = None,
    arrows_for: int | None = None,
    max_bars: int = 4000,
) -> go.Figure:
    """Draw the lanes CPU, H2D, compute and D2H over time in microseconds since the start of the trace.

    Args:
        steps: a step, or the first and the last step to show; default the whole run.
        window: ``(start_ns, end_ns)`` on the trace's clock, instead of steps.
        arrows_for: a step whose dependencies are drawn as arrows.
        max_bars: above this many, the steps in the middle are shown, with a strip of the whole run.

    Returns:
        A plain Figure, the same for the same trace. ``layout.meta`` has its ``summary`` sentence and its ``notes``.

    Raises:
        InvalidArgument: a step that the trace does not have, a window outside it, both, or ``max_bars`` below 1.
    """
    selection = select(trace, steps, window, max_bars)
    if arrows_for is not None and all(span.step != arrows_for for span in trace.spans):
        raise InvalidArgument("arrows_for", arrows_for, f"one of the trace's {trace.steps} steps")
    figure = go.Figure(layout=_layout(trace, selection, arrows_for))
    if not trace.spans:
        return figure.add_annotation(text=_EMPTY, showarrow=False, x=0.5, xref="paper", y=0.5, yref="paper")
    figure.add_traces(bar_traces(selection.bars, trace.start_ns))
    figure.add_trace(label_trace(selection, trace.start_ns))
    if arrows_for is not None:
        figure.add_trace(arrow_trace(trace, arrows_for))
    if selection.reduced:
        figure.add_traces(strip_traces(trace, selection))
    return figure


def table(
    trace: Trace,
    *,
    steps: int | tuple[int, int] | None = None,
    window: tuple[int, int] | None = None,
    max_bars: int = 4000,
) -> list[dict[str, Any]]:
    """The bars of ``timeline`` with the same arguments, as rows by start; times in µs since the start of the trace.

    Raises:
        InvalidArgument: as ``timeline``.
    """
    zero_ns = trace.start_ns
    return [
        {
            "operation": bar.name,
            "kind": bar.kind,
            "lane": bar.lane,
            "step": bar.step if bar.step >= 0 else None,
            "slot": bar.slot,
            "stream": bar.stream,
            "bytes": bar.bytes,
            "start_us": (bar.start_ns - zero_ns) / 1000,
            "duration_us": (bar.end_ns - bar.start_ns) / 1000,
            "waited_for": bar.detail,
        }
        for bar in select(trace, steps, window, max_bars).bars
    ]


def summary(numbers: Report) -> str:
    """The run in one sentence."""
    if not numbers.window_ns:
        return _EMPTY
    steps = f", {numbers.steps} steps of {time_text(numbers.ns_per_step)}" if numbers.steps else ""
    return f"GPU active {share_text(numbers.gpu_active)} of {time_text(numbers.window_ns)}{steps}."


def _notes(trace: Trace, numbers: Report, selection: Selection, arrows_for: int | None) -> list[str]:
    """The definition beside the number, where the trace comes from, why the lane idles, and what is not shown."""
    source, device = (str(trace.meta.get(key, "")) for key in ("source", "device"))
    origin = device if source in device else f"{source}, {device}" if device else source
    notes = [f"GPU active: {GPU_ACTIVE}." + (f" Trace: {origin}." if origin else "")]
    if numbers.idle:
        reason, ns = max(numbers.idle.items(), key=lambda item: item[1])
        notes.append(
            f"Idle {time_text(numbers.idle_ns)}, the largest part: {reason} ({share_text(ns / numbers.idle_ns)})."
            + ("" if arrows_for is None else f" Arrows: what step {arrows_for} waited for.")
        )
    first, last = selection.steps
    shown = "the middle of the range" if first < 0 else f"step {first}" if first == last else f"steps {first} to {last}"
    if selection.reduced:
        drawn = f"{len(selection.bars):,} of {selection.total:,} bars"
        notes.append(f"Drawn: {shown} ({drawn}). The strip below is the whole run, aggregated.")
    elif first >= 0:
        notes.append(f"Drawn: {shown} of {numbers.steps} steps; the numbers are of the whole run.")
    return notes


def _layout(trace: Trace, selection: Selection, arrows_for: int | None) -> go.Layout:
    numbers = report(trace)
    sentence, notes = summary(numbers), _notes(trace, numbers, selection, arrows_for)
    header = _MARGIN["t"] + style.TITLE + _LINE_PX * len(notes)
    inner = _PLOT_PX + (_STRIP_PX if selection.reduced else 0)
    low, high = ((ns - trace.start_ns) / 1000 for ns in (selection.start_ns, selection.end_ns))
    layout = go.Layout(
        template=style.template(),
        meta={"summary": sentence, "notes": notes},
        title={"text": sentence, "subtitle": {"text": "<br>".join(notes), "font": {"size": style.NOTE}}},
        barmode="overlay",
        uirevision="labkit",  # a zoom survives when the figure's data is replaced
        height=header + inner + _MARGIN["b"],
        margin=_MARGIN | {"t": header},
        xaxis={"title": {"text": "time (µs)"}, "range": [low, high], "tickformat": ",", "exponentformat": "none"},
        yaxis={
            "tickvals": [ROW[lane] for lane in LANES],
            "ticktext": [f"<b>{lane}</b>" for lane in LANES],
            "tickfont": {"size": style.LANE},
            "range": [-0.55, len(LANES) - 0.45],
            "fixedrange": True,
            "showgrid": False,
        },
    )
    if selection.reduced:
        layout.update(_strip_axes(_STRIP_PX / inner, (trace.end_ns - trace.start_ns) / 1000))
    return layout


def _strip_axes(share: float, length_us: float) -> dict[str, Any]:
    """A second pair of axes in the lower ``share`` of the height, less a gap for the axis of the lanes."""
    rows = LANES[1:]
    return {
        "yaxis": {"domain": [share, 1]},
        "yaxis2": {
            "domain": [0, share - 80 / (_PLOT_PX + _STRIP_PX)],
            "anchor": "x2",
            "tickvals": [ROW[lane] for lane in rows],
            "ticktext": list(rows),
            "fixedrange": True,
            "showgrid": False,
        },
        "xaxis2": {
            "anchor": "y2",
            "title": {"text": "time (µs) of the whole run, aggregated: busy share per bin; the box is drawn above"},
            "range": [0, length_us],
            "tickformat": ",",
            "exponentformat": "none",
        },
    }
