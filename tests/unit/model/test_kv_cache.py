"""Shapes and places of the paged cache."""

from __future__ import annotations

import torch

from labkit.model.api import KVSpec
from labkit.model.kv_cache import allocate, block_bytes, pool_slots, token_view

SPECS = [KVSpec("k0", (2, 8), torch.float32), KVSpec("v0", (2, 8), torch.bfloat16)]


def test_the_cache_has_one_more_block_for_trash() -> None:
    k, v = allocate(SPECS, num_blocks=3, block_size=4, fill=float("nan"))
    assert (k.shape, k.dtype, v.dtype) == ((4, 4, 2, 8), torch.float32, torch.bfloat16)
    assert k.isnan().all()


def test_bytes_of_a_block_count_every_tensor() -> None:
    assert block_bytes(SPECS, block_size=4) == 4 * 16 * (4 + 2)


def test_positions_run_through_the_block_table() -> None:
    assert pool_slots([5, 2], start=2, stop=6, block_size=4) == [22, 23, 8, 9]


def test_the_token_view_shares_memory() -> None:
    (k, _) = allocate(SPECS, num_blocks=3, block_size=4)
    token_view(k)[9] = 1.0
    assert k[2, 1].min() == 1.0
