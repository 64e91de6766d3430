"""Sets of half-open intervals ``[start, end)`` in integer ns: exact, so that shares and gaps add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Disjoint intervals, ascending, that cover the same instants. Empty intervals vanish, touching ones merge."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def total(disjoint: Iterable[Interval]) -> int:
    """Summed length of disjoint intervals, ns."""
    return sum(end - start for start, end in disjoint)


def complement(disjoint: Iterable[Interval], start: int, end: int) -> list[Interval]:
    """What is left of ``[start, end)`` outside ascending disjoint intervals that lie within it."""
    holes: list[Interval] = []
    for first, last in disjoint:
        if first > start:
            holes.append((start, first))
        start = last
    if end > start:
        holes.append((start, end))
    return holes


def per_bin(disjoint: Iterable[Interval], edges: Sequence[int]) -> list[int]:
    """How many ns of each bin ``[edges[i], edges[i + 1])`` ascending disjoint intervals cover.

    The intervals lie within the edges, so the result sums to ``total(disjoint)`` exactly.
    """
    covered = [0] * (len(edges) - 1)
    index = 0
    for start, end in disjoint:
        while edges[index + 1] <= start:
            index += 1
        here = index
        while here < len(covered) and edges[here] < end:
            covered[here] += min(end, edges[here + 1]) - max(start, edges[here])
            here += 1
        index = max(index, here - 1)
    return covered
