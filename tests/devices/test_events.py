"""Rules 15 to 25: events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devices.program import raises


def test_rule_15_record_captures_the_streams_content_at_the_call(dev: Any) -> None:
    s, e = dev.Stream(), dev.Event()
    dev.kernel(30, s)
    e.record(s)
    dev.kernel(50, s)
    e.synchronize()
    assert dev.now == dev.about(30)


def test_rule_16_an_event_never_recorded_is_empty(dev: Any) -> None:
    s1, s2, e = dev.Stream(), dev.Stream(), dev.Event()
    dev.kernel(30, s1, fraction=0.3)
    assert e.query()
    e.synchronize()
    s2.wait_event(e)
    work = dev.kernel(10, s2, fraction=0.3)
    assert dev.now == dev.about(0)
    dev.synchronize()
    assert work.start == dev.about(0)


def test_rule_17_wait_uses_the_most_recent_record(dev: Any) -> None:
    s1, s2, e = dev.Stream(), dev.Stream(), dev.Event()
    dev.kernel(30, s1, fraction=0.3)
    e.record(s1)
    s2.wait_event(e)
    dev.kernel(40, s1, fraction=0.3)
    e.record(s1)
    work = dev.kernel(10, s2, fraction=0.3)
    dev.synchronize()
    assert work.start == dev.about(30)


def test_rule_18_a_wait_before_the_record_waits_for_nothing(dev: Any) -> None:
    s1, s2, e = dev.Stream(), dev.Stream(), dev.Event()
    x = dev.tensor_of(1, "device", 0)
    s2.wait_event(e)
    dev.fill(x, 8, 30, s1, fraction=0.3)
    e.record(s1)
    seen, work = dev.read(x, 10, s2, fraction=0.3)
    dev.synchronize()
    assert work.start == dev.about(0)
    assert dev.peek(seen) == 0
    dev.expect_races(1)
    if not dev.real:
        (race,) = dev.report().races
        assert "already waited" in race.near_misses[0]


def test_rule_19_recording_again_overwrites(dev: Any) -> None:
    s, e = dev.Stream(), dev.Event()
    dev.kernel(30, s)
    e.record(s)
    dev.kernel(40, s)
    e.record(s)
    dev.host_until(50)
    assert not e.query()
    e.synchronize()
    assert dev.now == dev.about(70)


def test_rule_20_wait_never_blocks_the_host_and_touches_only_later_work(dev: Any) -> None:
    s1, s2, e = dev.Stream(), dev.Stream(), dev.Event()
    dev.kernel(30, s1, fraction=0.3)
    e.record(s1)
    before = dev.kernel(10, s2, fraction=0.3)
    s2.wait_event(e)
    after = dev.kernel(10, s2, fraction=0.3)
    assert dev.now == dev.about(0)
    dev.synchronize()
    assert (before.start, after.start, after.end) == (dev.about(0), dev.about(30), dev.about(40))


def test_rule_21_wait_stream_is_a_fresh_event_recorded_now_and_a_wait(dev: Any) -> None:
    s1, s2 = dev.Stream(), dev.Stream()
    dev.kernel(30, s1, fraction=0.3)
    s2.wait_stream(s1)
    dev.kernel(40, s1, fraction=0.3)
    work = dev.kernel(10, s2, fraction=0.3)
    dev.synchronize()
    assert work.start == dev.about(30)


def test_rule_22_the_boundary_of_a_query(dev: Any) -> None:
    s, e = dev.Stream(), dev.Event()
    dev.kernel(30, s)
    e.record(s)
    dev.host_until(20 if dev.real else 29)
    assert not e.query()
    dev.host_until(40 if dev.real else 30)
    assert e.query()


def test_rule_22_a_true_query_orders_the_host_after_the_event(dev: Any) -> None:
    s, e = dev.Stream(), dev.Event()
    h, x = dev.tensor_of(1, "pinned", 0), dev.tensor_of(1, "device", 8)
    dev.kernel(30, s)
    dev.copy(h, x, s)
    e.record(s)
    dev.host_until(50)
    assert e.query()
    assert dev.host_read(h) == 8
    dev.expect_races(0)


@pytest.mark.parametrize(("blocking", "returns"), [(False, 110), (True, 127)], ids=["spin", "blocking"])
def test_rule_23_the_cost_of_waiting_for_an_event(dev: Any, blocking: bool, returns: float) -> None:
    dev = dev.with_("toy-u")
    s, e = dev.Stream(), dev.Event(blocking=blocking)
    dev.kernel(100, s)
    e.record(s)
    e.synchronize()
    assert dev.now == returns


def test_rule_23_the_blocking_flag_does_not_make_wait_block_the_host(dev: Any) -> None:
    s, e = dev.Stream(), dev.Event(blocking=True)
    dev.kernel(100, s)
    e.record(s)
    dev.Stream().wait_event(e)
    assert dev.now == dev.about(0)
    e.synchronize()
    assert dev.now == dev.about(100)


def test_rule_24_elapsed_time(dev: Any) -> None:
    s, a, b = dev.Stream(), dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    a.record(s)
    dev.kernel(30, s)
    b.record(s)
    s.synchronize()
    assert a.elapsed_time(b) / dev.unit_ms == dev.about(30)


def test_rule_24_elapsed_time_does_not_wait_and_names_what_is_missing(dev: Any) -> None:
    s = dev.Stream()
    plain, timed, never = dev.Event(), dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    plain.record(s)
    timed.record(s)
    s.synchronize()
    kind = (ValueError, RuntimeError) if dev.real else ValueError  # it has changed between versions of torch
    raises(kind, lambda: timed.elapsed_time(plain))
    raises(kind, lambda: timed.elapsed_time(never))
    pending = dev.Event(enable_timing=True)
    dev.kernel(100, s)
    pending.record(s)
    raises(RuntimeError, lambda: timed.elapsed_time(pending))
    assert dev.now == dev.about(0)
    s.synchronize()


def test_rule_25_an_event_is_recorded_on_its_own_device(dev: Any) -> None:
    dev.not_on_a_real_gpu("needs two GPUs")
    dev = dev.with_(gpus=2)
    e = dev.Event()
    e.record(dev.Stream("cuda:0"))
    raises(RuntimeError, lambda: e.record(dev.Stream("cuda:1")))


def test_rule_25_waiting_from_another_device_is_legal(dev: Any) -> None:
    dev.not_on_a_real_gpu("needs two GPUs")
    dev = dev.with_(gpus=2)
    s0, s1, e = dev.Stream("cuda:0"), dev.Stream("cuda:1"), dev.Event()
    dev.kernel(30, s0)
    e.record(s0)
    s1.wait_event(e)
    work = dev.kernel(10, s1)
    dev.synchronize("cuda:1")
    assert (work.start, dev.now) == (30, 40)
