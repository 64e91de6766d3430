"""The prediction widget: an answer that is stored before the run and drawn with the measurement (``guess.py``)."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from labkit.viz.panels import words
from labkit.viz.panels.controls import button, row
from labkit.viz.panels.guess import Guess
from labkit.viz.panels.plot import Plot


class Prediction(widgets.VBox):
    """Asks, stores the answer, runs, and draws both. ``state`` is the ``Guess``.

    Args:
        question: one sentence.
        measure: gives the number, in the unit of the answer. Called once, after the answer is stored.
        unit: written behind numbers.
        low, high: what an answer may be.

    Raises:
        InvalidArgument: ``low`` is not below ``high``.
    """

    def __init__(
        self, question: str, measure: Callable[[], float], *, unit: str = "%", low: float = 0, high: float = 100
    ) -> None:
        self.state = Guess(question, measure, unit=unit, low=low, high=high)
        self.answer = widgets.BoundedFloatText(
            value=low,
            min=low,
            max=high,
            description=f"Your answer ({unit})",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="300px"),
        )
        self.go = button("Store my answer, then run", "The answer cannot be changed afterwards", self._go)
        self.sentence = widgets.HTML()
        self.plot = Plot(self.state.figure())
        ask = widgets.HTML(f"<p><b>{escape(question)}</b></p>")
        super().__init__([widgets.HTML(words.CSS), ask, row(self.answer, self.go), self.sentence, self.plot])
        self.add_class(words.CLASS)
        self._show()

    def _go(self) -> None:
        try:
            if self.state.answer is None:
                self.state.store(self.answer.value)
            self._show()
            self.state.run()
        except Exception as error:  # a learner reads the panel, not the log
            self.sentence.value = words.failure(error)
        else:
            self._show()

    def _show(self) -> None:
        self.answer.disabled = self.state.answer is not None
        self.go.disabled = self.state.measured is not None
        self.sentence.value = f'<p role="status">{escape(self.state.sentence())}</p>'
        self.plot.show(self.state.figure())
