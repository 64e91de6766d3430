"""Blocks of the caching allocator: sizes, pools, limits."""

from __future__ import annotations

import pytest

from labkit.device.api import Work
from labkit.device.virtual import VirtualDevice
from labkit.device.virtual.hardware import Hardware
from labkit.errors import DeviceError


def test_a_block_serves_its_own_size_in_its_own_stream_and_pool() -> None:
    device = VirtualDevice("zero")
    allocator, s, t, pool = device.allocator, device.stream("s"), device.stream("t"), device.graph_pool()
    block = allocator.malloc(1000, s)
    assert block.nbytes == 1024
    allocator.free(block)
    assert allocator.malloc(1000, t) is not block
    assert allocator.malloc(2000, s) is not block
    assert allocator.malloc(1000, s, pool) is not block
    assert allocator.malloc(1024, s) is block


def test_bytes_in_use_and_reserved() -> None:
    device = VirtualDevice("zero")
    allocator, s = device.allocator, device.stream("s")
    blocks = [allocator.malloc(512, s) for _ in range(3)]
    assert (allocator.in_use, allocator.reserved) == (1536, 1536)
    allocator.free(blocks.pop())
    assert (allocator.in_use, allocator.reserved) == (1024, 1536)
    allocator.empty_cache()
    assert (allocator.in_use, allocator.reserved) == (1024, 1024)


def test_emptying_an_empty_cache_does_not_wait() -> None:
    device = VirtualDevice("zero")
    s = device.stream("s")
    device.launch(None, s, work=Work("fixed", fixed_ns=1000), label="k")
    device.allocator.empty_cache()
    assert device.now_ns() == 0


def test_out_of_memory_says_how_much_there_is() -> None:
    device = VirtualDevice("zero", hardware=Hardware(memory_bytes=4096))
    s = device.stream("s")
    keep = device.allocator.malloc(3072, s)
    with pytest.raises(DeviceError, match=r"2048 bytes asked for, 1024 free of 4096"):
        device.allocator.malloc(2048, s)
    device.allocator.free(keep)
    assert device.allocator.malloc(4096, s).nbytes == 4096
