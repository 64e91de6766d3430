"""A model without weights: every next token depends on the whole history, through a real paged KV cache.

Per token the cache holds two integers: ``key = hash(token, position)`` and ``total``, the sum of the keys of the whole
context. A step reads the total of the position before its chunk through the block table, and one earlier key at a place
that depends on the position. So a stale placeholder, a wrong block, a torn buffer or a lost write changes the output
from there on, in milliseconds and without a download.

Arithmetic is int64 with wrap-around, the same on every device; logits are 24-bit integers scaled to [0, 8), no two of
a row alike.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from labkit.errors import InvalidArgument
from labkit.model.api import BatchInputs, KVSpec

_A, _B, _C, _D = 0x9E3779B97F4A7C15 - 2**64, 0x2545F4914F6CDD1D, 0x5851F42D4C957F2D, 0x2127599BF4325C37


def _mix(x: torch.Tensor) -> torch.Tensor:
    """A 64-bit integer hash; arithmetic shifts are masked to act as logical ones."""
    x = (x ^ ((x >> 32) & 0xFFFFFFFF)) * _D
    return x ^ ((x >> 29) & 0x7FFFFFFFF)


class ToyModel:
    """The toy model. Tokens are bytes, so any text is a prompt; ``eos_token_ids`` makes some of them end a request."""

    name = "toy"
    preferred_block_size = 16

    def __init__(self, vocab_size: int = 256, max_model_len: int = 16384, eos_token_ids: Sequence[int] = ()) -> None:
        if not 2 <= vocab_size <= 256:
            raise InvalidArgument("vocab_size", vocab_size, "2 to 256")
        self.vocab_size, self.max_model_len = vocab_size, max_model_len
        self.eos_token_ids = tuple(eos_token_ids)
        self._tokens = torch.arange(vocab_size, dtype=torch.int64)  # [V]
        self._salt = self._tokens * _A

    def for_block_size(self, block_size: int) -> ToyModel:
        return self

    def compiled(self) -> ToyModel:
        return self

    def kv_specs(self) -> Sequence[KVSpec]:
        return KVSpec("key", (), torch.int64), KVSpec("total", (), torch.int64)

    def context_bucket(self, context: int, limit: int) -> int:
        return limit

    def encode(self, text: str) -> list[int]:
        return [byte % self.vocab_size for byte in text.encode()]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(97 + token % 26) for token in tokens)

    def to(self, device: torch.device) -> ToyModel:
        moved = copy.copy(self)
        moved._tokens, moved._salt = self._tokens.to(device), self._salt.to(device)
        return moved

    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        keys, totals = (cache.view(-1) for cache in kv)  # [slots]
        block_size = kv[0].shape[1]
        slots = inputs.slot_mapping.long()  # [T]
        positions = inputs.positions.long()  # [T]
        key = _mix(inputs.token_ids.long() * _A + (positions + 1) * _B)  # [T]
        keys[slots] = key
        total = self._totals(inputs, key, positions, totals, block_size)  # [T]
        totals[slots] = total
        last = inputs.output_index.long().clamp(0, inputs.shape.tokens - 1)  # [R]; may be another, longer step's
        earlier = positions[last] * 7 // 11
        state = total[last] + _mix(keys[_places(inputs, earlier, block_size)]) * _C  # [R]
        return self._logits(state)

    def _totals(
        self, inputs: BatchInputs, key: torch.Tensor, positions: torch.Tensor, totals: torch.Tensor, block_size: int
    ) -> torch.Tensor:
        """Running totals of every token, [T]: what the cache holds before the row's chunk, plus the chunk so far."""
        rows, tokens = inputs.shape.rows, inputs.shape.tokens
        if inputs.shape.decode_only:
            return self._before(inputs, positions, totals, block_size) + key
        first = inputs.cu_seqlens_q[:rows].long().clamp(max=tokens - 1)  # [R]
        before = self._before(inputs, positions[first], totals, block_size)  # [R]
        running = key.cumsum(0)  # [T]
        row = torch.searchsorted(inputs.cu_seqlens_q[1:], torch.arange(tokens, device=key.device), right=True)
        row = row.clamp(max=rows - 1)  # [T]
        return running + (before - running[first] + key[first])[row]

    @staticmethod
    def _before(inputs: BatchInputs, first: torch.Tensor, totals: torch.Tensor, block_size: int) -> torch.Tensor:
        """The total in the cache just before each row's first position, [R]; 0 at position 0."""
        value = totals[_places(inputs, (first - 1).clamp(min=0), block_size)]
        return torch.where(first > 0, value, 0)

    def _logits(self, state: torch.Tensor) -> torch.Tensor:
        value = _mix(state[:, None] + self._salt)  # [R, V]
        return (((value >> 24) & 0xFFFF00) | self._tokens).float() * (8 / 2**24)


def _places(inputs: BatchInputs, positions: torch.Tensor, block_size: int) -> torch.Tensor:
    """Places in the KV pool of one position per row, [R], through the block table."""
    column = (positions // block_size).clamp(max=inputs.block_table.shape[1] - 1)
    block = inputs.block_table.gather(1, column[:, None])[:, 0].long()
    return block * block_size + positions % block_size
