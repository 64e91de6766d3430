"""The Switchboard's picture: the timeline of a run, with the run before it as a grey ghost under each lane."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from labkit.analysis.races import RaceReport
from labkit.analysis.units import time_text
from labkit.trace.events import LANES, Trace
from labkit.viz import style
from labkit.viz.bars import IDLE, LAUNCH, WAIT, select
from labkit.viz.drawing import ROW
from labkit.viz.figures import timeline

GHOST = "run before"
_GHOST_FILL, _FAINT, _HEIGHT = "#8C8C8C", "#595959", 0.12
_TOP_PX = 80  # for the legend; the panel says above the figure what a title says elsewhere


def board_figure(trace: Trace, before: Trace | None = None, races: RaceReport | None = None) -> go.Figure:
    """The whole run from 0, on one time scale with the run before, and a mark where each of them finished."""
    end, notes = trace.duration_ns, [_note(trace.duration_ns, "finished", 0.68, style.INK)]
    extra: list[Any] = [_finish(end, "end of this run", style.INK, "solid")]
    if before is not None:
        extra = [ghost_trace(before), *extra, _finish(before.duration_ns, "end of the run before", _FAINT, "dot")]
        notes.append(_note(before.duration_ns, "before", 0.32, _FAINT))
        end = max(end, before.duration_ns)
    figure = timeline(trace, races=races, beneath=False).add_traces(extra)
    return bare(figure).update_layout(xaxis_range=[0, 1.02 * end / 1000], annotations=notes)


def ghost_trace(trace: Trace) -> go.Bar:
    """What the host's phases and the device's operations of another run occupied, thin and grey, lane by lane."""
    bars = [bar for bar in select(trace, None, None, 4000).bars if bar.kind not in (WAIT, LAUNCH, IDLE)]
    return go.Bar(
        name=GHOST,
        orientation="h",
        base=[(bar.start_ns - trace.start_ns) / 1000 for bar in bars],
        x=[(bar.end_ns - bar.start_ns) / 1000 for bar in bars],
        y=[ROW[bar.lane] - 0.53 + _HEIGHT / 2 for bar in bars],
        width=_HEIGHT,
        customdata=[f"{bar.name}, step {bar.step}" for bar in bars],
        hovertemplate="run before: %{customdata}<extra></extra>",
        textposition="none",
        marker={"color": _GHOST_FILL, "line": {"width": 1, "color": style.PAPER}},
    )


def bare(figure: go.Figure) -> go.Figure:
    """The figure without its title, as wide as the panel, its legend above the plot."""
    height = figure.layout.height - figure.layout.margin.t + _TOP_PX
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"}
    return figure.update_layout(title=None, margin_t=_TOP_PX, height=height, autosize=True, legend=legend)


def _finish(end_ns: int, name: str, colour: str, dash: str) -> go.Scatter:
    """A line across all lanes at the end of a run."""
    line = {"color": colour, "width": 3, "dash": dash}
    span = [-0.55, len(LANES) - 0.45]
    return go.Scatter(name=name, x=[end_ns / 1000] * 2, y=span, mode="lines", line=line, hoverinfo="name")


def _note(end_ns: int, what: str, place: float, colour: str) -> dict[str, object]:
    """The time at which a run finished, in the mostly empty lane H2D, left of its line."""
    return {
        "x": end_ns / 1000,
        "y": ROW["H2D"] - 0.5 + place,
        "text": f"<b>{what}: {time_text(end_ns)}</b>",
        "font": {"size": style.NOTE, "color": colour},
        "xanchor": "right",
        "xshift": -6,
        "showarrow": False,
        "bgcolor": style.PAPER,
    }
