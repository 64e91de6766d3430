"""Counters beneath a timeline, on its time axis: steps in flight, GPU active, tokens/s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from labkit.analysis.comparison import step_ends
from labkit.analysis.counters import active_ns, steps_in_flight, token_rates
from labkit.analysis.units import share_text
from labkit.steplog import StepRecord
from labkit.trace.events import Trace
from labkit.viz import style

BINS = 150
_HEADROOM = 1.9  # the counter's name is written above its highest value


@dataclass(frozen=True)
class Counter:
    """One counter in the drawn range: times in µs since the start of the trace, and the value from each one on."""

    name: str
    x: list[float]
    y: list[float]
    top: float
    colour: str
    unit: str


def counters(trace: Trace, start_ns: int, end_ns: int, steps: Sequence[StepRecord] = ()) -> list[Counter]:
    """The counters of a range; tokens/s only where the steps of the run are known."""
    if end_ns <= start_ns:
        return []
    made = [_in_flight(trace, start_ns, end_ns), _active(trace, start_ns, end_ns)]
    return [*made, _tokens(trace, start_ns, end_ns, steps)] if steps else made


def _in_flight(trace: Trace, start_ns: int, end_ns: int) -> Counter:
    changes = steps_in_flight(trace)
    before = [count for ns, count in changes if ns <= start_ns][-1:] or [0]
    inside = [(ns, count) for ns, count in changes if start_ns < ns < end_ns]
    x = [start_ns, *(ns for ns, _ in inside), end_ns]
    y = [*before, *(count for _, count in inside)]
    most = max(1, *y)
    return Counter("steps in flight", _us(trace, x), [*map(float, y), float(y[-1])], most, style.CPU, "steps")


def _active(trace: Trace, start_ns: int, end_ns: int) -> Counter:
    bins = min(BINS, end_ns - start_ns)
    edges = [start_ns + (end_ns - start_ns) * place // bins for place in range(bins + 1)]
    active = active_ns(trace, edges)
    shares = [round(busy / (end - start) * 100, 3) for busy, start, end in zip(active, edges, edges[1:], strict=False)]
    name = f"GPU active in view: {share_text(sum(active) / (end_ns - start_ns))}"
    return Counter(name, _us(trace, edges), [*shares, shares[-1]], 100, style.GRAPH, "%")


def _tokens(trace: Trace, start_ns: int, end_ns: int, steps: Sequence[StepRecord]) -> Counter:
    """Each step's rate is drawn over the time that the step took."""
    counts = {step.step: sum(row.sampled is not None for row in step.rows) for step in steps}
    ends = [(end, counts.get(step, 0)) for step, end in step_ends(trace).items()]
    rates = token_rates(ends, trace.start_ns)
    starts = [trace.start_ns, *(end for end, _ in ends)]
    inside = [(max(start, start_ns), rate) for start, (end, rate) in zip(starts, rates, strict=False) if end > start_ns]
    inside = [(start, rate) for start, rate in inside if start < end_ns] or [(start_ns, 0.0)]
    x = [*(start for start, _ in inside), end_ns]
    y = [round(rate, 3) for _, rate in inside]
    return Counter("tokens/s", _us(trace, x), [*y, y[-1]], max(1.0, *y), style.D2H, "tokens/s")


def _us(trace: Trace, times: Sequence[int]) -> list[float]:
    zero_ns = trace.start_ns  # looks at every span
    return [(ns - zero_ns) / 1000 for ns in times]


def counter_trace(counter: Counter, axis: str) -> go.Scatter:
    """A counter as steps, filled down to zero."""
    return go.Scatter(
        name=counter.name,
        x=counter.x,
        y=counter.y,
        yaxis=axis,
        mode="lines",
        line={"shape": "hv", "width": 2, "color": counter.colour},
        fill="tozeroy",
        hovertemplate=f"%{{y:,.4g}} {counter.unit} at %{{x:,.1f}} µs<extra></extra>",
        showlegend=False,
    )


def counter_axis(counter: Counter, domain: list[float]) -> dict[str, Any]:
    return {
        "domain": domain,
        "anchor": "x",
        "range": [0, counter.top * _HEADROOM],
        "tickvals": [0, counter.top],
        "ticktext": ["0", f"{counter.top:,.0f}" + (" %" if counter.unit == "%" else "")],
        "tickfont": {"size": style.NOTE},
        "fixedrange": True,
        "showgrid": False,
    }


def counter_name(counter: Counter, axis: str) -> dict[str, Any]:
    """The name, in the room above the values."""
    return {
        "text": f"<b>{counter.name}</b>",
        "xref": "x domain",
        "yref": f"{axis} domain",
        "x": 0.005,
        "y": 1,
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
        "borderpad": 0,
        "font": {"size": style.NOTE},
    }
