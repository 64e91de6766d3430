"""StepThrough: a run moment by moment, with the code of the phase beside it. The state is ``walk.py``."""

from __future__ import annotations

from html import escape
from textwrap import dedent
from typing import Any

import ipywidgets as widgets
import plotly.graph_objects as go

from labkit.run import Run
from labkit.switches import Switches, ladder
from labkit.viz import style
from labkit.viz.drawing import ROW
from labkit.viz.figures import timeline
from labkit.viz.panels import words
from labkit.viz.panels.board import Board, Setup
from labkit.viz.panels.controls import button, dropdown, row
from labkit.viz.panels.ghost import bare
from labkit.viz.panels.plot import Plot
from labkit.viz.panels.walk import EXECUTION, ISSUE, Code, Walk


class StepThrough(widgets.VBox):
    """One moment at a time, in issue order or in execution order.

    Args:
        run: a run with a trace, or what to run: Switches, or a rung's name or number.

    Raises:
        InvalidArgument: a run without a trace.
    """

    def __init__(self, run: Run | Switches | int | str = "carry_over") -> None:
        self.state = Walk(run if isinstance(run, Run) else _run_of(run))
        orders = [("issue (when the host asks)", ISSUE), ("execution (when it starts)", EXECUTION)]
        self.order = dropdown("Order", orders)
        self.back = button("Back", "The moment before", lambda: self._move(self.state.back))
        self.next = button("Next", "The next moment", lambda: self._move(self.state.next))
        self.next_step = button(
            "Next step", "The first moment of the next step", lambda: self._move(self.state.next_step)
        )
        last = len(self.state.moments)
        self.place = widgets.IntSlider(1, 1, last, description="Moment", layout=widgets.Layout(width="320px"))
        self.order.observe(self._order_changed, "value")
        self.place.observe(self._place_changed, "value")
        self.sentence, self.loop_code, self.phase_code = (widgets.HTML() for _ in range(3))
        self.plot = Plot(moment_figure(self.state))
        half = widgets.Layout(flex="1 1 520px")  # side by side where the page is wide enough
        self.loop_code.layout = self.phase_code.layout = half
        controls = [row(self.order, self.back, self.next, self.next_step), row(self.place)]
        code = row(self.loop_code, self.phase_code)
        super().__init__([widgets.HTML(words.CSS), *controls, self.sentence, self.plot, code])
        self.add_class(words.CLASS)
        self._say()

    def _move(self, move: Any) -> None:
        move()
        self._show()

    def _order_changed(self, change: dict[str, Any]) -> None:
        self.state.take_order(change["new"])
        self._show()

    def _place_changed(self, change: dict[str, Any]) -> None:
        if change["new"] != self.state.place + 1:
            self._move(lambda: self.state.go(change["new"] - 1))

    def _show(self) -> None:
        self.place.value = self.state.place + 1
        self._say()
        self.plot.show(moment_figure(self.state))

    def _say(self) -> None:
        walk = self.state
        other = EXECUTION if walk.order == ISSUE else ISSUE
        here, there = f"{walk.place + 1} of {len(walk.moments)}", walk.other_place + 1
        places = f"Moment {here} in {walk.order} order; it is {there} in {other} order."
        issued = walk.issued_by()
        line = f"<br>Issued by <code>{escape(issued)}</code>" if issued else ""
        self.sentence.value = f'<div role="status"><p><b>{escape(walk.sentence())}</b></p><p>{places}{line}</p></div>'
        self.loop_code.value, self.phase_code.value = code_html(walk.loop_code()), code_html(walk.phase_code())


def moment_figure(walk: Walk) -> go.Figure:
    """The timeline around the moment's step, with a frame around its bar."""
    steps = sorted({span.step for span in walk.trace.spans if span.step >= 0})
    now = walk.moment.step
    figure = (
        timeline(walk.trace, steps=(max(steps[0], now - 1), min(steps[-1], now + 1)), beneath=False)
        if now in steps
        else timeline(walk.trace, beneath=False)
    )
    return bare(figure.add_trace(_cursor(walk)))


def _cursor(walk: Walk) -> go.Scatter:
    span, zero = walk.moment, walk.trace.start_ns
    low, high = (span.start_ns - zero) / 1000, (span.end_ns - zero) / 1000
    bottom, top, middle = ROW[span.lane] - 0.43, ROW[span.lane] + 0.43, (low + high) / 2
    return go.Scatter(
        name="this moment",
        x=[middle, None, low, high, high, low, low],
        y=[top + 0.03, None, top, top, bottom, bottom, top],
        mode="lines+markers",
        line={"color": style.INK, "width": 5},
        marker={"symbol": "triangle-down", "size": [22, 0, 0, 0, 0, 0, 0], "color": style.INK, "opacity": 1},
        hoverinfo="skip",
    )


def code_html(code: Code) -> str:
    """Source with the line that is meant marked by an arrow, bold."""
    lines = dedent("\n".join(code.lines)).splitlines()
    body = "\n".join(
        f"<b>▶ {escape(line)}</b>" if number == code.marked else f"  {escape(line)}"
        for number, line in enumerate(lines)
    )
    return f"<p><b>{escape(code.title)}</b></p><pre>{body}</pre>"


def _run_of(switches: Switches | int | str) -> Run:
    chosen = switches if isinstance(switches, Switches) else ladder(switches)
    return Board(Setup(switches=chosen, batch=2)).outcome.run
