"""Rules 1 to 7: queues and clocks."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.errors import Livelock


def test_rule_01_a_launch_returns_before_the_work_is_done(dev: Any) -> None:
    s = dev.Stream()
    work = dev.kernel(100, s)
    assert dev.now == dev.about(0)
    dev.synchronize()
    assert dev.now == dev.about(100)
    assert (work.start, work.end) == (dev.about(0), dev.about(100))


def test_rule_02_one_stream_is_fifo(dev: Any) -> None:
    s = dev.Stream()
    first, second = dev.kernel(30, s, fraction=0.1), dev.kernel(20, s, fraction=0.1)
    dev.synchronize()
    assert (first.end, second.start, second.end) == (dev.about(30), dev.about(30), dev.about(50))


def test_rule_03_different_streams_may_overlap(dev: Any) -> None:
    first, second = dev.kernel(30, dev.Stream(), fraction=0.4), dev.kernel(50, dev.Stream(), fraction=0.4)
    dev.synchronize()
    assert dev.now == dev.about(50)
    assert (first.start, second.start) == (dev.about(0), dev.about(0))


def test_rule_04_running_one_after_another_is_not_ordering(dev: Any) -> None:
    dev.not_on_a_real_gpu("which of two full-device kernels waits is the scheduler's affair, and nothing promises it")
    x = dev.tensor_of(1, "device", 0)
    first = dev.fill(x, 8, 30, dev.Stream())
    seen, second = dev.read(x, 50, dev.Stream())
    dev.synchronize()
    assert (first.start, second.start, second.end) == (0, 30, 80)
    assert dev.peek(seen) == 8, "by luck"
    dev.expect_races(1)


def test_rule_05_the_device_never_runs_ahead_of_the_host(dev: Any) -> None:
    s = dev.Stream()
    first = dev.kernel(10, s)
    dev.host_until(25)
    second = dev.kernel(10, s)
    dev.synchronize()
    assert (first.end, second.start, second.end) == (dev.about(10), dev.about(25), dev.about(35))


def test_rule_06_a_launch_bound_series(dev: Any) -> None:
    dev = dev.with_("toy-u")
    s = dev.Stream()
    works = [dev.kernel(1, s) for _ in range(3)]
    assert dev.now == 15
    s.synchronize()
    assert dev.now == 21
    assert [work.start for work in works] == [7, 12, 17]


def test_rule_07_polling_costs_virtual_time(dev: Any) -> None:
    dev = dev.with_("toy-u")
    s, e = dev.Stream(), dev.Event()
    dev.kernel(100, s)
    e.record(s)
    polls = 0
    while not e.query():
        polls += 1
    assert (polls, dev.now) == (100, 107)


def test_rule_07_a_poll_ends_with_the_work(dev: Any) -> None:
    dev = dev.costing(query_ns=500)
    s, e = dev.Stream(), dev.Event()
    dev.kernel(100, s)
    e.record(s)
    assert not e.query()
    while not e.query():
        pass
    assert dev.now == dev.about(100)


def test_rule_07_a_free_poll_is_a_livelock(dev: Any) -> None:
    dev.not_on_a_real_gpu("a real query takes time")
    s, e = dev.Stream(), dev.Event()
    dev.kernel(100, s)
    e.record(s)

    def poll() -> None:
        while not e.query():
            pass

    with pytest.raises(Livelock, match="costs no time"):
        poll()
