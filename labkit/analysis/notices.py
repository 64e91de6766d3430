"""Mistakes that are no races: everything is ordered, in the wrong order.

overwritten before read   a result copied to the host is replaced by the next one before the host has read it
graph output clobbered    memory of one graph's output was given to another graph of the pool, which then ran
                          before the output was last read (semantics, 58); also any read of memory since reused
stale static input        a graph is replayed again, and an input that is written between replays was not (56)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labkit.analysis.accesses import Graphs, Memory, MemoryKey, Part, family, parts_of, touches
from labkit.analysis.byte_ranges import ByteRanges
from labkit.analysis.conflicts import TOUCHING
from labkit.trace.events import Span, Touch, Trace

OVERWRITTEN = "overwritten before read"
CLOBBERED = "graph output clobbered"
STALE = "stale static input"


@dataclass(frozen=True, slots=True)
class Notice:
    """One mistake, the first time it is made; ``count`` is how often.

    first   the operation whose result is lost, clobbered or used again
    second  the operation that does it: overwrites, clobbers, or replays without a fresh input
    step    whose result is lost, or in which it is clobbered or used again
    """

    kind: str
    first: str
    second: str
    buffer: str
    text: str
    step: int = -1
    source: str = ""
    count: int = 1


def notices(trace: Trace) -> tuple[Notice, ...]:
    """All of them, each group of equal ones once, in issue order within a kind. Linear in the number of spans."""
    found: dict[tuple[str, ...], list[Notice]] = {}
    for look in (_lost_results, _clobbered, _stale_inputs):
        for notice in look(trace):
            group = (notice.kind, family(notice.first), family(notice.second), family(notice.buffer))
            found.setdefault(group, []).append(notice)
    return tuple(_counted(group) for group in found.values())


def _counted(group: list[Notice]) -> Notice:
    first = group[0]
    return Notice(
        first.kind, first.first, first.second, first.buffer, first.text, first.step, first.source, count=len(group)
    )


@dataclass(slots=True)
class _Writer:
    """Who wrote some bytes last, and who before that wrote them as another buffer."""

    part: Part | None = None
    span: Span | None = None
    touch: Touch | None = None
    unread: bool = False
    earlier: dict[tuple[str, int], Part] = field(default_factory=dict)

    def copy(self) -> _Writer:
        return _Writer(self.part, self.span, self.touch, self.unread, self.earlier.copy())

    def set(self, part: Part, span: Span, touch: Touch) -> None:
        self.part, self.span, self.touch = part, span, touch
        self.earlier[_identity(touch)] = part


class _Bytes:
    """The last writer of every byte."""

    def __init__(self, trace: Trace) -> None:
        self._locate = Memory(trace).locate
        self._memory: dict[MemoryKey, ByteRanges[_Writer]] = {}

    def cells(self, touch: Touch) -> list[_Writer]:
        key, start, stop = self._locate(touch)
        if key not in self._memory:
            self._memory[key] = ByteRanges(_Writer)
        return self._memory[key].cells(start, stop)


def _accesses(trace: Trace) -> Iterator[tuple[Span, Part, Touch, bool]]:
    """Every access of a trace in issue order."""
    graphs = Graphs(trace)
    for span in trace.spans:
        if span.kind in TOUCHING:
            for part in parts_of(span, graphs):
                for touch, write in touches(part):
                    yield span, part, touch, write


def _lost_results(trace: Trace) -> Iterator[Notice]:
    """A step's result in host memory is replaced before that step's read: by an operation that finds it unread, or as
    seen by a read that finds a later step's. Each lost result is told once.
    """
    memory, told = _Bytes(trace), set()
    for span, part, touch, write in _accesses(trace):
        if touch.place == "device":
            continue
        by_device = write and not part.by_host
        for notice in _losses(memory.cells(touch), span, part, touch, by_device, write):
            if notice.step < 0 or (touch, notice.step) not in told:
                told.add((touch, notice.step))
                yield notice
        for cell in memory.cells(touch):
            if by_device:
                cell.set(part, span, touch)
            cell.unread = by_device


def _losses(
    cells: list[_Writer], span: Span, part: Part, touch: Touch, by_device: bool, write: bool
) -> Iterator[Notice]:
    for cell in cells:
        if cell.part is None or cell.span is None:
            continue
        if by_device and cell.unread:
            yield _lost(cell.part, cell.span.step, part, span.step, touch)
            return
        if part.by_host and not write and 0 <= span.step < cell.span.step:
            yield _lost(cell.part, span.step, cell.part, cell.span.step, touch)
            return


def _lost(first: Part, lost_step: int, second: Part, step: int, touch: Touch) -> Notice:
    whose = (f"`{second.name}` of step {step}", f"of step {lost_step} ") if step >= 0 else (f"`{second.name}`", "")
    text = (
        f"{whose[0]} overwrites {touch.buffer} before the host has read what `{first.name}` {whose[1]}put there; "
        "use a second buffer, or read it first"
    )
    return Notice(OVERWRITTEN, first.name, second.name, touch.buffer, text, lost_step, second.source)


def _clobbered(trace: Trace) -> Iterator[Notice]:
    """A buffer is read whose bytes were last written as another buffer, and before that as itself."""
    memory = _Bytes(trace)
    for span, part, touch, write in _accesses(trace):
        for cell in memory.cells(touch):
            if write:
                cell.set(part, span, touch)
            elif (
                cell.touch is not None
                and _identity(cell.touch) != _identity(touch)
                and _identity(touch) in cell.earlier
            ):
                yield _clobber(cell.earlier[_identity(touch)], cell, part, span, touch)
                break


def _identity(touch: Touch) -> tuple[str, int]:
    return touch.buffer, touch.allocation


def _clobber(first: Part, cell: _Writer, reader: Part, span: Span, touch: Touch) -> Notice:
    assert cell.part is not None and cell.span is not None and cell.touch is not None
    by = f"graph {cell.span.name}" if cell.span.kind == "graph" else f"`{cell.span.name}`"
    text = (
        f"{touch.buffer}, written by `{first.name}`, shares its memory with {cell.touch.buffer}: {by} has overwritten "
        f"it before `{reader.name}` reads it; read or copy it first, or replay in the order of capture"
    )
    return Notice(CLOBBERED, first.name, cell.part.name, touch.buffer, text, span.step, reader.source)


class _StaticInputs:
    """The inputs of graphs, and when each was last written from outside its graph."""

    def __init__(self, trace: Trace) -> None:
        self._locate = Memory(trace).locate
        self._graphs = Graphs(trace)
        self._written: dict[MemoryKey, tuple[int, Part]] = {}  # position of the latest write, by whom
        self._copied: dict[MemoryKey, tuple[int, Part]] = {}  # the same for copies alone
        self._replayed: dict[str, int] = {}

    def note(self, position: int, span: Span) -> Iterator[Notice]:
        parts = parts_of(span, self._graphs)
        if span.kind == "graph":
            yield from self._check(position, span, parts)
        for part in parts:
            for touch in part.writes:
                key = self._locate(touch)[0]
                self._written[key] = (position, part)
                if span.kind == "copy":
                    self._copied[key] = (position, part)

    def _check(self, position: int, span: Span, parts: tuple[Part, ...]) -> Iterator[Notice]:
        last = self._replayed.get(span.name)
        self._replayed[span.name] = position
        if last is None:
            return
        own = {self._locate(touch)[0] for part in parts for touch in part.writes}
        for key, touch in {self._locate(t)[0]: t for part in parts for t in part.reads}.items():
            seen = (self._copied if key in own else self._written).get(key)
            if seen is not None and seen[0] < last:
                yield _stale(seen[1], span, touch)


def _stale(writer: Part, span: Span, touch: Touch) -> Notice:
    text = (
        f"graph {span.name} is replayed in step {span.step} with {touch.buffer} as the replay before left it: "
        f"`{writer.name}` has not written it since"
    )
    return Notice(STALE, writer.name, span.name, touch.buffer, text, span.step, span.source)


def _stale_inputs(trace: Trace) -> Iterator[Notice]:
    inputs = _StaticInputs(trace)
    for position, span in enumerate(trace.spans):
        if span.kind in TOUCHING:
            yield from inputs.note(position, span)
