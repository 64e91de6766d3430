"""The Switchboard: flip a mechanism, and see what the virtual GPU then does. The state is ``board.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from labkit.analysis.races import RaceReport
from labkit.switches import Switches, ladder
from labkit.viz.panels import words
from labkit.viz.panels.board import Board, Outcome, Setup
from labkit.viz.panels.controls import Controls
from labkit.viz.panels.ghost import board_figure
from labkit.viz.panels.lanes import PlainFigure
from labkit.viz.panels.plot import Plot

_SOON_S = 0.05  # after the answer has been sent


class Switchboard(widgets.VBox):
    """A checkbox per mechanism, a rung picker, and sliders; timeline, numbers, tokens and races follow them.

    Args:
        switches: what to start with: Switches, or a rung's name or number.
        settings: other fields of ``Setup``: ``batch``, ``token_budget``, ``host_speed``, ``profile``.

    Raises:
        InvalidArgument: a setting that is not offered.
    """

    def __init__(self, switches: Switches | int | str = 0, **settings: Any) -> None:
        chosen = switches if isinstance(switches, Switches) else ladder(switches)
        self.state = Board(Setup(switches=chosen, **settings))
        self.controls = Controls(self.state.setup)
        self.verdict, self.explanation, self.numbers, self.tokens, self.races = (widgets.HTML() for _ in range(5))
        self.plot = Plot(board_figure(self.state.outcome))
        for control in self.controls.all:
            control.observe(self._changed, "value")
        super().__init__(
            [
                widgets.HTML(words.CSS),
                self.controls,
                self.verdict,
                self.explanation,
                self.plot,
                self.numbers,
                self.races,
                self.tokens,
            ]
        )
        self.add_class(words.CLASS)
        self._show(self.state.outcome)

    def _changed(self, change: dict[str, Any]) -> None:
        """The one callback of every control."""
        if self.controls.settling:
            return
        if change["owner"] is self.controls.rung:
            self.controls.take_rung()
        try:
            setup = self.controls.setup
            outcome = self.state.change(**{name: getattr(setup, name) for name in Setup.__dataclass_fields__})
            self.controls.show(setup)
            self._show(outcome)
        except Exception as error:  # a learner reads the panel, not the log
            self.verdict.value = words.failure(error)

    def _show(self, outcome: Outcome) -> None:
        before = self.state.previous
        self.plot.show(self._figure(outcome))  # the first to be sent: drawing takes the page longer than all else
        self.verdict.value = words.verdict(outcome)
        self.explanation.value = words.explanation(outcome)
        self.numbers.value = words.numbers(outcome, before)
        self.tokens.value = words.tokens(outcome)
        self.races.value = words.races(outcome, looking=True)
        soon(lambda: self._show_races(outcome))

    def _show_races(self, outcome: Outcome) -> None:
        """The fixes, and marks on both accesses of each race, unless the learner has gone on meanwhile."""
        if outcome is self.state.outcome:
            self.races.value = words.races(outcome)
            if outcome.races:
                self.plot.show(self._figure(outcome, outcome.race_report))

    def _figure(self, outcome: Outcome, races: RaceReport | None = None) -> PlainFigure:
        return board_figure(outcome, self.state.previous, races)


def soon(call: Callable[[], None]) -> None:
    """Call once the kernel has sent what it has; at once where no event loop runs."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        call()
    else:
        loop.call_later(_SOON_S, call)
