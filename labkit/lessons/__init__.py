"""The course: one module for each notebook, with its exercises.

    from labkit.lessons import l05_double_buffering as lesson
    lesson.second_slot.check(second_slot)

``exercises()`` lists them all, ``score(globals())`` sums up a notebook.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from labkit.lessons.exercise import Exercise
from labkit.lessons.result import Result, Score
from labkit.lessons.scoreboard import Scoreboard, score

__all__ = ["Exercise", "Result", "Score", "Scoreboard", "exercises", "lessons", "score"]


def lessons() -> dict[str, ModuleType]:
    """The lessons' modules by notebook name (``05_double_buffering``), in order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[1:3].isdigit())
    return {name[1:]: importlib.import_module(f"{__name__}.{name}") for name in names}


def lesson(name: str) -> ModuleType | None:
    """The module of one notebook (``05_double_buffering``), None where a notebook has none; imports no other."""
    known = {module.name for module in pkgutil.iter_modules(__path__)}
    return importlib.import_module(f"{__name__}.l{name}") if f"l{name}" in known else None


def exercises(lesson: ModuleType | None = None) -> dict[str, Exercise]:
    """The exercises of a lesson, or of all, by number (``5.2``)."""
    modules = [lesson] if lesson else lessons().values()
    found = [it for module in modules for it in vars(module).values() if isinstance(it, Exercise)]
    return {it.number: it for it in sorted(found, key=lambda it: [int(part) for part in it.number.split(".")])}
