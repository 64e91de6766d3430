"""Rules 8 to 14: the default streams, and who waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest


def in_thread(call: Callable[[], Any]) -> Any:
    """The result of a call in another host thread, which is over when this returns."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def test_rule_08_a_torch_stream_does_not_synchronise_with_the_default_stream(dev: Any) -> None:
    default, side = dev.kernel(100, dev.default_stream(), fraction=0.5), dev.kernel(10, dev.Stream(), fraction=0.5)
    dev.synchronize()
    assert (default.start, default.end) == (dev.about(0), dev.about(100))
    assert (side.start, side.end) == (dev.about(0), dev.about(10))


@pytest.mark.parametrize(("blocking", "starts"), [(True, (0, 30, 50)), (False, (0, 0, 30))], ids=["bl", "nb"])
def test_rule_09_the_legacy_stream_is_a_barrier_for_blocking_streams_only(
    dev: Any, blocking: bool, starts: tuple[float, ...]
) -> None:
    x, default = dev.foreign_stream(blocking=blocking), dev.default_stream()
    works = [dev.kernel(30, x, fraction=0.3), dev.kernel(20, default, fraction=0.3), dev.kernel(10, x, fraction=0.3)]
    dev.synchronize()
    assert tuple(work.start for work in works) == tuple(dev.about(start) for start in starts)


def test_rule_10_the_legacy_stream_waits_for_all_blocking_streams(dev: Any) -> None:
    dev.kernel(30, dev.foreign_stream(blocking=True), fraction=0.3)
    dev.kernel(50, dev.foreign_stream(blocking=True), fraction=0.3)
    last = dev.kernel(10, dev.default_stream(), fraction=0.3)
    dev.synchronize()
    assert last.start == dev.about(50)


def test_rule_10_event_calls_count_as_actions(dev: Any) -> None:
    e = dev.Event()
    dev.kernel(30, dev.foreign_stream(blocking=True))
    e.record(dev.default_stream())
    e.synchronize()
    assert dev.now == dev.about(30)


def test_rule_11_a_per_thread_default_stream_is_a_blocking_stream(dev: Any) -> None:
    def launch() -> Any:
        return dev.kernel(30, dev.ExternalStream(2), fraction=0.2)  # cudaStreamPerThread

    works = [in_thread(launch), in_thread(launch), dev.kernel(30, dev.Stream(), fraction=0.2)]
    last = dev.kernel(10, dev.default_stream(), fraction=0.2)
    dev.synchronize()
    assert [work.start for work in works] == [dev.about(0)] * 3
    assert last.start == dev.about(30)


def test_rule_11_torch_uses_the_legacy_stream_in_every_thread(dev: Any) -> None:
    assert in_thread(dev.current_stream) == dev.default_stream()


def test_rule_12_the_33rd_stream_is_the_first_one_again(dev: Any) -> None:
    streams = [dev.Stream() for _ in range(40)]
    assert len(set(streams)) == 32
    assert streams[32:] == streams[:8]
    first, again = dev.kernel(30, streams[0], fraction=0.1), dev.kernel(30, streams[32], fraction=0.1)
    dev.synchronize()
    assert (first.start, again.start) == (dev.about(0), dev.about(30))


def test_rule_12_each_priority_has_its_own_pool(dev: Any) -> None:
    normal, high = {dev.Stream() for _ in range(32)}, {dev.Stream(priority=-1) for _ in range(32)}
    assert len(normal | high) == 64


def test_rule_13_a_stream_block_only_changes_the_current_stream(dev: Any) -> None:
    s, outside = dev.Stream(), dev.current_stream()
    pending = dev.kernel(100, outside, fraction=0.3)
    with dev.stream(s):
        assert dev.current_stream() == s
        assert in_thread(dev.current_stream) == outside
        inside = dev.kernel(10, fraction=0.3)
    after = dev.kernel(10, dev.Stream(), fraction=0.3)
    assert dev.current_stream() == outside
    assert dev.now == dev.about(0)
    dev.synchronize()
    assert (pending.start, inside.start, after.start) == (dev.about(0), dev.about(0), dev.about(0))


@pytest.mark.parametrize(("blocking", "start"), [(True, 30), (False, 0)], ids=["bl", "nb"])
def test_rule_14_a_foreign_stream_keeps_its_own_flag(dev: Any, blocking: bool, start: float) -> None:
    foreign = dev.foreign_stream(blocking=blocking)
    dev.kernel(30, dev.default_stream(), fraction=0.3)
    work = dev.kernel(10, foreign, fraction=0.3)
    dev.synchronize()
    assert work.start == dev.about(start)
