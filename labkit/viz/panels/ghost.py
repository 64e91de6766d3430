"""The Switchboard's picture: the timeline of a run, with the run before it as a grey ghost under each lane."""

from __future__ import annotations

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
    figure = timeline(trace, races=races, beneath=False)
    ends = [trace.duration_ns / 1000]
    if before is not None:
        figure.add_trace(ghost_trace(before))
        ends.append(before.duration_ns / 1000)
    figure.add_trace(_finish(ends[0], "end of this run", style.INK, "solid"))
    notes = [_note(ends[0], f"finished: {time_text(trace.duration_ns)}", 0.68, style.INK)]
    if before is not None:
        figure.add_trace(_finish(ends[1], "end of the run before", _FAINT, "dot"))
        notes.append(_note(ends[1], f"before: {time_text(before.duration_ns)}", 0.32, _FAINT))
    return bare(figure).update_layout(xaxis_range=[0, 1.02 * max(ends)], annotations=notes)


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
    figure.update_traces(legendgroup="", legendgrouptitle=None)  # titles of groups look like entries in a row
    return figure.update_layout(title=None, margin_t=_TOP_PX, height=height, autosize=True, legend=legend)


def _finish(end_us: float, name: str, colour: str, dash: str) -> go.Scatter:
    """A line across all lanes at the end of a run."""
    line = {"color": colour, "width": 3, "dash": dash}
    span = [-0.55, len(LANES) - 0.45]
    return go.Scatter(name=name, x=[end_us] * 2, y=span, mode="lines", line=line, hoverinfo="name")


def _note(end_us: float, text: str, place: float, colour: str) -> dict[str, object]:
    """The time at which a run finished, in the mostly empty lane H2D, left of its line."""
    return {
        "x": end_us,
        "y": ROW["H2D"] - 0.5 + place,
        "text": f"<b>{text}</b>",
        "font": {"size": style.NOTE, "color": colour},
        "xanchor": "right",
        "xshift": -6,
        "showarrow": False,
        "bgcolor": style.PAPER,
    }
