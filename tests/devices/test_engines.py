"""Rules 41 to 45: copy engines, the compute queue, priorities, hardware queues."""

from __future__ import annotations

from typing import Any


def test_rule_41_both_copy_engines_and_compute_run_at_once(dev: Any) -> None:
    x, h = dev.tensor_of(40, "device", 0), dev.tensor_of(40, "pinned", 8)
    y, g = dev.tensor_of(40, "device", 0), dev.tensor_of(40, "pinned", 8)
    kernel = dev.kernel(40, dev.Stream())
    up = dev.copy(x, h, dev.Stream())
    down = dev.copy(g, y, dev.Stream())
    dev.synchronize()
    assert [up.start - kernel.start, down.start - kernel.start] == [dev.about(0), dev.about(0)]
    assert max(kernel.end, up.end, down.end) - kernel.start == dev.about(40, tolerance=15)


def test_rule_42_one_direction_is_one_engine(dev: Any) -> None:
    x, y = dev.tensor_of(40, "device", 0), dev.tensor_of(40, "device", 0)
    h, g = dev.tensor_of(40, "pinned", 8), dev.tensor_of(40, "pinned", 9)
    first, second = dev.copy(x, h, dev.Stream()), dev.copy(y, g, dev.Stream())
    dev.synchronize()
    assert max(first.end, second.end) - first.start == dev.about(80)
    if not dev.real:
        assert (first.end, second.start) == (40, 40)


def test_rule_42_an_engines_order_is_no_order(dev: Any) -> None:
    x = dev.tensor_of(40, "device", 0)
    h, g = dev.tensor_of(40, "pinned", 8), dev.tensor_of(40, "pinned", 9)
    dev.copy(x, h, dev.Stream())
    dev.copy(x, g, dev.Stream())
    dev.synchronize()
    dev.expect_races(1)


def test_rule_43_an_engine_takes_what_is_ready_first(dev: Any) -> None:
    s1, s2 = dev.Stream(), dev.Stream()
    x, y = dev.tensor_of(40, "device", 0), dev.tensor_of(40, "device", 0)
    h, g = dev.tensor_of(40, "pinned", 8), dev.tensor_of(40, "pinned", 9)
    kernel = dev.kernel(30, s1)
    late, early = dev.copy(x, h, s1), dev.copy(y, g, s2)
    dev.synchronize()
    assert early.end - kernel.start == dev.about(40, tolerance=15)
    assert late.end - kernel.start == dev.about(80, tolerance=15)


def test_rule_44_priority_orders_pending_work_and_does_not_preempt(dev: Any) -> None:
    dev.not_on_a_real_gpu("needs kernels that fill the GPU: see benchmarks/open_points.py, (d)")
    low, low2, high = dev.Stream(), dev.Stream(), dev.Stream(priority=-1)
    dev.kernel(100, low)
    dev.host_until(10)
    second, first = dev.kernel(50, low2), dev.kernel(10, high)
    dev.synchronize()
    assert (first.start, first.end, second.start, second.end) == (100, 110, 110, 160)


def test_rule_44_a_lower_number_is_a_higher_priority(dev: Any) -> None:
    assert dev.Stream(priority=-1).priority < dev.Stream().priority == 0


def test_rule_45_few_hardware_queues_alias_streams(dev: Any) -> None:
    dev = dev.with_(connections=1)
    s1, s2 = dev.Stream(), dev.Stream()
    x, y = dev.tensor_of(40, "device", 0), dev.tensor_of(40, "device", 0)
    h, g = dev.tensor_of(40, "pinned", 8), dev.tensor_of(40, "pinned", 9)
    dev.kernel(30, s1)
    first, second = dev.copy(x, h, s1), dev.copy(y, g, s2)
    dev.synchronize()
    assert (first.start, first.end, second.start, second.end) == (30, 70, 70, 110)
