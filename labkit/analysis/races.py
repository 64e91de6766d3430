"""The race checker: two accesses to the same bytes, one of them a write, that nothing orders.

    report = check(run.trace)
    print(report)

A pure function from a trace to a report, on virtual and on recorded traces alike. What orders two accesses, and what
only looks like it, is ``happens_before.py``; which bytes they share, ``shadow.py``; what to type, ``fixes.py``. A
verdict does not depend on durations: a race that did no damage this time is a race.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from labkit.analysis.accesses import Access
from labkit.analysis.conflicts import WRITE_AFTER_READ, Conflict, find_conflicts
from labkit.analysis.fixes import Fix, FixSearch, repair
from labkit.analysis.near_misses import NearMisses
from labkit.analysis.notices import Notice, notices
from labkit.trace.events import Trace


@dataclass(frozen=True, slots=True)
class AccessReport:
    """One side of a race. Bytes ``[start, stop)`` are those of the buffer; ``stream`` is ``host`` for the host."""

    operation: str
    stream: str
    write: bool
    buffer: str
    start: int
    stop: int
    step: int
    source: str

    def __str__(self) -> str:
        verb = "writes" if self.write else "reads"
        who = "the host" if self.stream == "host" else f"`{self.operation}` on {self.stream}"
        where = ", ".join(part for part in (f"step {self.step}" if self.step >= 0 else "", self.source) if part)
        return f"{who} {verb} {self.buffer} bytes [{self.start}, {self.stop})" + (f" ({where})" if where else "")


@dataclass(frozen=True, slots=True)
class Race:
    """The same race in every step, shown by its first example.

    kind          read after write, write after read, or write after write; "after" is the order of issue
    missing_edge  the order that is missing, in words
    near_misses   events that look as if they gave it, and what is wrong with each
    fix           the smallest that was found to remove it, None if none did
    count         how many pairs of accesses race in this way
    """

    kind: str
    first: AccessReport
    second: AccessReport
    missing_edge: str
    near_misses: tuple[str, ...]
    fix: Fix | None
    count: int

    @property
    def alternative(self) -> str:
        """Another way out than the missing edge; empty if there is none."""
        if self.first.buffer != self.second.buffer:
            owner = f"{self.second.buffer} was given the memory of {self.first.buffer}"
            return f"{self.first.buffer}.record_stream({self.first.stream}) before it is freed: {owner}"
        return "give the next step a buffer of its own" if self.kind == WRITE_AFTER_READ else ""

    def __str__(self) -> str:
        lines = [
            f"{self.kind}{_times(self.count)}: {self.second}",
            f"  is not ordered after: {self.first}",
            f"  missing: {self.missing_edge}",
        ]
        lines += [f"  near miss: {sentence}" for sentence in self.near_misses]
        lines += [f"  fix: {self.fix}{_also(self.fix)}"] if self.fix else []
        lines += [f"  or: {self.alternative}"] if self.alternative else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "kind": self.kind,
            "first": {**asdict(self.first), "text": str(self.first)},
            "second": {**asdict(self.second), "text": str(self.second)},
            "buffer": self.second.buffer,
            "missing_edge": self.missing_edge,
            "near_misses": list(self.near_misses),
            "fix": str(self.fix) if self.fix else None,
            "alternative": self.alternative,
            "also_removes": len(self.fix.removes) - 1 if self.fix else 0,
            "count": self.count,
        }


@dataclass(frozen=True)
class RaceReport:
    """What ``check`` found. ``repair`` holds the fixes that together make the trace clean."""

    races: tuple[Race, ...]
    notices: tuple[Notice, ...]
    repair: tuple[Fix, ...]

    @property
    def clean(self) -> bool:
        """No race, and none of the mistakes that are no races."""
        return not self.races and not self.notices

    def __str__(self) -> str:
        if self.clean:
            return "No races."
        parts = [f"{len(self.races)} race{'s' * (len(self.races) != 1)}" if self.races else "No races."]
        parts += [f"{number}. {race}" for number, race in enumerate(self.races, 1)]
        if self.repair:
            parts.append("All of them are gone with:\n" + "\n".join(f"  {fix}" for fix in self.repair))
        parts += [f"{notice.kind}: {notice.text}{_times(notice.count)}" for notice in self.notices]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "races": [race.to_dict() for race in self.races],
            "notices": [asdict(notice) for notice in self.notices],
            "repair": [str(fix) for fix in self.repair],
        }


def check(trace: Trace) -> RaceReport:
    """Find the races of a whole trace, each with the smallest fix for it.

    Needs all spans from the start of a program, or from a point where the device was idle: order that was made before
    the trace began cannot be seen. Linear in the number of spans, a few times over where there are races.
    """
    conflicts = find_conflicts(trace)
    near, fixes = NearMisses(trace), FixSearch(trace)
    races = tuple(_race(conflict, near.of(conflict), fixes.smallest(conflict)) for conflict in conflicts)
    return RaceReport(races, notices(trace), repair(trace, conflicts))


def count_races(trace: Trace) -> int:
    """How many races ``check`` would report, without looking for fixes."""
    return len(find_conflicts(trace))


def _race(conflict: Conflict, near_misses: tuple[str, ...], fix: Fix | None) -> Race:
    first, second = _side(conflict.first), _side(conflict.second)
    return Race(conflict.key.kind, first, second, missing_edge(conflict), near_misses, fix, conflict.count)


def _side(access: Access) -> AccessReport:
    touch = access.touch
    return AccessReport(
        access.name, access.stream, access.write, touch.buffer, touch.start, touch.stop, access.span.step, access.source
    )


def missing_edge(conflict: Conflict) -> str:
    """The order that is missing, as something to type."""
    first, second = conflict.first, conflict.second
    if first.span is second.span:
        edge = f"record after `{first.name}`; the stream of `{second.name}` waits on it"
        return f"in the capture of {first.span.name}: {edge}"
    if conflict.key.second.by_host:
        verb = "writes" if second.write else "reads"
        return (
            f"synchronize with an event recorded after `{first.name}` on {first.stream} "
            f"before the host {verb} {second.touch.buffer}"
        )
    return f"record after `{first.name}` on {first.stream}; {second.stream} waits on it before `{second.name}` starts"


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _also(fix: Fix) -> str:
    others = len(fix.removes) - 1
    return f" (removes {others} other{'s' * (others != 1)} too)" if others else ""
