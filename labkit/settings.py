"""Settings as text: ``key=value`` pairs over a named rung, sorted into switches, sizes and sampling parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from labkit.engine.sampling import SamplingParams
from labkit.errors import InvalidArgument
from labkit.sizes import COUNTS
from labkit.switches import SWITCHES

_WORDS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}


@dataclass(frozen=True)
class Settings:
    """What ``-s`` options changed."""

    switches: dict[str, bool]
    sizes: dict[str, int]
    sampling: dict[str, object]


def parse_settings(pairs: Iterable[str]) -> Settings:
    """Sort ``key=value`` texts.

    Raises:
        InvalidArgument: not of that form, an unknown key, or a value of the wrong kind.
    """
    settings = Settings({}, {}, {})
    sizes = set(COUNTS)
    sampling = {field.name for field in fields(SamplingParams)}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidArgument("-s", pair, "write key=value")
        if key in SWITCHES:
            settings.switches[key] = _switch(key, value)
        elif key in sizes:
            settings.sizes[key] = _number(key, value, int)
        elif key in sampling:
            settings.sampling[key] = _sampling(key, value)
        else:
            known = ", ".join([*SWITCHES, *sorted(sizes), *sorted(sampling)])
            raise InvalidArgument("-s", key, f"the settings are {known}")
    return settings


def _switch(key: str, value: str) -> bool:
    if value.lower() not in _WORDS:
        raise InvalidArgument(key, value, "true or false")
    return _WORDS[value.lower()]


def _number(key: str, value: str, kind: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise InvalidArgument(key, value, "an integer" if kind is int else "a number") from None


def _sampling(key: str, value: str) -> object:
    if key == "logprobs":
        return _switch(key, value)
    if key == "eos_token_ids":
        return tuple(_number(key, part, int) for part in value.split(",") if part)
    return _number(key, value, float if key in ("temperature", "top_p") else int)
