"""The paged KV cache as tensors: shapes, allocation, the place of a token. Who owns a block is the engine's business.

Legend: N blocks in the pool, B tokens per block. A *slot* of the pool is one token's place: ``block * B + offset``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from labkit.model.api import KVSpec


def cache_shape(spec: KVSpec, num_blocks: int, block_size: int) -> tuple[int, ...]:
    """``[N + 1, B, *per_token]``: the last block is the trash block, which takes the writes of padding rows."""
    return (num_blocks + 1, block_size, *spec.per_token)


def allocate(
    specs: Sequence[KVSpec], num_blocks: int, block_size: int, device: torch.device | str = "cpu", fill: float = 0.0
) -> list[torch.Tensor]:
    """One tensor per spec, every element ``fill`` (NaN shows a read of memory that was never written)."""
    return [torch.full(cache_shape(s, num_blocks, block_size), fill, dtype=s.dtype, device=device) for s in specs]


def block_bytes(specs: Sequence[KVSpec], block_size: int) -> int:
    """Bytes that one KV block takes over all tensors of the cache."""
    return block_size * sum(math.prod(spec.per_token) * spec.dtype.itemsize for spec in specs)


def pool_slots(block_table: Sequence[int], start: int, stop: int, block_size: int) -> list[int]:
    """Places in the pool of the positions ``[start, stop)`` of a request whose blocks are ``block_table``."""
    return [block_table[pos // block_size] * block_size + pos % block_size for pos in range(start, stop)]


def token_view(cache: torch.Tensor) -> torch.Tensor:
    """The cache ``[N + 1, B, H, D]`` as one row per token place, ``[(N + 1) * B, H, D]``; no copy."""
    return cache.view(-1, *cache.shape[2:])
