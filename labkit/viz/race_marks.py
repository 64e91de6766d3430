"""Races on a timeline: a numbered mark on both accesses of each, and a line between them."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import plotly.graph_objects as go

from labkit.analysis.races import AccessReport, Race, RaceReport
from labkit.trace.events import DEVICE_KINDS, Span, Trace
from labkit.viz import style
from labkit.viz.drawing import ROW

_SHOWN = 4  # races that are told in the notes
_WIDTHS = 40  # marks that fit side by side
_SPREAD = (0.27, -0.27, 0.0)  # where marks of one place are put in their lane; further ones beside them

Mark = tuple[int, float, Race, AccessReport, int]  # time, y, the race, its access, its number


def race_trace(trace: Trace, report: RaceReport, drawn_ns: int) -> go.Scatter:
    """The marks of all races whose spans the trace has, as one trace of a figure that shows ``drawn_ns``."""
    marks = list(_marks(trace, report, max(1, drawn_ns // _WIDTHS)))
    zero_ns = trace.start_ns
    x: list[float | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    hovers: list[str] = []
    for place, (ns, row, race, access, number) in enumerate(marks):
        x.append((ns - zero_ns) / 1000)
        y.append(row)
        texts.append(f"<b>{number}</b>")
        hovers.append(_hover(number, race, access))
        if place + 1 < len(marks) and marks[place + 1][4] != number:
            x.append(None)
            y.append(None)
            texts.append("")
            hovers.append("")
    return go.Scatter(
        name="race",
        x=x,
        y=y,
        text=texts,
        hovertext=hovers,
        hovertemplate="%{hovertext}<extra></extra>",
        mode="lines+markers+text",
        textposition="middle center",
        textfont={"size": style.LABEL, "color": style.INK},
        line={"color": style.INK, "width": 2, "dash": "dot"},
        marker={"symbol": "octagon", "size": 23, "color": style.PAPER, "line": {"color": style.IDLE, "width": 3}},
        legendgroup="races",
        legendgrouptitle={"text": "Races"},
    )


def race_notes(report: RaceReport) -> list[str]:
    """The races in words, by their numbers."""
    if not report.races:
        return ["No races."]
    notes = []
    for number, race in enumerate(report.races[:_SHOWN], 1):
        sides = f"{_who(race.second)} is not ordered after {_who(race.first)}"
        notes.append(f"Race {number}: {race.kind} of {race.second.buffer}: {sides}.")
    rest = len(report.races) - _SHOWN
    return [*notes, f"And {rest} more."] if rest > 0 else notes


def _who(access: AccessReport) -> str:
    return "the host" if access.stream == "host" else f"`{access.operation}`"


def _marks(trace: Trace, report: RaceReport, width_ns: int) -> Iterator[Mark]:
    """Both accesses of each race, one after the other; a write counts at its end, a read at its start."""
    taken: dict[tuple[int, float], int] = {}  # marks so far at each width of a mark, to put the next one beside them
    for number, race in enumerate(report.races, 1):
        for access in (race.first, race.second):
            span = span_of(trace, access)
            if span is None:
                continue
            ns = span.end_ns if access.write else span.start_ns
            lane = ROW[span.lane]
            near = (taken.get((ns // width_ns + step, lane), -1) for step in (-1, 0, 1))
            order = taken[ns // width_ns, lane] = max(near) + 1
            beside, row = divmod(order, len(_SPREAD))
            yield ns + beside * width_ns, lane + _SPREAD[row], race, access, number


def span_of(trace: Trace, access: AccessReport) -> Span | None:
    """The span that made an access; for a node of a graph, the replay."""
    by_host = access.stream == "host"
    spans = [
        span
        for span in trace.step(access.step)
        if (span.kind not in DEVICE_KINDS if by_host else span.kind in DEVICE_KINDS and span.stream == access.stream)
    ]
    named = [span for span in spans if span.name == access.operation and span.kind != "launch"]
    staged = [span for span in trace.step(access.step) if span.name == access.operation and span.kind == "copy"]
    replays = [span for span in spans if span.kind == "graph"]
    return next(iter(named or (staged if by_host else replays)), None)


def _hover(number: int, race: Race, access: AccessReport) -> str:
    fix = f"\nfix: {race.fix}" if race.fix else ""
    text = f"Race {number}: {race.kind}\nthis: {access}\nfirst: {race.first}\nsecond: {race.second}{fix}"
    return escape(text).replace("\n", "<br>")
