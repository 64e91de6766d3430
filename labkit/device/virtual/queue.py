"""The device half of the virtual GPU: work queued in streams, run by three engines on a virtual clock.

An *item* is anything in a stream: a kernel, a copy, a graph node, or a marker (an event record, a wait, the two ends of
a graph launch). It may run when every item it is blocked by is done: its predecessor in the stream (FIFO), the record
that a wait looks at, its parents in a graph. Markers take no time and no engine; the rest take an engine.

Nothing runs by itself. The host calls ``advance`` at every API call, so the device is never ahead of the host except
inside a blocking call, and a later submission can never change a fact already observed (semantics, section 0).

Order is total: transitions are handled by (time, completions before arrivals, number), and an engine that is free takes
the ready item with the least (priority, ready time, number). Numbers count submissions; nothing real enters a tie.

Streams that share a hardware *connection* (semantics, 45) are fed to the engines in submission order: an item becomes
ready only when the one submitted before it on that connection has started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from labkit.device.api import Access
from labkit.errors import Deadlock

_COMPLETION, _READY = 0, 1
ENGINES = ("compute", "h2d", "d2h")


class Item:
    """One entry of a stream. Times are ns; ``start`` and ``end`` are -1 until known."""

    __slots__ = (
        "arrival", "blockers", "busy", "delay", "done", "duration", "end", "engine", "extra", "followers", "fraction",
        "label", "not_before", "number", "payload", "pending", "priority", "reads", "ready", "start", "stream", "torn",
        "waiters", "writes",
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
        self.followers: list[Item] = []  # items of the same connection that wait for this one's start
        self.torn: dict[Any, Any] = {}
        self.extra: Any = None


class DeviceQueue:
    """The virtual device: a clock, a heap of transitions, and engines, named ``compute``, ``h2d`` and ``d2h``."""

    def __init__(
        self, begin: Callable[[Item], None], commit: Callable[[Item], None], engines: Iterable[str] = ENGINES
    ) -> None:
        self.time = 0
        self._begin, self._commit = begin, commit
        self._numbers = self._dropped = 0  # items up to number _dropped count as done
        self._transitions: list[tuple[int, int, int, Item]] = []
        self._ready: dict[str, list[tuple[int, int, int, Item]]] = {engine: [] for engine in engines}
        self._connections: dict[int, Item] = {}  # hardware queue -> the item submitted last
        self._free: dict[str, float] = dict.fromkeys(self._ready, 1.0)

    def submit(self, item: Item, connection: int = -1) -> Item:
        """Queue an item. Its blockers must have been submitted before."""
        self._numbers += 1
        item.number = self._numbers
        for blocker in item.blockers:
            if not self.over(blocker):
                item.pending += 1
                blocker.waiters.append(item)
        if connection >= 0:
            self._follow(item, connection)
        if not item.pending:
            self._arm(item, item.arrival)
        return item

    def _follow(self, item: Item, connection: int) -> None:
        before = self._connections.get(connection)
        self._connections[connection] = item
        if before is not None and before.start < 0:
            item.pending += 1
            before.followers.append(item)

    def advance(self, until: int, *, inclusive: bool) -> None:
        """Handle every transition before ``until`` (and at it, if inclusive)."""
        while self._transitions and (
            self._transitions[0][0] < until or (inclusive and self._transitions[0][0] == until)
        ):
            self._instant(self._transitions[0][0])
        self.time = max(self.time, until)

    def run_until(self, item: Item) -> int:
        """Advance until ``item`` is done; returns its end.

        Raises:
            Deadlock: nothing is left that could complete it.
        """
        while not self.over(item):
            if not self._transitions:
                raise Deadlock(f"the host waits for {item.label!r}, which nothing can complete")
            self._instant(self._transitions[0][0])
        return item.end

    def over(self, item: Item) -> bool:
        """Whether nobody waits for this item any more: it is done, or was dropped."""
        return item.done or item.number <= self._dropped

    def drop(self) -> list[Item]:
        """Forget all queued and running work (after a fault); returns what was running."""
        running = [item for _, kind, _, item in self._transitions if kind == _COMPLETION]
        self._dropped = self._numbers
        self._transitions.clear()
        self._connections.clear()
        for ready in self._ready.values():
            ready.clear()
        self._free = dict.fromkeys(self._ready, 1.0)
        return running

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
                    self._start(item, now)
                    self._complete(item, now)
            self._start_ready(now)

    def _start_ready(self, now: int) -> None:
        for engine, ready in self._ready.items():
            while ready and ready[0][3].fraction <= self._free[engine] + 1e-9:
                item = heappop(ready)[3]
                self._free[engine] -= item.fraction
                self._start(item, now)
                self._begin(item)
                end = max(now + item.duration, item.not_before)
                heappush(self._transitions, (end, _COMPLETION, item.number, item))

    def _start(self, item: Item, now: int) -> None:
        item.start = now
        for follower in item.followers:
            self._release(follower, now)
        item.followers.clear()

    def _complete(self, item: Item, now: int) -> None:
        if item.engine:
            self._free[item.engine] += item.fraction
        self._commit(item)
        item.done, item.end = True, now
        item.blockers = ()
        for waiter in item.waiters:
            self._release(waiter, now + waiter.delay)
        item.waiters.clear()

    def _release(self, item: Item, at: int) -> None:
        item.pending -= 1
        if not item.pending:
            self._arm(item, max(item.arrival, at))

    def _arm(self, item: Item, ready: int) -> None:
        item.ready = ready
        heappush(self._transitions, (ready, _READY, item.number, item))
