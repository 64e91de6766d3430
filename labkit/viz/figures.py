"""A trace as a picture: four lanes over time, what ran, what waited, and why.

Numbers come from ``analysis.report`` and bars from the raw spans: nothing is merged. A run with too many bars is shown
as the steps in its middle, with an occupancy strip over the whole run that says that it is aggregated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from labkit.analysis.occupancy import Report, report
from labkit.analysis.races import RaceReport
from labkit.analysis.units import share_text, time_text
from labkit.errors import InvalidArgument
from labkit.trace.events import LANES, Trace
from labkit.viz import style
from labkit.viz.bars import Selection, select
from labkit.viz.batches import batch_view, kv_view
from labkit.viz.blame import blame
from labkit.viz.carried import carry_over_view
from labkit.viz.compare import compare
from labkit.viz.drawing import ROW, arrow_trace, bar_traces, strip_traces
from labkit.viz.frame import domains, frame, table_of, trace_of
from labkit.viz.labels import label_trace
from labkit.viz.memory import memory
from labkit.viz.race_marks import race_notes, race_trace
from labkit.viz.strips import Counter, counter_axis, counter_name, counter_trace, counters
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

_LANES_PX, _COUNTER_PX, _STRIP_PX = 430, 66, 110
_BETWEEN_PX, _AXIS_PX = 12, 80  # between the counters; below the axis, where the strip follows

_EMPTY = "The trace is empty: nothing was recorded."


def timeline(
    source: Any,
    *,
    steps: int | tuple[int, int] | None = None,
    window: tuple[int, int] | None = None,
    arrows_for: int | None = None,
    races: RaceReport | None = None,
    beneath: bool = True,
    max_bars: int = 4000,
) -> go.Figure:
    """Draw the lanes CPU, H2D, compute and D2H over time in microseconds since the start of the trace.

    Args:
        source: a Trace, or a Run with one; a run's counters have its tokens/s too.
        steps: a step, or the first and the last step to show; default the whole run.
        window: ``(start_ns, end_ns)`` on the trace's clock, instead of steps.
        arrows_for: a step whose dependencies are drawn as arrows.
        races: what ``labkit.analysis.races.check(trace)`` found: marked on both accesses of each race.
        beneath: draw counters beneath the lanes.
        max_bars: above this many, the steps in the middle are shown, with a strip of the whole run.

    Returns:
        A plain Figure, the same for the same trace. ``layout.meta`` has its ``summary`` sentence and its ``notes``.

    Raises:
        InvalidArgument: a step that the trace does not have, a window outside it, both, or ``max_bars`` below 1.
    """
    trace = trace_of(source)
    selection = select(trace, steps, window, max_bars)
    if arrows_for is not None and all(span.step != arrows_for for span in trace.spans):
        raise InvalidArgument("arrows_for", arrows_for, f"one of the trace's {trace.steps} steps")
    lines = _counters(source, trace, selection) if beneath else []
    numbers = report(trace)
    notes = [*_notes(trace, numbers, selection, arrows_for), *_run_note(source)]
    notes += race_notes(races) if races is not None else []
    layout = _layout(trace, selection, summary(numbers), notes, lines)
    if not trace.spans:
        return go.Figure(layout=layout).add_annotation(
            text=_EMPTY, showarrow=False, x=0.5, xref="paper", y=0.5, yref="paper"
        )
    drawn: list[Any] = [*bar_traces(selection.bars, trace.start_ns), label_trace(selection, trace.start_ns)]
    if arrows_for is not None:
        drawn.append(arrow_trace(trace, arrows_for))
    if races is not None and races.races:
        drawn.append(race_trace(trace, races, selection.end_ns - selection.start_ns))
    drawn += [counter_trace(line, f"y{place}") for place, line in enumerate(lines, 3)]
    figure = go.Figure(drawn + (strip_traces(trace, selection) if selection.reduced else []), layout)
    for place, line in enumerate(lines, 3):
        figure.add_annotation(counter_name(line, f"y{place}"))
    return figure


def _counters(source: Any, trace: Trace, selection: Selection) -> list[Counter]:
    steps = () if isinstance(source, Trace) else getattr(source, "steps", ())
    return counters(trace, selection.start_ns, selection.end_ns, steps)


def table(
    source: Any,
    *,
    steps: int | tuple[int, int] | None = None,
    window: tuple[int, int] | None = None,
    max_bars: int = 4000,
) -> list[dict[str, Any]]:
    """The bars of ``timeline`` with the same arguments, as rows by start; times in µs since the start of the trace.

    Raises:
        InvalidArgument: as ``timeline``.
    """
    trace = trace_of(source)
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


def _run_note(source: Any) -> list[str]:
    """What a run was asked for; nothing for a trace."""
    if isinstance(source, Trace) or not hasattr(source, "tokens"):
        return []
    on = ", ".join(source.switches.on) or "none"
    return [f"Run of {len(source.tokens)} requests, {sum(map(len, source.tokens))} tokens. Mechanisms: {on}."]


def _notes(trace: Trace, numbers: Report, selection: Selection, arrows_for: int | None) -> list[str]:
    """The definition beside the number, where the trace comes from, why the lane idles, and what is not shown."""
    source, device = (str(trace.meta.get(key, "")) for key in ("source", "device"))
    origin = device if source in device else f"{source}, {device}" if device else source
    notes, told = [f"GPU active: {numbers.gpu_active_means}."], [f"Trace: {origin}."] if origin else []
    if numbers.idle:
        reason, ns = max(numbers.idle.items(), key=lambda item: item[1])
        share = share_text(ns / numbers.idle_ns)
        told.append(f"Idle {time_text(numbers.idle_ns)}, the largest part: {reason} ({share}).")
    if arrows_for is not None:
        told.append(f"Arrows: what step {arrows_for} waited for.")
    notes += [" ".join(told)] if told else []
    first, last = selection.steps
    shown = "the middle of the range" if first < 0 else f"step {first}" if first == last else f"steps {first} to {last}"
    if selection.reduced:
        drawn = f"{len(selection.bars):,} of {selection.total:,} bars"
        notes.append(f"Drawn: {shown} ({drawn}). The strip below is the whole run, aggregated.")
    elif first >= 0:
        notes.append(f"Drawn: {shown} of {numbers.steps} steps; the numbers are of the whole run.")
    return notes


def _layout(trace: Trace, selection: Selection, sentence: str, notes: list[str], lines: Sequence[Counter]) -> go.Layout:
    blocks = [_LANES_PX, *[_COUNTER_PX] * len(lines), *[_STRIP_PX] * selection.reduced]
    gaps = [*[_BETWEEN_PX] * len(lines), *[_AXIS_PX] * selection.reduced]
    inner, placed = domains(blocks, gaps)
    low, high = ((ns - trace.start_ns) / 1000 for ns in (selection.start_ns, selection.end_ns))
    time = {"title": {"text": "time (µs)"}, "range": [low, high], "tickformat": ",", "exponentformat": "none"}
    below = f"y{len(lines) + 2}" if lines else "y"  # the axis that the time axis lies below
    layout = frame(
        sentence,
        notes,
        inner,
        xaxis=time | {"anchor": below},
        yaxis={
            "domain": placed[0],
            "tickvals": [ROW[lane] for lane in LANES],
            "ticktext": [f"<b>{lane}</b>" for lane in LANES],
            "tickfont": {"size": style.LANE},
            "range": [-0.55, len(LANES) - 0.45],
            "fixedrange": True,
            "showgrid": False,
        },
    )
    for place, line in enumerate(lines):
        layout[f"yaxis{place + 3}"] = counter_axis(line, placed[place + 1])
    if selection.reduced:
        layout.update(_strip_axes(placed[-1], (trace.end_ns - trace.start_ns) / 1000))
    return layout


def _strip_axes(domain: list[float], length_us: float) -> dict[str, Any]:
    """A second pair of axes, of the whole run, below everything else."""
    rows = LANES[1:]
    return {
        "yaxis2": {
            "domain": domain,
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
            "nticks": 6,
            "tickformat": ",",
            "exponentformat": "none",
        },
    }
