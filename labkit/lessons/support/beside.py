"""A learner's predictions beside what was measured."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any


def beside(predicted: Mapping[Any, Any], measured: Mapping[Any, Any], unit: str = "us") -> str:
    """A line for each prediction, in the order of the predictions; what was not measured is left out.

    Args:
        predicted: a guess by name; None where there is none. ``measured``: values by the same names.
    """
    names = {key: _name(key) for key in predicted if key in measured}
    width = max(map(len, names.values()), default=0)
    return "\n".join(
        f"{name:<{width}}  you said {_text(predicted[key], unit)}, it was {_text(measured[key], unit)}"
        for key, name in names.items()
    )


def _name(key: Hashable) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _text(value: Any, unit: str) -> str:
    if value is None:
        return "nothing"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g} {unit}".rstrip() if number else str(value)
