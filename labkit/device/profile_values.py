"""Whether the values in a profile's file are such as its fields take; a wrong one would be seen far from the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from labkit.errors import InvalidArgument

_MOST = 1e15  # ns, 11 days: what is added up stays exact
_BANDWIDTHS = frozenset({"pinned", "pageable", "stage"})  # divided by
_COEFFICIENTS = frozenset({"base_ns", "per_row_ns", "per_token_ns", "per_context_ns"})  # of a fit: negative ones too
_LEAST_BANDWIDTH = 1e-6


def check_values(cls: type, values: Mapping[str, Any], where: str) -> None:
    """Check the texts, numbers and points of ``cls``; what is an object of its own is left alone.

    Raises:
        InvalidArgument: a field that is missing, or a value of the wrong kind or size.
    """
    for field in fields(cls):
        if field.name in values:
            allowed = _complaint(str(field.type), field.name, values[field.name])
            if allowed:
                raise InvalidArgument(f"{where}: {field.name}", values[field.name], allowed)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InvalidArgument(where, sorted(values), f"an object with the field {field.name}")


def _complaint(kind: str, name: str, value: Any) -> str:
    """What is allowed instead; nothing for a good value."""
    if kind == "str":
        return "" if isinstance(value, str) else "a text"
    if kind == "int":
        least = 1 if name == "launches" else 0
        good = _is_number(value, least) and isinstance(value, int)
        return "" if good else f"an integer from {least} to {_MOST:g}"
    if kind == "float":
        if name in _BANDWIDTHS:
            good = value == math.inf or _is_number(value, _LEAST_BANDWIDTH)
            return "" if good else f"a number from {_LEAST_BANDWIDTH:g} to {_MOST:g}, or Infinity"
        lowest = -_MOST if name in _COEFFICIENTS else 0
        return "" if _is_number(value, lowest) else f"a number from {lowest:g} to {_MOST:g}"
    if name == "points":
        good = isinstance(value, list | tuple) and all(map(_is_point, value))
        return "" if good else "a list of [rows, context, ns]"
    return ""


def _is_number(value: Any, least: float) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and least <= value <= _MOST


def _is_point(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 3:
        return False
    return isinstance(value[0], int) and _is_number(value[0], 1) and all(_is_number(one, 0) for one in value[1:])
