"""Observers of an engine: objects with any of the methods below. What nobody asks for costs nothing.

    planned(batch, scheduler)       a step has been planned, and its blocks are reserved
    filled(slot, batch)             its inputs are in the slot's host buffer
    settled(slot, batch, tokens)    its tokens have arrived: one per row, also of rows that sample none
    dropped()                       the steps in flight were dropped, after a fault or an interrupt

An observer looks and changes nothing. The shape is that of trio's ``Instrument``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from labkit.errors import InvalidArgument

METHODS = ("planned", "filled", "settled", "dropped")


class Hooks:
    """The observers' methods by name, each a tuple to call in order.

    Raises:
        InvalidArgument: an object that has none of the methods.
    """

    __slots__ = METHODS

    planned: tuple[Callable[..., None], ...]
    filled: tuple[Callable[..., None], ...]
    settled: tuple[Callable[..., None], ...]
    dropped: tuple[Callable[..., None], ...]

    def __init__(self, observers: Iterable[Any] = ()) -> None:
        observers = tuple(observers)
        for observer in observers:
            if not any(callable(getattr(observer, name, None)) for name in METHODS):
                raise InvalidArgument("observers", observer, f"objects with a method among {', '.join(METHODS)}")
        for name in METHODS:
            setattr(self, name, tuple(getattr(one, name) for one in observers if hasattr(one, name)))
