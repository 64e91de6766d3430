"""Where the idle time went: one row per reason, one stretch per cause, and all of them end to end are 100 %."""

from __future__ import annotations

from html import escape
from typing import Any

import plotly.graph_objects as go

from labkit.analysis import blame as analysis
from labkit.analysis.occupancy import Report, report
from labkit.analysis.units import share_text, time_text
from labkit.viz import style
from labkit.viz.frame import Table, frame, trace_of

_ROW_PX, _PLOT_PX, _CHARACTER_PX = 86, 560, 8
_BAR, _LIFT = 0.5, 0.12  # height of a bar, and its middle above that of its row: the causes are written below it
_LOOKS = {
    analysis.EVENT: style.LOOKS["H2D copy"],
    analysis.COPY: style.LOOKS["D2H copy"],
    analysis.LAUNCH: style.Look(style.YELLOW, outline=style.INK),
    analysis.DRAINED: style.Look("#7F7F7F", outline=style.INK, hatch="."),
    analysis.IN_OPERATION: style.Look(style.IDLE, outline=style.INK, hatch="x"),
}


def blame(source: Any) -> go.Figure:
    """Draw where the idle time of the compute lane went.

    Every row is a reason; within it, a stretch for each phase that the CPU was in, or each operation waited for. A row
    starts where the row above ends, so that the rows cover 0 to 100 % of the idle time.

    Args:
        source: a Trace, or a Run with one.
    """
    trace = trace_of(source)
    numbers, parts = report(trace), analysis.blame(trace)
    reasons = list(dict.fromkeys(part.reason for part in parts))
    figure = go.Figure(layout=_layout(numbers, parts, reasons))
    before = 0
    for row, reason in enumerate(reasons):
        start, here = before, [part for part in parts if part.reason == reason]
        for part in here:
            figure.add_trace(_bar(part, before, row, numbers))
            before += part.ns
        _write_causes(figure, here, start, before, row, numbers.idle_ns)
    return figure


def _write_causes(
    figure: go.Figure, parts: list[analysis.Part], start_ns: int, end_ns: int, row: int, idle_ns: int
) -> None:
    """A line below the bars of a row, within the plot: from their start, or up to their end."""
    left = start_ns < idle_ns / 2
    figure.add_annotation(
        text=escape(", ".join(f"{part.cause} {share_text(part.ns / idle_ns)}" for part in parts)),
        x=(start_ns if left else end_ns) / idle_ns * 100,
        xanchor="left" if left else "right",
        y=row + 0.32,
        font={"size": style.LABEL},
        showarrow=False,
        borderpad=0,
    )


def _bar(part: analysis.Part, before_ns: int, row: int, numbers: Report) -> go.Bar:
    idle, look = numbers.idle_ns, _look(part)
    share = part.ns / idle
    pattern = {"shape": look.hatch, "fillmode": "replace", "bgcolor": style.PAPER, "size": 8, "solidity": 0.2}
    return go.Bar(
        name=escape(part.cause),
        orientation="h",
        base=[before_ns / idle * 100],
        x=[share * 100],
        y=[row - _LIFT],
        width=_BAR,
        text=escape(part.cause) if not look.hatch and len(part.cause) * _CHARACTER_PX < share * _PLOT_PX else "",
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"size": style.LABEL, "color": look.text},
        customdata=[[escape(part.reason), escape(part.cause), time_text(part.ns), _ended(part)]],
        hovertemplate="<b>%{customdata[0]}</b>: %{customdata[1]}<br>%{customdata[2]}, %{x:.2f} % of the idle time"
        "<br>%{customdata[3]}<extra></extra>",
        showlegend=False,
        marker={
            "color": look.fill,
            "line": {"width": 1, "color": look.outline or style.PAPER},
            "pattern": pattern if look.hatch else {"shape": ""},
        },
    )


def _look(part: analysis.Part) -> style.Look:
    if part.reason == analysis.CPU:
        return style.LOOKS.get(part.cause, style.OTHER_PHASE)
    return _LOOKS[part.reason]


def _ended(part: analysis.Part) -> str:
    gaps = f"{part.gaps} gap{'s' * (part.gaps != 1)}, ended by " if part.gaps else ""
    return gaps + escape(", ".join(part.ended_by)) if gaps else "between the kernels of one operation"


def _layout(numbers: Report, parts: tuple[analysis.Part, ...], reasons: list[str]) -> go.Layout:
    idle = numbers.idle_ns
    sums = {reason: sum(part.ns for part in parts if part.reason == reason) for reason in reasons}
    ticks = [f"<b>{reason}</b><br>{time_text(ns)}, {share_text(ns / idle)}" for reason, ns in sums.items()]
    return frame(
        _sentence(numbers, parts),
        [
            "Idle: no kernel is running on the compute lane. Each row starts where the row above ends: together 100 %.",
            "Waiting for the CPU is split by the phase that the CPU was in meanwhile.",
        ],
        max(1, len(reasons)) * _ROW_PX + 10,
        _table(numbers, parts),
        margin={"l": 290},
        xaxis={"title": {"text": f"share of the idle time, {time_text(idle)} (%)"}, "range": [0, 100.5]},
        yaxis={
            "tickvals": [row - _LIFT for row in range(len(reasons))],
            "ticktext": ticks,
            "range": [max(1, len(reasons)) - 0.5, -0.5],  # the first reason is on top
            "fixedrange": True,
            "showgrid": False,
        },
    )


def _sentence(numbers: Report, parts: tuple[analysis.Part, ...]) -> str:
    if not parts:
        return "The compute lane was never idle." if numbers.window_ns else "The trace is empty: nothing was recorded."
    most = max(parts, key=lambda part: part.ns)
    what = f"{most.reason} ({most.cause})"
    return f"Idle {time_text(numbers.idle_ns)}; the largest part, {share_text(most.ns / numbers.idle_ns)}: {what}."


def _table(numbers: Report, parts: tuple[analysis.Part, ...]) -> Table:
    return [
        {
            "reason": part.reason,
            "cause": part.cause,
            "idle_us": part.ns / 1000,
            "share_percent": part.ns / numbers.idle_ns * 100,
            "gaps": part.gaps,
            "ended_by": ", ".join(part.ended_by),
        }
        for part in parts
    ]
