"""What the prediction widget knows: a question, the learner's answer, and the measurement. No widgets here.

The answer is stored first and cannot be changed afterwards; only then is anything measured.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import plotly.graph_objects as go

from labkit.errors import InvalidArgument
from labkit.viz import style

_HEIGHT_PX = 250


class Guess:
    """A question with a number for an answer.

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
        if not low < high:
            raise InvalidArgument("low", low, f"below high, which is {high}")
        self.question, self.unit, self.low, self.high = question, unit, low, high
        self._measure = measure
        self._answer: float | None = None
        self._measured: float | None = None

    @property
    def answer(self) -> float | None:
        """The stored answer, None before."""
        return self._answer

    @property
    def measured(self) -> float | None:
        """The measurement, None before."""
        return self._measured

    def store(self, answer: float) -> None:
        """Store the answer.

        Raises:
            InvalidArgument: out of range, or an answer is stored already.
        """
        if self._answer is not None:
            raise InvalidArgument("answer", answer, f"{self._answer:g} {self.unit} is stored already")
        if not isfinite(answer) or not self.low <= answer <= self.high:
            raise InvalidArgument("answer", answer, f"{self.low:g} to {self.high:g} {self.unit}")
        self._answer = float(answer)

    def run(self) -> float:
        """Measure, once; a later call returns the same number.

        Raises:
            InvalidArgument: no answer is stored yet.
        """
        if self._answer is None:
            raise InvalidArgument("answer", None, "store an answer before the run")
        if self._measured is None:
            self._measured = float(self._measure())
        return self._measured

    def sentence(self) -> str:
        """Where the question stands."""
        if self._answer is None:
            return "Predict first: nothing has been run yet."
        said = f"You said {self._answer:,.4g} {self.unit}"
        if self._measured is None:
            return f"{said}; not measured yet."
        off = f"{self._measured - self._answer:+,.3g}"
        return f"{said}; measured: {self._measured:,.4g} {self.unit} ({off})."

    def figure(self) -> go.Figure:
        """The answer and the measurement as bars on one scale; what is not known yet is missing."""
        rows = [("measured", self._measured, style.COMPUTE, ""), ("your answer", self._answer, style.CPU, "/")]
        known = [(name, value, fill, hatch) for name, value, fill, hatch in rows if value is not None]
        figure = go.Figure(layout=self._layout(max([self.high, *(value for _, value, _, _ in known)])))
        for name, value, fill, hatch in known:
            figure.add_trace(
                go.Bar(
                    name=name,
                    orientation="h",
                    base=[self.low],
                    x=[value - self.low],
                    y=[name],
                    text=[f"<b>{value:,.4g} {self.unit}</b>"],
                    textposition="outside",
                    textfont={"size": style.AXIS},
                    hoverinfo="skip",
                    marker={"color": fill, "pattern": {"shape": hatch, "fillmode": "overlay", "fgcolor": style.PAPER}},
                )
            )
        return figure

    def _layout(self, top: float) -> go.Layout:
        return go.Layout(
            template=style.template(),
            meta={"summary": self.sentence()},
            barmode="overlay",
            height=_HEIGHT_PX,
            autosize=True,
            margin={"l": 140, "r": 20, "t": 10, "b": 60},
            showlegend=False,
            xaxis={"title": {"text": self.unit}, "range": [self.low, self.low + (top - self.low) * 1.2]},
            yaxis={"categoryarray": ["measured", "your answer"], "categoryorder": "array", "fixedrange": True},
        )
