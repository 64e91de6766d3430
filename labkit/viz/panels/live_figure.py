"""The Live panel's picture: the last steps on an axis that moves on, with a line where switches were flipped."""

from __future__ import annotations

from collections.abc import Iterable

from labkit.trace.events import LANES, Trace
from labkit.viz import style
from labkit.viz.bars import select
from labkit.viz.drawing import PlainTrace, bar_traces
from labkit.viz.labels import label_trace
from labkit.viz.panels.lanes import PlainFigure, lanes_layout
from labkit.viz.panels.running import Flip

_LANES_PX, _TOP_PX = 400, 100  # above: the legend, and the names of flips


def live_figure(trace: Trace, flips: Iterable[Flip]) -> PlainFigure:
    """The lanes over ms since the start of the run; a flip is a line across them, named above."""
    selection = select(trace, None, None, 4000)
    low, high = selection.start_ns / 1e6, max(selection.end_ns / 1e6, selection.start_ns / 1e6 + 1e-3)
    drawn = [*bar_traces(selection.bars, 0), label_trace(selection, 0)]
    for part in drawn:
        for axis in ("base", "x"):
            if axis in part:
                part[axis] = [None if us is None else us / 1000 for us in part[axis]]
    layout = lanes_layout(
        {"title": {"text": "time (ms) since the start"}, "range": [low, high], "nticks": 8},
        lanes_px=_LANES_PX,
        above_px=_TOP_PX,
        top=len(LANES) - 0.2,
        meta={"summary": "The last steps of the running engine."},
    )
    return {"data": [*drawn, _flip_trace([flip for flip in flips if flip.end_ns / 1e6 >= low])], "layout": layout}


def _flip_trace(flips: Iterable[Flip]) -> PlainTrace:
    x: list[float | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    for flip in flips:
        x += [flip.start_ns / 1e6] * 2 + [None]
        y += [-0.55, len(LANES) - 0.32, None]
        texts += ["", f" <b>{flip.text}</b>", ""]
    return {
        "type": "scatter",
        "name": "flip",
        "x": x,
        "y": y,
        "text": texts,
        "mode": "lines+text",
        "textposition": "middle right",
        "textfont": {"size": style.NOTE, "color": style.INK},
        "line": {"color": style.INK, "width": 4, "dash": "dash"},
        "hoverinfo": "text",
    }
