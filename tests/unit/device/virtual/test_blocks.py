"""A freed block waits for the streams that use it."""

from __future__ import annotations

import math

import torch

from labkit.device.api import Work
from labkit.device.virtual import VirtualDevice
from labkit.device.virtual.blocks import Block, BlockCache


def test_a_block_comes_back_when_its_streams_got_there() -> None:
    device = VirtualDevice("zero")
    s, cache, block = device.stream("s"), BlockCache(device), Block(1, 0, 512, "key")
    device.launch(None, s, work=Work("fixed", fixed_ns=1000), label="k")
    block.uses[s] = None
    cache.give(block)
    assert cache.take("key") is None
    device.sleep_until(1000)
    assert cache.take("other") is None
    assert cache.take("key") is block


def test_the_block_freed_last_is_used_first() -> None:
    cache = BlockCache(VirtualDevice("zero"))
    blocks = [Block(n, 0, 512, "key") for n in range(3)]
    for block in blocks:
        cache.give(block)
    assert [cache.take("key") for _ in range(3)] == blocks[::-1]


def test_a_new_block_is_poison_of_its_type() -> None:
    block = Block(1, 0, 512, "key")
    assert math.isnan(block.typed(8, (2,), torch.float32)[1])
    block.typed(8, (2,), torch.float32).fill_(3)
    assert block.typed(8, (2,), torch.float32).tolist() == [3, 3], "only once: later contents are the program's"
    block.poison()
    assert math.isnan(block.typed(8, (2,), torch.float32)[0])
