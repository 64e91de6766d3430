"""Rules 35 to 40: what the host waits for, asked to or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.devices.program import Virtual, raises


def test_rule_35_a_stream_is_waited_for_alone_a_device_as_a_whole(dev: Any) -> None:
    s1, s2 = dev.Stream(), dev.Stream()
    dev.kernel(30, s1, fraction=0.3)
    dev.kernel(100, s2, fraction=0.3)
    s1.synchronize()
    assert dev.now == dev.about(30)
    dev.synchronize()
    assert dev.now == dev.about(100)


def test_rule_36_item_waits_for_the_current_stream_not_for_the_device(dev: Any) -> None:
    s1, s2, x = dev.Stream(), dev.Stream(), dev.tensor_of(0.1, "device", 8)
    begin = dev.now
    dev.kernel(30, s1, fraction=0.3)
    dev.kernel(100, s2, fraction=0.3)
    with dev.stream(s1):
        assert x[0].item() == 8
    assert dev.now - begin == (dev.about(30) if dev.real else 30.004)  # 4 bytes at 1 byte per ns


# What a program writes, and what happens on the device: x is [1, 2, 3] there.
SYNCHRONISING: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda dev, x: x[0].item(),
    "tolist": lambda dev, x: x.tolist(),
    "bool": lambda dev, x: bool(x[0]),
    "float": lambda dev, x: float(x[0]),
    "print": lambda dev, x: repr(x),
    "cpu": lambda dev, x: x.cpu(),
    "to cpu": lambda dev, x: x.to("cpu"),
    "cuda": lambda dev, x: dev.empty(3, pin_memory=True).cuda(),
    "to cuda": lambda dev, x: dev.empty(3, pin_memory=True).to("cuda"),
    "tensor": lambda dev, x: dev.tensor([1.0, 2.0], device="cuda"),
    "as_tensor": lambda dev, x: dev.as_tensor([1.0, 2.0], device="cuda"),
    "nonzero": lambda dev, x: x.nonzero(),
    "mask": lambda dev, x: x[x > 1],
    "masked_select": lambda dev, x: x.masked_select(x > 1),
    "unique": lambda dev, x: x.unique(),
    "repeat_interleave": lambda dev, x: x.repeat_interleave(dev.ints),
    "index with a list": lambda dev, x: x[[0, 2]],
    "index with a host tensor": lambda dev, x: x[dev.host_ints],
    "slice with device bounds": lambda dev, x: x[dev.ints[0] : dev.ints[1]],
    "assign a number": lambda dev, x: x.__setitem__(dev.ints, 7.0),
    "is_nonzero": lambda dev, x: x[0].is_nonzero(),
}
NOT_SYNCHRONISING: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda dev, x: x.add_(1),
    "index with a device tensor": lambda dev, x: x[dev.ints],
    "repeat_interleave with output_size": lambda dev, x: x.repeat_interleave(dev.ints, output_size=3),
    "non_blocking upload": lambda dev, x: dev.pinned.to("cuda", non_blocking=True),
    "non_blocking download": lambda dev, x: x.to("cpu", non_blocking=True),
    "slice": lambda dev, x: x[1:],
    "sum": lambda dev, x: x.sum(),
}


@pytest.fixture
def x(dev: Any) -> Any:
    """A device tensor [1, 2, 3]; indices [0, 1, 2] on the device and on the host, a pinned tensor on ``dev``."""
    dev.ints = dev.tensor([0, 1, 2], device="cuda")
    dev.host_ints = dev.tensor([0, 2])
    dev.pinned = dev.empty(3, pin_memory=True)
    return dev.tensor([1.0, 2.0, 3.0], device="cuda")


@pytest.mark.parametrize("call", SYNCHRONISING.values(), ids=SYNCHRONISING)
def test_rule_37_calls_that_wait_for_the_current_stream(dev: Any, x: Any, call: Callable[[Any, Any], Any]) -> None:
    s = dev.Stream()
    if dev.real:
        call(dev, x)  # loads its kernels
        dev.synchronize()
    begin = dev.now
    with dev.stream(s):
        dev.kernel(60, s, fraction=0.3)
        call(dev, x)
    waited = dev.now - begin
    dev.synchronize()
    dev.settle_on_hardware("the call waits for its stream", waited >= (50 if dev.real else 60), waited)


@pytest.mark.parametrize("call", SYNCHRONISING.values(), ids=SYNCHRONISING)
def test_rule_37_the_sync_debug_mode_notices(dev: Any, x: Any, call: Callable[[Any, Any], Any]) -> None:
    dev.synchronize()
    dev.set_sync_debug_mode("error")
    try:
        call(dev, x)
        error = "nothing"
    except RuntimeError as raised:
        error = str(raised)
    except SystemError:  # torch 2.11 loses the message where the call is made inside an operator
        error = "synchronizing"
    finally:
        dev.set_sync_debug_mode("default")
    dev.settle_on_hardware("set_sync_debug_mode('error') raises", "synchronizing" in error, error)


@pytest.mark.parametrize("call", NOT_SYNCHRONISING.values(), ids=NOT_SYNCHRONISING)
def test_rule_37_calls_that_do_not_wait(dev: Any, x: Any, call: Callable[[Any, Any], Any]) -> None:
    s = dev.Stream()
    if dev.real:
        call(dev, x)
        dev.synchronize()
    begin = dev.now
    dev.set_sync_debug_mode("error")
    try:
        with dev.stream(s):
            dev.kernel(60, s, fraction=0.3)
            call(dev, x)
    finally:
        dev.set_sync_debug_mode("default")
    assert dev.now - begin < 50
    dev.synchronize()


def test_rule_37_the_debug_mode_does_not_notice_explicit_waits(dev: Any) -> None:
    e = dev.Event()
    e.record()
    dev.set_sync_debug_mode("error")
    try:
        e.synchronize()
    finally:
        dev.set_sync_debug_mode("default")


@pytest.mark.parametrize(("blocking", "returns"), [(False, 30), (True, 100)], ids=["torch stream", "blocking stream"])
def test_rule_38_synchronising_the_default_stream(dev: Any, blocking: bool, returns: float) -> None:
    side = dev.foreign_stream(blocking=True) if blocking else dev.Stream()
    dev.kernel(100, side, fraction=0.3)
    if not blocking:
        dev.kernel(30, dev.default_stream(), fraction=0.3)
    dev.default_stream().synchronize()
    assert dev.now == dev.about(returns)
    dev.synchronize()


def test_rule_39_cached_allocations_never_wait_and_empty_cache_does(dev: Any) -> None:
    s = dev.Stream()
    with dev.stream(s):
        warm = dev.empty(1 << 10, device="cuda")
    del warm
    dev.synchronize()
    begin = dev.now
    with dev.stream(s):
        dev.kernel(400 if dev.real else 100, s)
        for _ in range(100 if dev.real else 1000):
            dev.empty(1 << 10, device="cuda")
    assert dev.now - begin == 0 or (dev.real and dev.now - begin < 300)
    dev.empty_cache()
    waited = dev.now - begin
    dev.synchronize()
    dev.settle_on_hardware("empty_cache waits for the device", waited >= (350 if dev.real else 100), waited)


def test_rule_39_a_cache_miss_costs_the_host_and_does_not_wait(dev: Any) -> None:
    dev = dev.costing(malloc_ns=7000)
    s = dev.Stream()
    begin = dev.now
    dev.kernel(400 if dev.real else 100, s)
    large = dev.empty(333 << 20 if dev.real else 333 << 10, device="cuda")
    took = dev.now - begin
    dev.synchronize()
    assert large.numel()
    dev.settle_on_hardware("cudaMalloc does not wait", took < 300 if dev.real else took == 7, took)


def test_rule_39_out_of_memory_waits_for_blocks_that_other_streams_still_use(dev: Any) -> None:
    dev = dev.with_(memory_bytes=1 << 20)
    s, t = dev.Stream(), dev.Stream()
    with dev.stream(s):
        x = dev.empty(200 << 10, device="cuda")
    dev.read(x[:1], 70, t, fraction=0.3)
    x.record_stream(t)
    del x
    with dev.stream(s):
        y = dev.empty(200 << 10, device="cuda")
    assert dev.now == 70
    raises(RuntimeError, lambda: dev.empty(300 << 10, device="cuda"))
    assert y.numel()


def launch_and_look(dev: Any) -> tuple[float, float]:
    """How long a launch took the host, and what a kernel wrote."""
    s, x = dev.Stream(), dev.tensor_of(1, "device", 0)
    begin = dev.now
    dev.fill(x, 8, 30, s)
    return dev.now - begin, dev.peek(x)


def test_rule_40_launch_blocking_returns_at_completion(dev: Any) -> None:
    took, value = dev.isolated(launch_and_look, launch_blocking=True)
    assert took == dev.about(30)
    assert value == 8


def test_rule_40_launch_blocking_changes_no_value_of_a_program_without_races() -> None:
    def program(device: Virtual) -> float:
        s, t, x = device.Stream(), device.Stream(), device.tensor_of(1, "device", 0)
        device.fill(x, 8, 30, s, fraction=0.3)
        t.wait_stream(s)
        seen, _ = device.read(x, 10, t, fraction=0.3)
        device.synchronize()
        return device.peek(seen)

    assert program(Virtual()) == program(Virtual(launch_blocking=True)) == 8
