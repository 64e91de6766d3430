"""Rules 26 to 34: copies, pinned and pageable."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch


def test_rule_26_pinned_and_non_blocking_leaves_the_host_free(dev: Any) -> None:
    x, h = dev.tensor_of(40, "device"), dev.tensor_of(40, "pinned", 8)
    copy = dev.copy(x, h, dev.Stream())
    assert dev.now == dev.about(0) or dev.real
    before = dev.now
    dev.synchronize()
    assert (copy.end - copy.start, dev.now - before) == (dev.about(40), dev.about(40))
    assert dev.peek(x) == 8


def test_rule_27_the_default_stream_does_not_make_non_blocking_copies_block(dev: Any) -> None:
    x, h = dev.tensor_of(40, "device"), dev.tensor_of(40, "pinned", 8)
    begin = dev.now
    kernel = dev.kernel(30, dev.default_stream())
    copy = dev.copy(x, h, dev.default_stream())
    assert dev.now - begin == dev.about(0)
    dev.synchronize()
    assert (copy.start - kernel.start, copy.end - kernel.start) == (dev.about(30), dev.about(70))


def test_rule_28_a_blocking_copy_waits_for_the_current_stream_only(dev: Any) -> None:
    s, s2 = dev.Stream(), dev.Stream()
    x, h = dev.tensor_of(40, "device"), dev.tensor_of(40, "pinned", 8)
    begin = dev.now
    dev.kernel(500, s2, fraction=0.3)
    dev.kernel(30, s, fraction=0.3)
    dev.copy(x, h, s, non_blocking=False)
    assert dev.now - begin == dev.about(70)
    dev.synchronize()
    assert dev.now - begin == dev.about(500)


@pytest.mark.parametrize(
    ("policy", "returns", "dma"),
    [("sync_stage", 35, (35, 75)), ("stage_only", 5, (30, 70))],
)
def test_rule_29_a_pageable_upload_returns_after_staging(
    dev: Any, policy: str, returns: float, dma: tuple[float, float]
) -> None:
    dev = dev.with_(staging=policy)
    s, x, h = dev.Stream(), dev.tensor_of(40, "device"), dev.tensor_of(40, "pageable", 1)
    dev.kernel(30, s)
    copy = dev.copy(x, h, s)
    assert dev.now == returns
    dev.host_fill(h, 2)
    dev.synchronize()
    assert (copy.start, copy.end) == dma
    assert dev.peek(x) == 1
    dev.expect_races(0)


@pytest.mark.parametrize(("nbytes", "waits"), [(32 << 10, False), (32 << 20, True)], ids=["32KiB", "32MiB"])
def test_rule_29_only_a_large_pageable_upload_waits_for_its_stream(dev: Any, nbytes: int, waits: bool) -> None:
    s = dev.Stream()
    h, x = dev.empty(nbytes // 4), dev.empty(nbytes // 4, device="cuda")
    dev.host_fill(h, 1)
    dev.synchronize()
    kernel = dev.kernel(40_000 if not dev.real else 400, s)
    begin = dev.now
    dev.copy(x, h, s)
    returned = dev.now
    dev.host_fill(h, 2)
    dev.synchronize()
    assert (returned - begin >= 0.9 * (kernel.end - kernel.start)) == waits
    assert dev.peek(x) == 1, "the host is free to overwrite the source"


def test_rule_30_a_pageable_download_returns_when_the_data_is_there(dev: Any) -> None:
    s, x, h = dev.Stream(), dev.tensor_of(40, "device", 0), dev.tensor_of(40, "pageable", 0)
    begin = dev.now
    dev.fill(x, 8, 30, s)
    dev.copy(h, x, s, non_blocking=True)
    assert dev.now - begin == 70 or (dev.real and dev.now - begin >= 30)
    assert dev.host_read(h) == 8
    dev.expect_races(0)


def cache_a_pinned_block(dev: Any, x: Any) -> None:
    """Pinning memory takes a real host milliseconds; the caching allocator has the block from now on."""
    h = x.to("cpu", non_blocking=True)
    dev.synchronize()
    del h


def test_rule_31_to_cpu_non_blocking_does_not_wait(dev: Any) -> None:
    s, x = dev.Stream(), dev.tensor_of(40, "device", 0)
    cache_a_pinned_block(dev, x)
    begin = dev.now
    dev.fill(x, 831, 30, s)
    with dev.stream(s):
        h = x.to("cpu", non_blocking=True)
    assert h.is_pinned()
    assert dev.now - begin < 30
    assert dev.host_read(h) != 831
    dev.synchronize()
    assert dev.peek(h) == 831
    dev.expect_races(1)


def test_rule_31_an_event_makes_it_safe(dev: Any) -> None:
    s, e, x = dev.Stream(), dev.Event(), dev.tensor_of(40, "device", 0)
    begin = dev.now
    dev.fill(x, 8, 30, s)
    with dev.stream(s):
        h = x.to("cpu", non_blocking=True)
    e.record(s)
    e.synchronize()
    assert dev.now - begin == 70 or dev.real
    assert dev.host_read(h) == 8
    dev.expect_races(0)


def test_rule_32_overwriting_a_pinned_source_corrupts_the_pending_copy(dev: Any) -> None:
    s, x, h = dev.Stream(), dev.tensor_of(40, "device", 0), dev.tensor_of(40, "pinned", 1)
    dev.kernel(200 if dev.real else 30, s)
    dev.copy(x, h, s)
    dev.host_until(5)
    dev.host_fill(h, 2)
    dev.synchronize()
    assert dev.peek(x) == 2
    dev.expect_races(1)


@pytest.mark.parametrize(("policy", "value"), [("end", 2), ("start", 1)])
def test_rule_32_when_dma_reads_decides_what_arrives_and_not_the_verdict(dev: Any, policy: str, value: float) -> None:
    dev = dev.with_(dma_reads=policy)
    s, x, h = dev.Stream(), dev.tensor_of(40, "device", 0), dev.tensor_of(40, "pinned", 1)
    dev.kernel(30, s)
    dev.copy(x, h, s)
    dev.host_until(50)
    dev.host_fill(h, 2)
    dev.synchronize()
    assert dev.peek(x) == value
    dev.expect_races(1)


def test_rule_33_freeing_a_pinned_source_early_is_safe(dev: Any) -> None:
    s, x, p = dev.Stream(), dev.tensor_of(40, "device", 0), dev.tensor_of(40, "pinned", 8)
    shape, address = p.shape, p.data_ptr()
    dev.kernel(100, s)
    dev.copy(x, p, s)
    del p
    other = dev.empty(*shape, pin_memory=True)
    dev.host_fill(other, 2)
    assert other.data_ptr() != address
    dev.synchronize()
    again = [dev.empty(*shape, pin_memory=True) for _ in range(4)]
    assert address in [tensor.data_ptr() for tensor in again]
    assert dev.peek(x) == 8


def test_rule_33_sizes_are_rounded_to_a_power_of_two(dev: Any) -> None:
    p = dev.empty(3 << 18, pin_memory=True)  # 3 MiB, in a block of 4
    address = p.data_ptr()
    del p
    larger = [dev.empty(1 << 20, pin_memory=True) for _ in range(4)]
    assert address in [tensor.data_ptr() for tensor in larger]


def test_rule_34_a_copy_on_one_device_is_asynchronous(dev: Any) -> None:
    s, x, y = dev.Stream(), dev.tensor_of(1, "device", 8), dev.tensor_of(1, "device", 0)
    begin = dev.now
    dev.kernel(100, s)
    dev.copy(y, x, s, non_blocking=False)
    assert dev.now - begin == dev.about(0)
    s.synchronize()
    assert dev.now - begin >= 100 * (0.85 if dev.real else 1)
    assert dev.peek(y) == 8


def test_rule_34_a_copy_across_devices_is_a_barrier_for_the_destination_too(dev: Any) -> None:
    dev.not_on_a_real_gpu("needs two GPUs")
    dev = dev.with_(gpus=2)
    x, y = dev.empty(4, device="cuda:0"), dev.empty(4, device="cuda:1")
    before = dev.kernel(30, dev.current_stream("cuda:1"))
    copy = dev.copy(y, x)
    after = dev.kernel(10, dev.current_stream("cuda:1"))
    assert dev.now == 0
    dev.synchronize("cuda:0")
    dev.synchronize("cuda:1")
    assert (before.end, copy.start, copy.end, after.start) == (30, 30, 40, 40)


def test_rule_34_a_copy_can_convert(dev: Any) -> None:
    h, x = dev.empty(8, dtype=torch.int64, pin_memory=True), dev.empty(8, device="cuda")
    dev.host_fill(h, 3)
    dev.copy(x, h)
    dev.synchronize()
    assert dev.peek(x) == 3
    assert x.dtype == torch.float32


def test_fresh_memory_is_poisoned(dev: Any) -> None:
    dev.not_on_a_real_gpu("fresh memory there holds what it held before")
    x, y = dev.empty(4, device="cuda"), dev.empty(4, device="cuda", dtype=torch.int32)
    assert math.isnan(dev.peek(x))
    assert dev.peek(y) == -842150451  # 0xCDCDCDCD
