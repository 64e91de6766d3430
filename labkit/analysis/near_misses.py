"""Events that look as if they ordered two accesses, and do not: what is wrong with each, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.analysis.accesses import family
from labkit.analysis.conflicts import Conflict
from labkit.trace.events import Span, Trace

Placed = tuple[int, Span]  # a span and its position


@dataclass(slots=True)
class _Uses:
    """The records of one event and the calls that waited for it, in issue order."""

    records: list[Placed] = field(default_factory=list)
    waits: list[Placed] = field(default_factory=list)

    def next_record(self, conflict: Conflict) -> Placed | None:
        """The first record that covers the first access."""
        first = conflict.first
        return next((r for r in self.records if r[0] > first.position and r[1].stream == first.stream), None)

    def seen(self, wait: Placed) -> Placed | None:
        """The record that a wait saw."""
        return next((record for record in reversed(self.records) if record[0] < wait[0]), None)

    def last_wait(self, conflict: Conflict) -> Placed | None:
        """The last call before the second access that made its stream, or the host, wait for this event."""
        second, by_host = conflict.second, conflict.key.second.by_host
        for position, span in reversed(self.waits):
            fits = span.kind != "wait" if by_host else span.kind == "wait" and span.stream == second.stream
            if position < second.position and fits:
                return position, span
        return None


class NearMisses:
    """The events of a trace, to be asked about its conflicts."""

    def __init__(self, trace: Trace) -> None:
        self._captured = set(trace.meta.get("captured_events", ()))
        self._events: dict[str, _Uses] = {}
        for position, span in enumerate(trace.spans):
            if span.kind == "record":
                self._uses(span).records.append((position, span))
            elif span.event and (span.kind in ("wait", "synchronize") or (span.kind == "query" and span.record)):
                self._uses(span).waits.append((position, span))

    def _uses(self, span: Span) -> _Uses:
        return self._events.setdefault(span.event, _Uses())

    def of(self, conflict: Conflict) -> tuple[str, ...]:
        """A sentence for each family of events that nearly orders the first pair of the conflict."""
        found = {
            family(event): text for event, uses in self._events.items() if (text := self._why(event, uses, conflict))
        }
        return (*found.values(), *self._unheard(conflict))

    def _why(self, event: str, uses: _Uses, conflict: Conflict) -> str:
        """Why the second agent's wait for this event did not cover the first access; empty if it made none."""
        wait = uses.last_wait(conflict)
        if wait is None:
            return ""
        if event in self._captured and not uses.records:
            return f"{event} is recorded only inside a capture, where it is an edge of the graph and no marker"
        return _in_vain(event, uses, wait, conflict)

    def _unheard(self, conflict: Conflict) -> tuple[str, ...]:
        """The event that is recorded next after the first access, if the second agent never waits for it."""
        found = ((uses.next_record(conflict), event, uses) for event, uses in self._events.items())
        behind = [(record[0], event, record[1], uses) for record, event, uses in found if record is not None]
        if not behind:
            return ()
        position, event, record, uses = min(behind, key=lambda entry: entry[0])
        if position > conflict.second.position or uses.last_wait(conflict) is not None:
            return ()
        recorded = f"{event} is recorded after `{conflict.first.name}`{_at(record)}"
        return (f"{recorded}, but {_who(conflict)} does not wait for it",)


def _in_vain(event: str, uses: _Uses, wait: Placed, conflict: Conflict) -> str:
    first, behind, seen = conflict.first, uses.next_record(conflict), uses.seen(wait)
    if behind is not None and behind[0] > wait[0]:
        return f"{event} is recorded after `{first.name}` only when {_who(conflict)} has already waited{_at(wait[1])}"
    if behind is not None and seen is not None and seen[1].stream != first.stream:
        again = f"recorded again on {seen[1].stream}{_at(seen[1])} before {_who(conflict)} waits"
        return f"{event} is {again}: its record on {first.stream} is lost"
    if behind is None and seen is not None and seen[1].stream == first.stream:
        return f"{event} is recorded too early, before `{first.name}` is submitted{_at(seen[1])}"
    return ""


def _who(conflict: Conflict) -> str:
    return "the host" if conflict.key.second.by_host else conflict.second.stream


def _at(span: Span) -> str:
    return f" ({span.source})" if span.source else ""
