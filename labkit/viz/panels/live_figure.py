"""The Live panel's picture: the last steps on an axis that moves on, with a line where switches were flipped."""

from __future__ import annotations

from collections.abc import Iterable

import plotly.graph_objects as go

from labkit.trace.events import LANES, Trace
from labkit.viz import style
from labkit.viz.bars import select
from labkit.viz.drawing import ROW, bar_traces
from labkit.viz.labels import label_trace
from labkit.viz.panels.running import Flip

_LANES_PX, _MARGIN = 400, {"l": 115, "r": 20, "t": 100, "b": 65}


def live_figure(trace: Trace, flips: Iterable[Flip]) -> go.Figure:
    """The lanes over ms since the start of the run; a flip is a line across them, named above."""
    selection = select(trace, None, None, 4000)
    low, high = selection.start_ns / 1e6, max(selection.end_ns / 1e6, selection.start_ns / 1e6 + 1e-3)
    figure = go.Figure(layout=_layout(low, high))
    bars = bar_traces(selection.bars, 0)
    for bar in bars:
        if bar.base is not None:
            bar.update(base=[us / 1000 for us in bar.base], x=[us / 1000 for us in bar.x])
    labels = label_trace(selection, 0)
    labels.x = [us / 1000 for us in labels.x]
    return figure.add_traces([*bars, labels, _flip_trace([flip for flip in flips if flip.end_ns / 1e6 >= low])])


def _flip_trace(flips: Iterable[Flip]) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    for flip in flips:
        x += [flip.start_ns / 1e6] * 2 + [None]
        y += [-0.55, len(LANES) - 0.32, None]
        texts += ["", f" <b>{flip.text}</b>", ""]
    return go.Scatter(
        name="flip",
        x=x,
        y=y,
        text=texts,
        mode="lines+text",
        textposition="middle right",
        textfont={"size": style.NOTE, "color": style.INK},
        line={"color": style.INK, "width": 4, "dash": "dash"},
        hoverinfo="text",
    )


def _layout(low: float, high: float) -> go.Layout:
    return go.Layout(
        template=style.template(),
        barmode="overlay",
        height=_LANES_PX + _MARGIN["t"] + _MARGIN["b"],
        margin=_MARGIN,
        autosize=True,
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        xaxis={"title": {"text": "time (ms) since the start"}, "range": [low, high], "tickformat": ",", "nticks": 8},
        yaxis={
            "tickvals": [ROW[lane] for lane in LANES],
            "ticktext": [f"<b>{lane}</b>" for lane in LANES],
            "tickfont": {"size": style.LANE},
            "range": [-0.55, len(LANES) - 0.2],
            "fixedrange": True,
            "showgrid": False,
        },
    )
