"""Happens-before, walked once through a trace with vector clocks. It knows no time: only what a program asked for.

Agents are the host and the streams. An agent's clock counts, for every agent, how many of its accesses are certain to
be over before the agent's next one. Edges (rules of ``docs/semantics.md``):

    2   a stream is in order                     68  a submission carries the host's clock
    15  a record keeps the stream's clock        17  a wait takes the clock of the record it saw, 18 or none
    35  a host wait for a stream or the device   22  a host wait for an event, or a query that answered True
    28  a blocking copy, 30 a pageable download  54  two replays of one executable graph
    9   the default stream and the blocking streams wait for each other, and for no others (8)

Engines, priorities and virtual time order nothing (4, 42). Nodes of one replay share the stream's place; what orders
them among themselves is the graph's own edges (``Access.node``, 67).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labkit.trace.events import Span, Trace

HOST = "host"
HOST_AGENT = 0

Clock = list[int]


class HappensBefore:
    """The clocks of all agents. Call its methods with the spans of a trace in issue order."""

    def __init__(self, trace: Trace) -> None:
        flags = trace.meta.get("streams", {})
        names = dict.fromkeys([*flags, *(s.stream for s in trace.spans if s.stream and s.kind != "synchronize")])
        self.agents: dict[str, int] = {HOST: HOST_AGENT, **{name: number for number, name in enumerate(names, 1)}}
        self._clocks: list[Clock] = [[0] * len(self.agents) for _ in self.agents]
        self.host = self._clocks[HOST_AGENT]
        self._default = {name for name, flag in flags.items() if flag.get("default")}
        self._barrier = {name: _barrier(name, flags) for name in flags}
        self._records: dict[str, tuple[int, Clock]] = {}  # event -> number of its latest record, the stream's clock
        self._replays: dict[str, Clock] = {}  # graph -> its latest replay

    def host_access(self) -> int:
        """The host touches memory; returns the number of this access."""
        self.host[HOST_AGENT] += 1
        return self.host[HOST_AGENT]

    def operation(self, span: Span) -> tuple[int, Clock]:
        """A device operation is submitted; returns its agent and its clock, in which it is its agent's latest."""
        clock = self._submit(span.stream)
        if span.kind == "graph" and span.name in self._replays:
            _join(clock, self._replays[span.name])
        agent = self.agents[span.stream]
        clock[agent] += 1
        if span.kind == "graph":
            self._replays[span.name] = clock.copy()
        return agent, clock

    def after_operation(self, span: Span) -> None:
        """The submitting call returns: after the operation itself where it blocks."""
        if span.blocking or any(touch.place == "pageable" for touch in span.writes):
            _join(self.host, self._clocks[self.agents[span.stream]])

    def call(self, span: Span) -> None:
        """A host call that is no operation: record, wait, synchronize, query. Other kinds order nothing."""
        if span.kind == "record":
            self._records[span.event] = (span.record, self._submit(span.stream).copy())
        elif span.kind == "wait":
            _join(self._submit(span.stream), self._seen(span))
        elif span.kind == "query":
            _join(self.host, self._seen(span))
        elif span.kind == "synchronize":
            self._synchronize(span)

    def _synchronize(self, span: Span) -> None:
        """The host waits for an event or for streams; the default stream stands for the blocking ones too (38)."""
        if span.event:
            _join(self.host, self._records.get(span.event, (0, []))[1])
            return
        for name in span.stream.split(","):
            if name in self.agents:
                _join(self.host, self._clocks[self.agents[name]])
            if name in self._default:
                self._join_all(self.host, self._barrier[name])

    def _seen(self, span: Span) -> Clock:
        """The clock of the record that a wait or a query saw: the latest then, so the latest so far, or none."""
        number, clock = self._records.get(span.event, (0, []))
        return clock if number == span.record else []

    def _submit(self, stream: str) -> Clock:
        """The clock of a stream to which the host submits something."""
        clock = self._clocks[self.agents[stream]]
        _join(clock, self.host)
        self._join_all(clock, self._barrier.get(stream, ()))
        return clock

    def _join_all(self, clock: Clock, streams: Iterable[str]) -> None:
        for name in streams:
            _join(clock, self._clocks[self.agents[name]])


def _barrier(name: str, flags: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """The streams that work of this stream waits for: a default stream and the blocking streams of its GPU."""
    mine = flags[name]
    if not (mine.get("default") or mine.get("blocking")):
        return ()
    return tuple(
        other
        for other, flag in flags.items()
        if bool(flag.get("default")) != bool(mine.get("default"))
        and (flag.get("default") or flag.get("blocking"))
        and flag.get("gpu", 0) == mine.get("gpu", 0)
    )


def _join(clock: Clock, other: Clock) -> None:
    """Let ``clock`` know everything that ``other`` knows."""
    for agent, count in enumerate(other):
        if count > clock[agent]:
            clock[agent] = count
