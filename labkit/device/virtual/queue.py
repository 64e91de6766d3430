"""The device half of the virtual GPU: work queued in streams, run by three engines on a virtual clock.

An *item* is anything in a stream: a kernel, a copy, a graph node, or a marker (an event record, a wait, the two ends of
a graph launch). It may run when every item it is blocked by is done: its predecessor in the stream (FIFO), the record
that a wait looks at, its parents in a graph. Markers take no time and no engine; the rest take an engine.

Nothing runs by itself. The host calls ``advance`` at every API call, so the device is never ahead of the host except
inside a blocking call, and a later submission can never change a fact already observed (semantics, section 0).

Order is total: transitions are handled by (time, completions before arrivals, number), and an engine that is free takes
the ready item with the least (priority, ready time, number). Numbers count submissions; nothing real enters a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from labkit.device.api import Access
from labkit.errors import Deadlock

_COMPLETION, _READY = 0, 1


class Item:
    """One entry of a stream. Times are ns; ``start`` and ``end`` are -1 until known."""

    __slots__ = (
        "arrival", "blockers", "busy", "delay", "done", "duration", "end", "engine", "error", "extra", "fraction", "label",
        "not_before", "number", "payload", "pending", "priority", "reads", "ready", "start", "stream", "torn", "waiters",
        "writes",
    )  # fmt: skip

    def __init__(
        self,
        label: str,
        arrival: int,
        blockers: Iterable[Item] = (),
        *,
        engine: str = "",
        duration: int = 0,
        busy: int | None = None,
        not_before: int = 0,
        payload: Callable[[], None] | None = None,
        reads: tuple[Access, ...] = (),
        writes: tuple[Access, ...] = (),
        priority: int = 0,
        fraction: float = 1.0,
        delay: int = 0,
        stream: str = "",
    ) -> None:
        self.label, self.arrival, self.blockers = label, arrival, tuple(blockers)
        self.engine, self.duration, self.payload = engine, duration, payload
        self.busy = duration if busy is None else busy
        self.not_before = not_before  # earliest end: the last kernel of a launch series may not be issued yet
        self.reads, self.writes = reads, writes
        self.priority, self.fraction, self.delay, self.stream = priority, fraction, delay, stream
        self.number = self.pending = 0
        self.ready = self.start = self.end = -1
        self.done = False
        self.waiters: list[Item] = []
        self.torn: dict[Any, Any] = {}
        self.error: BaseException | None = None
        self.extra: Any = None


class DeviceQueue:
    """The virtual device: a clock, a heap of transitions, and engines ``compute``, ``h2d`` and ``d2h``."""

    def __init__(self, begin: Callable[[Item], None], commit: Callable[[Item], None]) -> None:
        self.time = 0
        self._begin, self._commit = begin, commit
        self._numbers = 0
        self._transitions: list[tuple[int, int, int, Item]] = []
        self._ready: dict[str, list[tuple[int, int, int, Item]]] = {"compute": [], "h2d": [], "d2h": []}
        self._free: dict[str, float] = dict.fromkeys(self._ready, 1.0)

    def submit(self, item: Item) -> Item:
        """Queue an item. Its blockers must have been submitted before."""
        self._numbers += 1
        item.number = self._numbers
        for blocker in item.blockers:
            if not blocker.done:
                item.pending += 1
                blocker.waiters.append(item)
        if not item.pending:
            self._arm(item, item.arrival)
        return item

    def advance(self, until: int, *, inclusive: bool) -> None:
        """Handle every transition before ``until`` (and at it, if inclusive)."""
        while self._transitions and (self._transitions[0][0] < until or (inclusive and self._transitions[0][0] == until)):
            self._instant(self._transitions[0][0])
        self.time = max(self.time, until)

    def run_until(self, item: Item) -> int:
        """Advance until ``item`` is done; returns its end.

        Raises:
            Deadlock: nothing is left that could complete it.
        """
        while not item.done:
            if not self._transitions:
                raise Deadlock(f"the host waits for {item.label!r}, which nothing can complete")
            self._instant(self._transitions[0][0])
        return item.end

    def drop(self) -> None:
        """Forget all queued and running work (after a fault)."""
        self._transitions.clear()
        for ready in self._ready.values():
            ready.clear()
        self._free = dict.fromkeys(self._ready, 1.0)

    def _instant(self, now: int) -> None:
        """Handle everything that happens at one instant: completions, arrivals, then starts, until nothing is left."""
        self.time = now
        heap = self._transitions
        while heap and heap[0][0] == now:
            while heap and heap[0][0] == now:
                _, kind, _, item = heappop(heap)
                if kind == _COMPLETION:
                    self._complete(item, now)
                elif item.engine:
                    heappush(self._ready[item.engine], (item.priority, now, item.number, item))
                else:
                    item.start = now
                    self._complete(item, now)
            self._start_ready(now)

    def _start_ready(self, now: int) -> None:
        for engine, ready in self._ready.items():
            while ready and ready[0][3].fraction <= self._free[engine] + 1e-9:
                item = heappop(ready)[3]
                self._free[engine] -= item.fraction
                item.start = now
                self._begin(item)
                end = max(now + item.duration, item.not_before)
                heappush(self._transitions, (end, _COMPLETION, item.number, item))

    def _complete(self, item: Item, now: int) -> None:
        if item.engine:
            self._free[item.engine] += item.fraction
        self._commit(item)
        item.done, item.end = True, now
        item.blockers = ()
        for waiter in item.waiters:
            waiter.pending -= 1
            if not waiter.pending:
                self._arm(waiter, max(waiter.arrival, now + waiter.delay))
        item.waiters.clear()

    def _arm(self, item: Item, ready: int) -> None:
        item.ready = ready
        heappush(self._transitions, (ready, _READY, item.number, item))
