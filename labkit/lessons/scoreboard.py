"""A notebook's answers at a glance: which exercises pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from labkit.errors import InvalidArgument
from labkit.lessons.exercise import Exercise
from labkit.lessons.result import Result


@dataclass(frozen=True)
class Scoreboard:
    """The results of a lesson, in order."""

    results: tuple[Result, ...]

    @property
    def passed(self) -> int:
        return sum(map(bool, self.results))

    def __repr__(self) -> str:
        lines = [f"{result.number} {result.title}: {result.verdict}" for result in self.results]
        return "\n".join([f"{self.passed} of {len(self.results)} exercises passed", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{r.number}</td><td style='text-align:left'>{escape(r.title)}</td><td>{r.verdict}</td></tr>"
            for r in self.results
        )
        return f"<p><b>{self.passed} of {len(self.results)} exercises passed</b></p><table>{rows}</table>"


def score(answers: Mapping[str, Any], device: str = "virtual") -> Scoreboard:
    """Check every answer of a notebook.

    Args:
        answers: ``globals()`` of the notebook: its lesson module as ``lesson``, and the answers by name.

    Raises:
        InvalidArgument: no lesson in it.
    """
    from labkit.lessons import exercises

    lesson = answers.get("lesson")
    found = exercises(lesson) if lesson is not None else {}
    if not found:
        raise InvalidArgument("answers", "lesson", "globals() of a notebook that imported its lesson")
    return Scoreboard(tuple(_result(exercise, answers, device) for exercise in found.values()))


def _result(exercise: Exercise, answers: Mapping[str, Any], device: str) -> Result:
    answer = answers.get(exercise.name)
    if not callable(answer):
        return Result(False, "not answered yet").of(exercise.number, exercise.title)
    return exercise.check(answer, device)
