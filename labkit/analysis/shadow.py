"""The access history of every allocation, byte by byte: which earlier accesses a new one conflicts with, unordered.

A cell keeps only the accesses that a later one could still be unordered with and not with a newer one too. So it holds
at most one write and one read per agent (more for graph nodes side by side), and the whole check is linear.
"""

from __future__ import annotations

from labkit.analysis.accesses import Access, MemoryKey
from labkit.analysis.byte_ranges import ByteRanges
from labkit.analysis.happens_before import Clock


class Cell:
    """The history of some bytes."""

    __slots__ = ("reads", "writes")

    def __init__(self, writes: list[Access] | None = None, reads: list[Access] | None = None) -> None:
        self.writes: list[Access] = writes or []
        self.reads: list[Access] = reads or []

    def copy(self) -> Cell:
        return Cell(self.writes.copy(), self.reads.copy())

    def read(self, access: Access, clock: Clock, ancestors: int) -> list[Access]:
        """Add a read; returns the writes it is not ordered after."""
        self.reads = [old for old in self.reads if not ordered(old, access, clock, ancestors)]
        self.reads.append(access)
        return [old for old in self.writes if not ordered(old, access, clock, ancestors)]

    def write(self, access: Access, clock: Clock, ancestors: int) -> list[Access]:
        """Add a write; returns the accesses it is not ordered after."""
        self.writes = [old for old in self.writes if not ordered(old, access, clock, ancestors)]
        self.reads = [old for old in self.reads if not ordered(old, access, clock, ancestors)]
        found = self.writes + self.reads
        self.writes.append(access)
        return found


def ordered(old: Access, new: Access, clock: Clock, ancestors: int) -> bool:
    """Whether ``old`` happens before ``new``, whose agent has this clock and whose node these ancestors."""
    if old.agent != new.agent:
        return clock[old.agent] >= old.epoch
    return old.epoch != new.epoch or old.node == new.node or bool(ancestors >> old.node & 1)


class Shadow:
    """The histories of all memory of a trace."""

    def __init__(self) -> None:
        self._memory: dict[MemoryKey, ByteRanges[Cell]] = {}

    def visit(
        self, access: Access, key: MemoryKey, start: int, stop: int, clock: Clock, ancestors: int = 0
    ) -> list[Access]:
        """Add an access to bytes ``[start, stop)`` of ``key``; returns the earlier accesses it races with."""
        ranges = self._memory.get(key)
        if ranges is None:
            ranges = self._memory[key] = ByteRanges(Cell)
        cells = ranges.cells(start, stop)
        if len(cells) == 1:
            cell = cells[0]
            return (cell.write if access.write else cell.read)(access, clock, ancestors)
        found: dict[Access, None] = {}
        for cell in cells:
            found.update(dict.fromkeys((cell.write if access.write else cell.read)(access, clock, ancestors)))
        if access.write and cells and not found:
            ranges.replace(start, stop, Cell([access]))  # the past is settled: one cell again
        return list(found)

    def pieces(self, key: MemoryKey) -> int:
        """In how many cells the history of a memory is kept."""
        return len(self._memory[key]) if key in self._memory else 0
