"""The smallest change that removes a race, found by trying it: put a record and a wait into the trace, and check again.

A fix is what a learner types once and every step then does: after each operation with the first access an event is
recorded, one event per buffer, and the other stream (or the host) waits for it before it next touches that buffer in a
way that conflicts. Where an event is recorded there already, the wait alone is tried first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from labkit.analysis.accesses import family
from labkit.analysis.conflicts import Conflict, ConflictKey, find_conflicts
from labkit.analysis.inserting import Inserter, add_edge
from labkit.trace.events import Trace

_AHEAD = 500  # at least so many spans after a race count when a fix for it is tried
_MOST_FIXES = 50


@dataclass(frozen=True, slots=True)
class Fix:
    """A wait, and the record for it unless there is one (``recorded``).

    event    name of the event; ``h2d_done`` stands for ``h2d_done[A]`` and ``h2d_done[B]``
    before   the operations that the wait is put in front of, in order of appearance
    capture  the graph in whose capture record and wait belong, if both operations are nodes of it
    removes  the conflicts that are gone with it, the one it is for first
    """

    key: ConflictKey
    buffer: str  # family of the first access; another than the key's where memory was reused
    event: str
    recorded: bool = False
    capture: str = ""
    before: tuple[str, ...] = ()
    removes: tuple[ConflictKey, ...] = ()

    @property
    def code(self) -> tuple[str, ...]:
        """The lines to add, each with the place it belongs to."""
        first, second = self.key.first, self.key.second
        where = " / ".join(f"`{name}`" for name in self.before or (second.operation,))
        wait = f"{self.event}.synchronize()" if second.by_host else f"{second.stream}.wait_event({self.event})"
        record = f"{self.event}.record({first.stream})  # after `{first.operation}`"
        return (*(() if self.recorded else (record,)), f"{wait}  # before {where}")

    def __str__(self) -> str:
        inside = f"in the capture of {self.capture}: " if self.capture else ""
        return inside + "; ".join(line.replace("  # ", " ") for line in self.code)


def apply(trace: Trace, *fixes: Fix) -> Trace:
    """The trace with the fixes' records and waits put in, as spans that take no time, for the checker to see."""
    for fix in fixes:
        trace = _try(trace, fix)[0]
    return trace


def smallest_fix(trace: Trace, conflict: Conflict) -> Fix | None:
    """The fix with the fewest calls that removes the conflict from the trace; None if no single pair does."""
    return FixSearch(trace).smallest(conflict)


class FixSearch:
    """Tries fixes on the beginning of a trace: order only ever comes from earlier spans, so a part is enough."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._parts: dict[int, tuple[Trace, list[ConflictKey]]] = {}  # length -> the beginning, its conflicts

    def smallest(self, conflict: Conflict) -> Fix | None:
        """As ``smallest_fix``, for any conflict of the trace."""
        part, before = self._beginning(conflict)
        for fix in _candidates(part, conflict):
            tried, places = _try(part, fix)
            left = {found.key for found in find_conflicts(tried)}
            if conflict.key not in left:
                others = tuple(key for key in before if key not in left and key != conflict.key)
                return replace(fix, before=places, removes=(conflict.key, *others))
        return None

    def _beginning(self, conflict: Conflict) -> tuple[Trace, list[ConflictKey]]:
        length = _beginning(conflict)
        if length not in self._parts:
            part = replace(self._trace, spans=self._trace.spans[:length], edges=())
            self._parts[length] = part, [found.key for found in find_conflicts(part)]
        return self._parts[length]


def repair(trace: Trace, conflicts: list[Conflict]) -> tuple[Fix, ...]:
    """Fixes that together remove the conflicts, which are all that the trace has.

    The smallest one for the first, then for the first that is left: fewer than conflicts, since most of them have their
    cause in common. Ends early at a conflict that no fix removes.
    """
    fixes: list[Fix] = []
    while conflicts and len(fixes) < _MOST_FIXES:
        part = replace(trace, spans=trace.spans[: _beginning(conflicts[0])], edges=())
        while (left := find_conflicts(part)) and len(fixes) < _MOST_FIXES:
            fix = smallest_fix(part, left[0])
            if fix is None:
                return tuple(fixes)
            fixes.append(fix)
            trace, part = apply(trace, fix), apply(part, fix)
        conflicts = find_conflicts(trace)
    return tuple(fixes)


def _beginning(conflict: Conflict) -> int:
    """How many spans to try a fix on: up to some way behind the conflict, the same for conflicts that are close."""
    return (conflict.second.position // _AHEAD + 2) * _AHEAD


def _candidates(trace: Trace, conflict: Conflict) -> Iterator[Fix]:
    """Fixes to try, the smallest first."""
    first, second = conflict.first, conflict.second
    buffer = family(first.touch.buffer)
    if first.span is second.span:
        yield Fix(conflict.key, buffer, _free_name(trace, first.name), capture=first.span.name)
        return
    between = trace.spans[first.position : second.position]
    records = (s for s in between if s.kind == "record" and s.stream == first.stream)
    for event in dict.fromkeys(family(span.event) for span in records):
        yield Fix(conflict.key, buffer, event, recorded=True)
    yield Fix(conflict.key, buffer, _free_name(trace, first.name))


def _free_name(trace: Trace, operation: str) -> str:
    """``upload_done``, or with a number if the program has such an event."""
    taken = {family(span.event) for span in trace.spans}
    name, number = f"{family(operation)}_done", 2
    while name in taken:
        name, number = f"{family(operation)}_done_{number}", number + 1
    return name


def _try(trace: Trace, fix: Fix) -> tuple[Trace, tuple[str, ...]]:
    """The trace with the fix, and the operations that a wait was put in front of."""
    if fix.capture:
        nodes = add_edge(trace.graphs[fix.capture], fix.key.first.operation, fix.key.second.operation)
        return replace(trace, graphs={**trace.graphs, fix.capture: nodes}), (fix.key.second.operation,)
    inserter = Inserter(trace, fix.key, fix.buffer, fix.event, fix.recorded)
    return replace(trace, spans=tuple(inserter)), tuple(inserter.before)
