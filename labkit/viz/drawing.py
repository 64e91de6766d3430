"""The plotly traces of a timeline: bars, arrows, and the strip. Times become microseconds here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import plotly.graph_objects as go

from labkit.analysis.idle import Wait, Waits
from labkit.analysis.occupancy import occupancy
from labkit.analysis.units import bytes_text, time_text
from labkit.trace.events import DEVICE_KINDS, LANES, Span, Trace
from labkit.viz import style
from labkit.viz.bars import IDLE, WAIT, Bar, Selection

ROW = {lane: len(LANES) - 1 - place for place, lane in enumerate(LANES)}  # y of a lane; the CPU is on top
BINS = 400
_HOVER = (
    "<b>%{customdata[0]}</b> (%{customdata[1]})<br>%{customdata[2]}<br>%{customdata[3]}%{customdata[4]}<extra></extra>"
)


PlainTrace = dict[str, Any]  # a plotly trace as data: a panel sends it as it is, without the time that checking takes


def bar_traces(bars: Iterable[Bar], zero_ns: int) -> list[PlainTrace]:
    """One trace per kind, host waits after the phases that they lie over, and the key to the slots' hatches."""
    kinds: dict[str, list[Bar]] = {}
    for bar in bars:
        kinds.setdefault(bar.kind, []).append(bar)
    known = [kind for kind in style.LOOKS if kind in kinds]
    others = sorted(kind for kind in kinds if kind not in style.LOOKS)
    slots = sorted({bar.slot for group in kinds.values() for bar in group if bar.slot})
    hatches = {slot: style.SLOT_HATCHES[place % len(style.SLOT_HATCHES)] for place, slot in enumerate(slots)}
    traces = [_bar_trace(kind, kinds[kind], hatches, zero_ns) for kind in others + known]
    return traces + [_slot_key(slot, hatch) for slot, hatch in hatches.items() if len(hatches) > 1]


def look_of(bar: Bar) -> style.Look:
    return style.LOOKS.get(bar.kind, style.OTHER_PHASE if bar.lane == "CPU" else style.OTHER_OPERATION)


def _bar_trace(kind: str, bars: list[Bar], hatches: dict[str, str], zero_ns: int) -> PlainTrace:
    look = look_of(bars[0])
    bars = sorted(bars, key=lambda bar: bar.slot)  # stable; the legend shows the first one's hatch
    return {
        "type": "bar",
        "name": kind,
        "orientation": "h",
        "base": [(bar.start_ns - zero_ns) / 1000 for bar in bars],
        "x": [(bar.end_ns - bar.start_ns) / 1000 for bar in bars],
        "y": [ROW[bar.lane] + look.lift for bar in bars],
        "width": look.height,
        "customdata": [_customdata(bar, zero_ns) for bar in bars],
        "hovertemplate": _HOVER,
        "textposition": "none",
        "legendgroup": look.section,
        "legendgrouptitle": {"text": look.section},
        "marker": {
            "color": look.fill,
            "line": {"width": look.outline_px if look.outline else 0, "color": look.outline or look.fill},
            "pattern": _pattern(look, [hatches.get(bar.slot, "") for bar in bars]),
        },
    }


def _pattern(look: style.Look, shapes: list[str]) -> dict[str, object]:
    if look.hatch:
        return {"shape": look.hatch, "fillmode": "replace", "bgcolor": style.PAPER, "size": 8, "solidity": 0.3}
    shape = shapes if any(shapes) else ""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": look.text, "fgopacity": 0.35, "size": 9, "solidity": 0.2}


def _slot_key(slot: str, hatch: str) -> PlainTrace:
    """An entry of the legend that explains a slot's hatch."""
    pattern = {"shape": hatch, "fillmode": "overlay", "fgcolor": style.INK, "size": 9, "solidity": 0.2}
    return {
        "type": "bar",
        "name": f"slot {escape(slot)}",
        "orientation": "h",
        "x": [None],
        "y": [None],
        "legendgroup": "slots",
        "legendgrouptitle": {"text": "Slots"},
        "marker": {"color": style.GRID, "pattern": pattern},
        "hoverinfo": "skip",
    }


def _customdata(bar: Bar, zero_ns: int) -> list[str]:
    where = [f"step {bar.step}" if bar.step >= 0 else "", f"slot {bar.slot}" if bar.slot else ""]
    where += [f"stream {bar.stream}" if bar.stream else "", bytes_text(bar.bytes) if bar.bytes else ""]
    when = f"start {time_text(bar.start_ns - zero_ns)}, duration {time_text(bar.end_ns - bar.start_ns)}"
    named = ", ".join(part for part in where if part) or f"lane {bar.lane}"
    return [escape(bar.name), escape(bar.kind), escape(named), when, escape(_why(bar)).replace("\n", "<br>")]


def _why(bar: Bar) -> str:
    if bar.kind == IDLE:
        return f"\n{bar.detail}"
    if bar.lane == "CPU" and bar.kind != WAIT:
        return ""  # the host's own work
    return f"\nwaited for {bar.detail or 'nothing but its own stream'}"


def arrow_trace(trace: Trace, step: int) -> go.Scatter:
    """What the spans of one step waited for, as arrows, all in one trace."""
    waits, zero_ns = Waits(trace), trace.start_ns
    x: list[float | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    for span in trace.step(step):
        for wait in waits.of(span):
            start, end = _arrow(wait, span)
            x += [(start[0] - zero_ns) / 1000, (end[0] - zero_ns) / 1000, None]
            y += [start[1], end[1], None]
            texts += ["", escape(f"{span.name} waited for {wait}"), ""]
    return go.Scatter(
        name="waited for",
        x=x,
        y=y,
        text=texts,
        mode="lines+markers",
        line={"color": style.INK, "width": 2},
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": [0, 14, 0] * (len(texts) // 3),
            "color": style.INK,
            "opacity": 1,
        },
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def _arrow(wait: Wait, span: Span) -> tuple[tuple[int, float], tuple[int, float]]:
    """From the edge of one bar to the facing edge of the other; into a host wait where it ends."""
    source, target = ROW[wait.before.lane], ROW[span.lane]
    up = (target > source) - (target < source)
    arrives = span.start_ns if span.kind in DEVICE_KINDS else max(span.start_ns, wait.before.end_ns)
    leaves = min(wait.before.end_ns, arrives)  # a launch may return after the device has begun
    return (leaves, source + up * _half_height(wait.before.lane)), (arrives, target - up * _half_height(span.lane))


def _half_height(lane: str) -> float:
    return style.LOOKS[f"{lane} copy" if lane in ("H2D", "D2H") else "kernel"].height / 2


def strip_traces(trace: Trace, selection: Selection) -> list[go.Heatmap | go.Scatter]:
    """The busy share of the device lanes over the whole run, and a box around what is drawn above."""
    zero_ns, lanes = trace.start_ns, [occupancy(trace, lane, BINS) for lane in LANES[1:]]
    edges = [(ns - zero_ns) / 1000 for ns in lanes[0].edges_ns]
    low, high = ((ns - zero_ns) / 1000 for ns in (selection.start_ns, selection.end_ns))
    strip = go.Heatmap(
        x=edges,
        y=[ROW[lane.lane] for lane in lanes],
        z=[[round(share, 4) for share in lane.share] for lane in lanes],
        zmin=0,
        zmax=1,
        colorscale=[[0, style.PAPER], [1, "#00513B"]],
        showscale=False,
        hovertemplate="busy %{z:.1%} of this bin<extra></extra>",
        xaxis="x2",
        yaxis="y2",
    )
    box = go.Scatter(
        x=[low, high, high, low, low],
        y=[-0.5, -0.5, 2.5, 2.5, -0.5],
        mode="lines",
        line={"color": style.INK, "width": 3},
        hoverinfo="skip",
        showlegend=False,
        xaxis="x2",
        yaxis="y2",
    )
    return [strip, box]
