"""A map from byte ranges to values: cells that do not overlap, split where a new range begins or ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Copyable(Protocol):
    def copy(self: V) -> V:
        """An independent value: a split gives each half its own."""
        ...


V = TypeVar("V", bound=Copyable)


class ByteRanges(Generic[V]):
    """Cells ``[start, stop)`` in ascending order; ``new`` makes the value of bytes not seen before."""

    def __init__(self, new: Callable[[], V]) -> None:
        self._new = new
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._values: list[V] = []

    def __len__(self) -> int:
        return len(self._starts)

    def cells(self, start: int, stop: int) -> list[V]:
        """The values that together hold exactly ``[start, stop)``, ascending; none for an empty range."""
        at = bisect_right(self._stops, start)
        if at < len(self._starts) and self._starts[at] == start and self._stops[at] == stop and start < stop:
            return [self._values[at]]  # the usual case: the same range as before
        if at < len(self._starts) and self._starts[at] < start < stop:
            self._split(at, start)
            at += 1
        found: list[V] = []
        while start < stop:
            self._fill_gap(at, start, stop)
            if self._stops[at] > stop:
                self._split(at, stop)
            found.append(self._values[at])
            start = self._stops[at]
            at += 1
        return found

    def replace(self, start: int, stop: int, value: V) -> None:
        """One cell for ``[start, stop)``, which must begin and end where cells do."""
        first, last = bisect_right(self._stops, start), bisect_right(self._starts, stop - 1)
        self._starts[first:last], self._stops[first:last], self._values[first:last] = [start], [stop], [value]

    def _fill_gap(self, at: int, start: int, stop: int) -> None:
        """Make a cell at ``start`` if cell ``at`` begins later, or is missing."""
        if at == len(self._starts):
            self._insert(at, start, stop, self._new())
        elif self._starts[at] > start:
            self._insert(at, start, min(stop, self._starts[at]), self._new())

    def _split(self, at: int, where: int) -> None:
        """Cut cell ``at`` in two."""
        self._insert(at, self._starts[at], where, self._values[at].copy())
        self._starts[at + 1] = where

    def _insert(self, at: int, start: int, stop: int, value: V) -> None:
        self._starts.insert(at, start)
        self._stops.insert(at, stop)
        self._values.insert(at, value)
