"""Grids of labelled cells: what sits where, step by step. Every cell says in words what its colour says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go

from labkit.errors import InvalidArgument
from labkit.steplog import StepRecord
from labkit.viz import style

# Okabe and Ito's colours without black, and what is readable on each. Requests repeat them: the number is the name.
REQUESTS: tuple[tuple[str, str], ...] = (
    ("#56B4E9", style.INK),
    (style.H2D, style.INK),
    (style.YELLOW, style.INK),
    (style.D2H, style.INK),
    (style.CPU, style.PAPER),
    (style.GRAPH, style.PAPER),
    ("#FFFFFF", style.INK),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A box of width 1 around (x, y), with a text in it and a longer one to hover."""

    x: float
    y: float
    text: str
    hover: str
    fill: str
    ink: str = style.INK
    hatch: str = ""


def request_colours(request: int) -> tuple[str, str]:
    """Fill and text colour of a request."""
    return REQUESTS[request % len(REQUESTS)]


def cells_trace(name: str, cells: Iterable[Cell], size: int = style.LABEL, legend: bool = False) -> go.Bar:
    """Cells as one trace of bars."""
    cells = list(cells)
    return go.Bar(
        name=name,
        orientation="h",
        base=[cell.x - 0.46 for cell in cells],
        x=[0.92] * len(cells),
        y=[cell.y for cell in cells],
        width=0.88,
        text=[escape(cell.text) for cell in cells],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        textfont={"size": size, "color": [cell.ink for cell in cells]},
        hovertext=[escape(cell.hover).replace("\n", "<br>") for cell in cells],
        hovertemplate="%{hovertext}<extra></extra>",
        showlegend=legend,
        marker={
            "color": [cell.fill for cell in cells],
            "line": {"width": 1, "color": style.INK},
            "pattern": {
                "shape": [cell.hatch for cell in cells],
                "fillmode": "overlay",
                "fgcolor": [cell.ink for cell in cells],
                "fgopacity": 0.3,
                "size": 9,
                "solidity": 0.15,
            },
        },
    )


def key_trace(name: str, fill: str, hatch: str = "") -> go.Bar:
    """An entry of the legend for a kind of cell."""
    pattern = {"shape": hatch, "fillmode": "overlay", "fgcolor": style.INK, "fgopacity": 0.6, "size": 7}
    marker = {"color": fill, "pattern": pattern, "line": {"width": 1, "color": style.INK}}
    return go.Bar(name=name, orientation="h", x=[None], y=[None], marker=marker, hoverinfo="skip")


def steps_of(run: Any) -> tuple[StepRecord, ...]:
    """The steps of a run.

    Raises:
        InvalidArgument: not a run, or one without steps.
    """
    steps: tuple[StepRecord, ...] = getattr(run, "steps", ()) if not callable(getattr(run, "steps", None)) else ()
    if not isinstance(steps, tuple) or not steps:
        raise InvalidArgument("run", run, "a Run of an engine built with trace=True")
    return steps


def chosen_steps(steps: Sequence[StepRecord], wanted: tuple[int, int] | None, most: int) -> list[StepRecord]:
    """The steps of a range of step numbers; the first ``most`` of the run by default.

    Raises:
        InvalidArgument: a range that is no part of the run.
    """
    if wanted is None:
        return list(steps[:most])
    low, high = steps[0].step, steps[-1].step
    if not (len(wanted) == 2 and low <= wanted[0] <= wanted[1] <= high):
        raise InvalidArgument("steps", wanted, f"the first and the last step, from {low} to {high}")
    return [step for step in steps if wanted[0] <= step.step <= wanted[1]]


def step_axis(steps: Sequence[StepRecord]) -> dict[str, Any]:
    """Steps from left to right, each with its slot."""
    every = max(1, len(steps) // 16)
    return {
        "title": {"text": "step, and its slot", "standoff": 14},
        "tickvals": [step.step for step in steps[::every]],
        "ticktext": [f"{step.step}<br>{step.slot}" for step in steps[::every]],
        "range": [steps[0].step - 0.55, steps[-1].step + 0.55],
        "showgrid": False,
    }
