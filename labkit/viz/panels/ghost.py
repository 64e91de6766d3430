"""The Switchboard's picture: the timeline of a run, with the run before it as a grey ghost under each lane."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from labkit.analysis.races import RaceReport
from labkit.analysis.units import time_text
from labkit.trace.events import LANES
from labkit.viz import style
from labkit.viz.bars import IDLE, LAUNCH, WAIT
from labkit.viz.drawing import ROW, PlainTrace, bar_traces
from labkit.viz.figures import summary
from labkit.viz.labels import label_trace
from labkit.viz.panels.board import Outcome
from labkit.viz.panels.lanes import LEGEND, PlainFigure, lanes_layout
from labkit.viz.race_marks import race_trace

GHOST = "run before"
_GHOST_FILL, _FAINT, _HEIGHT = "#8C8C8C", "#595959", 0.12
_LANES_PX, _TOP_PX = 430, 80  # above: the legend; the panel says above the figure what a title says elsewhere


def board_figure(outcome: Outcome, before: Outcome | None = None, races: RaceReport | None = None) -> PlainFigure:
    """The whole run from 0, on one time scale with the run before, and a mark where each of them finished."""
    trace, zero_ns = outcome.trace, outcome.trace.start_ns
    drawn = [*bar_traces(outcome.selection.bars, zero_ns), label_trace(outcome.selection, zero_ns)]
    if races is not None and races.races:
        drawn.append(race_trace(trace, races, trace.duration_ns).to_plotly_json())
    end, notes = trace.duration_ns, [_note(trace.duration_ns, "finished", 0.68, style.INK)]
    if before is not None:
        ended = before.trace.duration_ns
        drawn.append(ghost_trace(before))
        notes.append(_note(ended, "before", 0.32, _FAINT))
        end = max(end, ended)
    drawn.append(_finish(trace.duration_ns, "end of this run", style.INK, "solid"))
    if before is not None:
        drawn.append(_finish(before.trace.duration_ns, "end of the run before", _FAINT, "dot"))
    layout = lanes_layout(
        {"title": {"text": "time (µs)"}, "range": [0, 1.02 * end / 1000]},
        lanes_px=_LANES_PX,
        above_px=_TOP_PX,
        top=len(LANES) - 0.45,
        annotations=notes,
        uirevision="labkit",  # a zoom survives a flip
        meta={"summary": summary(outcome.report)},
    )
    return {"data": drawn, "layout": layout}


def ghost_trace(outcome: Outcome) -> PlainTrace:
    """What the host's phases and the device's operations of another run occupied, thin and grey, lane by lane."""
    bars = [bar for bar in outcome.selection.bars if bar.kind not in (WAIT, LAUNCH, IDLE)]
    zero_ns = outcome.trace.start_ns
    return {
        "type": "bar",
        "name": GHOST,
        "orientation": "h",
        "base": [(bar.start_ns - zero_ns) / 1000 for bar in bars],
        "x": [(bar.end_ns - bar.start_ns) / 1000 for bar in bars],
        "y": [ROW[bar.lane] - 0.53 + _HEIGHT / 2 for bar in bars],
        "width": _HEIGHT,
        "customdata": [f"{bar.name}, step {bar.step}" for bar in bars],
        "hovertemplate": "run before: %{customdata}<extra></extra>",
        "textposition": "none",
        "marker": {"color": _GHOST_FILL, "line": {"width": 1, "color": style.PAPER}},
    }


def bare(figure: go.Figure) -> go.Figure:
    """The figure without its title, as wide as the panel, its legend above the plot."""
    height = figure.layout.height - figure.layout.margin.t + _TOP_PX
    return figure.update_layout(title=None, margin_t=_TOP_PX, height=height, autosize=True, legend=LEGEND)


def _finish(end_ns: int, name: str, colour: str, dash: str) -> PlainTrace:
    """A line across all lanes at the end of a run; a note beside it says what it is."""
    line = {"color": colour, "width": 3, "dash": dash}
    span = [-0.55, len(LANES) - 0.45]
    return {
        "type": "scatter",
        "name": name,
        "x": [end_ns / 1000] * 2,
        "y": span,
        "mode": "lines",
        "line": line,
        "hoverinfo": "name",
        "showlegend": False,
    }


def _note(end_ns: int, what: str, place: float, colour: str) -> dict[str, Any]:
    """The time at which a run finished, in the mostly empty lane H2D, left of its line."""
    return {
        "x": end_ns / 1000,
        "y": ROW["H2D"] - 0.5 + place,
        "text": f"<b>{what}: {time_text(end_ns)}</b>",
        "font": {"size": style.NOTE, "color": colour},
        "xanchor": "right",
        "xshift": -6,
        "showarrow": False,
        "bgcolor": "rgba(255, 255, 255, 0.75)",  # a copy beneath it stays visible
    }
