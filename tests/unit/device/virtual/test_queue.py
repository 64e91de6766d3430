"""The device half alone: items, engines, ties."""

from __future__ import annotations

import pytest

from labkit.device.virtual.queue import DeviceQueue, Item
from labkit.errors import Deadlock


def queue() -> tuple[DeviceQueue, list[str]]:
    """A queue, and the labels of what it completes, in order."""
    order: list[str] = []
    return DeviceQueue(lambda item: None, lambda item: order.append(item.label)), order


def kernel(label: str, duration: int, *after: Item, arrival: int = 0, **options: int) -> Item:
    return Item(label, arrival, after, engine="compute", duration=duration, **options)


def test_an_item_runs_after_its_blockers_and_its_arrival() -> None:
    device, order = queue()
    a = device.submit(kernel("a", 30))
    b = device.submit(kernel("b", 10, a, arrival=50))
    device.run_until(b)
    assert (a.start, a.end, b.start, b.end) == (0, 30, 50, 60)
    assert order == ["a", "b"]


def test_advance_stops_before_or_at_a_time() -> None:
    device, order = queue()
    device.submit(kernel("a", 30))
    device.advance(30, inclusive=False)
    assert order == []
    device.advance(30, inclusive=True)
    assert order == ["a"]


def test_ties_go_by_priority_then_ready_time_then_number() -> None:
    device, order = queue()
    running = device.submit(kernel("running", 10))
    waiting = (("first", 0), ("second", 0), ("urgent", -1))
    items = [device.submit(kernel(name, 1, priority=priority, arrival=1)) for name, priority in waiting]
    device.run_until(items[1])
    assert order == ["running", "urgent", "first", "second"]
    assert running.end == 10


def test_kernels_share_the_engine_up_to_its_whole() -> None:
    device, _ = queue()
    items = [device.submit(Item(str(n), 0, engine="compute", duration=10, fraction=0.4)) for n in range(3)]
    device.run_until(items[2])
    assert [item.start for item in items] == [0, 0, 10]


def test_a_connection_feeds_items_in_order() -> None:
    device, _ = queue()
    long = device.submit(kernel("long", 30), 0)
    blocked = device.submit(Item("blocked", 0, [long], engine="h2d", duration=5), 0)
    behind = device.submit(Item("behind", 0, engine="d2h", duration=5), 0)
    free = device.submit(Item("free", 0, engine="d2h", duration=5), 1)
    device.run_until(behind)
    assert (blocked.start, behind.start, free.start) == (30, 30, 0)


def test_waiting_for_what_nothing_completes_is_a_deadlock() -> None:
    (device, _), (another, _) = queue(), queue()
    item = device.submit(kernel("stuck", 1, another.submit(kernel("of another machine", 1))))
    with pytest.raises(Deadlock, match="stuck"):
        device.run_until(item)


def test_drop_forgets_everything() -> None:
    device, order = queue()
    device.submit(kernel("a", 10))
    device.advance(5, inclusive=True)
    device.drop()
    b = device.submit(kernel("b", 10, arrival=5))
    assert device.run_until(b) == 15
    assert order == ["b"]
