"""An exercise as one object: what to write, where to start, three hints, solutions, a check, and for some a score.

    lesson.second_slot.show()              the task
    lesson.second_slot.check(second_slot)  yours, expected, and the spans concerned
    lesson.second_slot.hint(1)             1, 2, 3: each says more than the one before
    lesson.second_slot.solution()          code that passes the check
    lesson.second_slot.score(second_slot)  where less is better: idle time, waits, bytes

An answer is a function of the exercise's name. The same answer is checked on the virtual GPU and on a real one; a check
asserts relations (order, overlap, tokens, counts) and never how long something took on the wall.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.errors import InvalidArgument
from labkit.lessons.result import Result, Score, Text, failure, wrong

Answer = Callable[..., Any]
DEVICES = ("virtual", "cuda")


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise.

    number      lesson and place in it, ``5.2``
    name        of the function that the learner writes, and of this object in its lesson's module
    title       a few words
    task        what to write, in Markdown
    starter     a function with the signature to keep; it runs, and the check refuses it with a sentence
    solutions   functions that pass; their source is what ``solution`` shows
    hints       three texts, each saying more than the one before
    judge       from an answer and a device's name to a ``Result``
    measure     from an answer and a device's name to a number, less being better; None where nothing is scored
    unit        of that number
    """

    number: str
    name: str
    title: str
    task: str
    starter: Answer
    solutions: tuple[Answer, ...]
    hints: tuple[str, str, str]
    judge: Callable[[Answer, str], Result]
    measure: Callable[[Answer, str], float] | None = None
    unit: str = ""

    def show(self) -> Text:
        """The task."""
        return Text(f"**Exercise {self.number}: {self.title}**\n\n{textwrap.dedent(self.task).strip()}")

    def check(self, answer: Answer, device: str = "virtual") -> Result:
        """Try an answer. Whatever it raises becomes part of the result.

        Raises:
            InvalidArgument: ``answer`` is no function, or there is no such device.
        """
        _check_arguments(answer, device)
        if not fits(answer, self.starter):
            result = wrong(
                "Your function takes other arguments than it is called with.",
                yours=call_of(answer, self.name),
                expected=call_of(self.starter, self.name),
            )
            return result.of(self.number, self.title)
        try:
            result = self.judge(answer, device)
        except (Exception, SystemExit) as error:  # an answer that calls exit() ends itself, not the notebook's kernel
            result = failure(error, answer)
        return result.of(self.number, self.title)

    def hint(self, number: int = 1) -> Text:
        """The n-th of three hints.

        Raises:
            InvalidArgument: there is no such hint.
        """
        return Text(f"**Hint {number} of 3** ({self.number}): {_pick('hint', number, self.hints)}")

    def solution(self, number: int = 1) -> Text:
        """The n-th solution, as code.

        Raises:
            InvalidArgument: there is no such solution.
        """
        _pick("solution", number, self.solutions)
        return Text(f"```python\n{self.solution_source(number)}```")

    def score(self, answer: Answer, device: str = "virtual") -> Score:
        """What an answer that passes costs, beside the first solution. An answer that fails has no score.

        Raises:
            InvalidArgument: this exercise has no score, or see ``check``.
        """
        if self.measure is None:
            raise InvalidArgument("exercise", self.number, "one with a measure; this one passes or does not")
        result = self.check(answer, device)
        if not result.passed:
            return Score(self.number, None, self.measure(self.solutions[0], device), self.unit)
        return Score(self.number, self.measure(answer, device), self.measure(self.solutions[0], device), self.unit)

    def __repr__(self) -> str:
        return f"Exercise {self.number}: {self.title}. Answer it with a function {call_of(self.starter, self.name)}."

    def _repr_markdown_(self) -> str:
        return self.show().markdown

    def starter_source(self) -> str:
        """The code that an unsolved notebook shows."""
        return source_as(self.starter, self.name)

    def solution_source(self, number: int = 1) -> str:
        """The code that a solved notebook shows."""
        return source_as(_pick("solution", number, self.solutions), self.name)


def source_as(function: Answer, name: str) -> str:
    """The source of a function, under another name."""
    source = textwrap.dedent(inspect.getsource(function))
    return source.replace(f"def {function.__name__}(", f"def {name}(", 1)


def call_of(function: Answer, name: str) -> str:
    """How a function is written when it is called: ``three_edges(play)``."""
    try:
        return f"{name}{inspect.signature(function)}"
    except (TypeError, ValueError):  # some built-in functions have no signature
        return f"{name}(...)"


def fits(answer: Answer, starter: Answer) -> bool:
    """Whether the answer can be called as the starter is: with its parameters, by place or by name."""
    names = list(inspect.signature(starter).parameters)
    try:
        inspect.signature(answer).bind(*names)
    except TypeError:
        return False
    except ValueError:  # no signature to be had: the call will show it
        return True
    return True


def _pick(what: str, number: int, choices: tuple[Any, ...]) -> Any:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(choices):
        raise InvalidArgument(what, number, f"1 to {len(choices)}")
    return choices[number - 1]


def _check_arguments(answer: Answer, device: str) -> None:
    if not callable(answer):
        raise InvalidArgument("answer", answer, "the function itself, without parentheses")
    if device not in DEVICES:
        raise InvalidArgument("device", device, f"one of {', '.join(DEVICES)}")
