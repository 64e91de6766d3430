"""What asynchrony gains over a range of batch sizes, hosts or models, and where it stops gaining."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go

from labkit.errors import InvalidArgument
from labkit.viz import style
from labkit.viz.frame import Table, domains, frame

NOTHING = 0.01  # a gain below this is none
_GAIN_PX, _TIME_PX, _GAP_PX = 260, 170, 36


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a sweep: what was varied, and the total time of both engines."""

    x: str
    sync_ms: float
    async_ms: float

    @property
    def gain(self) -> float:
        """Time saved by the asynchronous engine, as a share of the synchronous one's: 0.22 is 22 % less time."""
        return 1 - self.async_ms / self.sync_ms

    @property
    def speedup(self) -> float:
        return self.sync_ms / self.async_ms

    @property
    def verdict(self) -> str:
        return "gains" if self.gain >= NOTHING else "loses" if self.gain <= -NOTHING else "changes nothing"


def sweep(results: Iterable[Any], *, over: str = "") -> go.Figure:
    """Draw time saved by the asynchronous engine, and the times of both.

    Args:
        results: rows with ``x`` (what was varied), ``sync_ms`` and ``async_ms``: mappings, or objects with these
            attributes such as ``labkit.experiments.SweepRow``.
        over: what was varied, for the axis; default: the rows' own ``over``.

    Raises:
        InvalidArgument: no rows, a row without these numbers, or times that are not above zero.
    """
    rows = list(results)
    points = [_point(row) for row in rows]
    if not points:
        raise InvalidArgument("results", rows, "at least one row")
    over = over or str(_get(rows[0], "over") or "x")
    found = crossovers(points)
    figure = go.Figure(layout=_layout(points, over, found))
    figure.add_trace(_gains(points))
    for name, times, colour, hatch in (
        ("synchronous", [point.sync_ms for point in points], style.CPU, "/"),
        ("asynchronous", [point.async_ms for point in points], style.GRAPH, ""),
    ):
        figure.add_trace(_times(name, times, colour, hatch))
    for place in found:
        figure.add_trace(_crossover(place, points, figure.layout.yaxis.range))
    return figure


def crossovers(points: list[Point]) -> list[int]:
    """Places whose verdict (gains, changes nothing, loses) differs from that of the place before."""
    return [place for place in range(1, len(points)) if points[place].verdict != points[place - 1].verdict]


def _get(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)


def _point(row: Any) -> Point:
    x, times = _get(row, "x"), [_get(row, name) for name in ("sync_ms", "async_ms")]
    numbers = all(isinstance(ms, int | float) and not isinstance(ms, bool) and ms > 0 for ms in times)
    if x is None or not numbers:
        raise InvalidArgument("results", row, "rows with x, and sync_ms and async_ms above 0")
    return Point(f"{x:g}" if isinstance(x, float) else str(x), *times)


def _gains(points: list[Point]) -> go.Bar:
    gains = [point.gain * 100 for point in points]
    return go.Bar(
        name="time saved",
        x=list(range(len(points))),
        y=gains,
        width=0.6,
        text=[f"{-gain:+.1f} %<br>{point.speedup:.2f}x" for gain, point in zip(gains, points, strict=True)],
        textposition="outside",
        textfont={"size": style.LABEL},
        cliponaxis=False,
        hovertemplate="time saved: %{y:.2f} %<extra></extra>",
        showlegend=False,
        marker={
            "color": [style.COMPUTE if point.verdict == "gains" else style.IDLE for point in points],
            "pattern": {"shape": ["" if point.verdict == "gains" else "/" for point in points], "fgopacity": 0.6},
            "line": {"width": 1, "color": style.INK},
        },
    )


def _times(name: str, times: list[float], colour: str, hatch: str) -> go.Bar:
    first = bool(hatch)
    return go.Bar(
        name=name,
        x=[place - 0.2 if first else place + 0.2 for place in range(len(times))],
        y=times,
        width=0.38,
        yaxis="y2",
        hovertemplate=f"{name}: %{{y:,.3f}} ms<extra></extra>",
        marker={
            "color": colour,
            "line": {"width": 1, "color": style.INK},
            "pattern": {"shape": hatch, "fillmode": "overlay", "fgopacity": 0.6, "fgcolor": style.PAPER},
        },
    )


def _crossover(place: int, points: list[Point], ends: tuple[float, float]) -> go.Scatter:
    """A line between two places whose verdict differs."""
    text = f"crossover between {points[place - 1].x} and {points[place].x}"
    return go.Scatter(
        name="crossover",
        x=[place - 0.5] * 2,
        y=list(ends),
        mode="lines",
        line={"color": style.INK, "width": 2, "dash": "dash"},
        hoverinfo="text",
        text=text,
        legendgroup="crossover",
        showlegend=place == crossovers(points)[0],
    )


def _sentence(points: list[Point], over: str) -> str:
    best = max(points, key=lambda point: point.gain)
    if best.verdict != "gains":
        return f"The asynchronous engine gains nothing at any {over}."
    return (
        f"The asynchronous engine gains most at {over} {best.x}: {-best.gain * 100:+.1f} % time, {best.speedup:.2f}x."
    )


def _notes(points: list[Point], over: str, found: list[int]) -> list[str]:
    notes = ["Time saved: 1 - asynchronous / synchronous time of the whole run. Below 1 % counts as nothing."]
    for place in found:
        before, after = points[place - 1], points[place]
        notes.append(f"Crossover between {over} {before.x}, where it {before.verdict}, and {after.x}: {after.verdict}.")
    return notes if found else [*notes, f"No crossover: at every {over} the asynchronous engine {points[0].verdict}."]


def _layout(points: list[Point], over: str, found: list[int]) -> go.Layout:
    inner, (top, below) = domains([_GAIN_PX, _TIME_PX], [_GAP_PX])
    gains = [point.gain * 100 for point in points]
    room = max(2.0, max(gains) - min(gains)) * 0.35  # for the texts at the ends of the bars
    return frame(
        _sentence(points, over),
        _notes(points, over, found),
        inner,
        _table(points, over),
        xaxis={
            "title": {"text": escape(over)},
            "tickvals": list(range(len(points))),
            "ticktext": [escape(point.x) for point in points],
            "range": [-0.6, len(points) - 0.4],
            "anchor": "y2",
            "showgrid": False,
        },
        yaxis={
            "domain": top,
            "title": {"text": "time saved (%)"},
            "showgrid": False,
            "zeroline": True,
            "zerolinecolor": style.INK,
            "range": [min(0.0, min(gains)) - (room if min(gains) < 0 else 0), max(0.0, max(gains)) + room],
        },
        yaxis2={"domain": below, "title": {"text": "time (ms)"}, "tickformat": ",", "nticks": 5},
    )


def _table(points: list[Point], over: str) -> Table:
    return [
        {
            over: point.x,
            "sync_ms": point.sync_ms,
            "async_ms": point.async_ms,
            "time_saved_percent": point.gain * 100,
            "speedup": point.speedup,
            "verdict": point.verdict,
        }
        for point in points
    ]
