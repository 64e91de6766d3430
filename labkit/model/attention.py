"""Attention of a ragged batch over a paged KV cache: what a backend is, and the one that runs everywhere.

``SdpaPaged`` calls PyTorch's scaled_dot_product_attention; ``labkit/model/flash.py`` has the one on flash-attn's paged
kernels, ``labkit/model/varlen.py`` the one on PyTorch's own. A backend works in two moves: ``plan`` turns the batch's
index tensors into what the layers share, once per forward pass, and ``attend`` runs per layer. Neither synchronises
with the device: sizes come from the host scalars of ``BatchShape``, contents stay on the device, and a decode-only
batch can be captured in a CUDA graph.

Legend: T tokens, R rows, S rows of one part, C queries per row (padded), K keys per row (padded), H query heads,
G query heads per KV head, D head size, B block size, M block-table columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
import torch.nn.functional as F

from labkit.model.api import BatchInputs
from labkit.model.kv_cache import token_view

KV = tuple[torch.Tensor, torch.Tensor]  # the K and V cache of one layer
SMALLEST_BUCKET = 128  # tokens; below this a shorter context saves no time worth another graph


class PagedAttention(Protocol):
    """How a batch attends over the paged cache. Stateless: what a batch needs is in the plan."""

    name: str
    why: str  # why this backend was chosen

    def context_bucket(self, context: int, limit: int) -> int:
        """The bound on context length that a graph bakes in."""

    def plan(self, inputs: BatchInputs, block_size: int) -> Any:
        """What all layers share for this batch. ``inputs`` must have passed ``clamp_indices``."""

    def attend(self, query: torch.Tensor, kv: KV, plan: Any, scale: float, window: int | None) -> torch.Tensor:
        """Attention output ``[T, H, D]`` of ``query`` ``[T, H, D]`` over the caches K and V ``[N + 1, B, H / G, D]``.

        ``window``: a query sees the last ``window`` keys only, itself included; None is all of them.
        """


def clamp_indices(inputs: BatchInputs, cache: torch.Tensor) -> BatchInputs:
    """The same batch with every index inside ``cache`` ``[N + 1, B, ...]`` and inside the batch.

    In a wrong combination of switches the tensors may belong to another step than the host scalars; then the tokens
    may be wrong, and no access may be out of bounds.
    """
    blocks, block_size = cache.shape[:2]
    tokens = inputs.shape.tokens
    return replace(
        inputs,
        slot_mapping=inputs.slot_mapping.clamp(0, blocks * block_size - 1).long(),
        cu_seqlens_q=inputs.cu_seqlens_q.clamp(0, tokens),
        seq_lens=inputs.seq_lens.clamp(1, inputs.block_table.shape[1] * block_size),
        block_table=inputs.block_table.clamp(0, blocks - 1),
        output_index=inputs.output_index.clamp(0, tokens - 1),
    )


def write_kv(kv: KV, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
    """Store K and V ``[T, H / G, D]`` of this batch's tokens at ``slots`` ``[T]`` int64."""
    token_view(kv[0]).index_copy_(0, slots, key)
    token_view(kv[1]).index_copy_(0, slots, value)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows with the same padded number of queries: the decode rows (C = 1), or the prefill chunks (C = max_chunk)."""

    tokens: slice  # this part's tokens in the batch
    kv_slots: torch.Tensor  # [S * K] int64, places in the pool
    query_pos: torch.Tensor  # [S, C] int64, position of each query in its request
    token_of_query: torch.Tensor | None = None  # [S * C] int64, within the part; None: row i is token i
    query_of_token: torch.Tensor | None = None  # [tokens of the part] int64, where a token's output is among the S * C
    masks: dict[tuple[int | None, int, torch.dtype], torch.Tensor] = field(default_factory=dict)

    def mask(self, window: int | None, group: int, dtype: torch.dtype) -> torch.Tensor:
        """What is added to the scores, ``[S, 1, G * C, K]``: 0 where a query sees a key, else minus infinity."""
        key = (window, group, dtype)
        if key not in self.masks:
            self.masks[key] = self._build_mask(window, dtype).repeat(1, 1, group, 1)
        return self.masks[key]

    def _build_mask(self, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        rows = self.query_pos.shape[0]
        query_pos = self.query_pos[:, None, :, None]
        key_pos = torch.arange(self.kv_slots.numel() // rows, device=query_pos.device)
        hidden = key_pos > query_pos
        if window is not None:
            hidden = hidden | (key_pos <= query_pos - window)
        return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill(hidden, float("-inf"))


class SdpaPaged:
    """Gather each row's K and V from the pool, pad, and call scaled_dot_product_attention once per part.

    Places past a row's length are never read: those keys repeat the row's last token and are masked, so memory that
    was never written (or is poisoned) cannot reach the result. The G query heads of a KV head become extra queries of
    that head, so K and V are not copied per query head.
    """

    name = "sdpa"

    def __init__(self, why: str = "runs everywhere") -> None:
        self.why = why

    def context_bucket(self, context: int, limit: int) -> int:
        """The next power of two from 128 up, at most ``limit``: the work grows with the bucket."""
        return min(limit, max(SMALLEST_BUCKET, 1 << (context - 1).bit_length()))

    def plan(self, inputs: BatchInputs, block_size: int) -> list[_Part]:
        shape = inputs.shape
        parts = [_decode_part(inputs, block_size)] if shape.decode_rows > 0 else []
        if shape.rows > shape.decode_rows:
            parts.append(_prefill_part(inputs, block_size))
        return parts

    def attend(self, query: torch.Tensor, kv: KV, plan: list[_Part], scale: float, window: int | None) -> torch.Tensor:
        outputs = [_attend_part(query[part.tokens], kv, part, scale, window) for part in plan]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def _decode_part(inputs: BatchInputs, block_size: int) -> _Part:
    rows = slice(0, inputs.shape.decode_rows)
    seq_lens, kv_slots = _keys(inputs, rows, block_size)
    return _Part(rows, kv_slots, query_pos=seq_lens - 1)


def _prefill_part(inputs: BatchInputs, block_size: int) -> _Part:
    shape = inputs.shape
    rows, tokens = slice(shape.decode_rows, shape.rows), slice(shape.decode_rows, shape.tokens)
    count = tokens.stop - tokens.start
    seq_lens, kv_slots = _keys(inputs, rows, block_size)
    bounds = inputs.cu_seqlens_q[rows.start : rows.stop + 1].long()[:, None] - tokens.start  # [S + 1, 1]
    first, lengths = bounds[:-1], (bounds[1:] - bounds[:-1]).clamp(1, shape.max_chunk)
    within = torch.arange(shape.max_chunk, device=first.device).minimum(lengths - 1)  # [S, C], padding repeats the last
    return _Part(
        tokens,
        kv_slots,
        query_pos=(seq_lens - lengths + within).clamp(min=0),
        token_of_query=(first + within).clamp(0, count - 1).flatten(),
        query_of_token=_query_of_token(first, count, shape.max_chunk),
    )


def _keys(inputs: BatchInputs, rows: slice, block_size: int) -> KV:
    """Context length of each row ``[S, 1]`` and places of its keys ``[S * K]``, both int64."""
    columns = min(-(-inputs.shape.context // block_size), inputs.block_table.shape[1])
    seq_lens = inputs.seq_lens[rows].long()[:, None].clamp(max=columns * block_size)
    pos = torch.arange(columns * block_size, device=seq_lens.device).minimum(seq_lens - 1)  # [S, K]
    blocks = inputs.block_table[rows].long().gather(1, pos // block_size)
    return seq_lens, (blocks * block_size + pos % block_size).flatten()


def _query_of_token(first: torch.Tensor, count: int, queries: int) -> torch.Tensor:
    token = torch.arange(count, device=first.device)
    starts = first[:, 0].contiguous()
    row = (torch.searchsorted(starts, token, right=True) - 1).clamp(min=0)
    return row * queries + (token - starts[row]).clamp(0, queries - 1)


def _attend_part(query: torch.Tensor, kv: KV, part: _Part, scale: float, window: int | None) -> torch.Tensor:
    rows, queries = part.query_pos.shape
    kv_heads, size = kv[0].shape[2:]
    group = query.shape[1] // kv_heads
    k, v = (token_view(cache)[part.kv_slots].view(rows, -1, kv_heads, size).transpose(1, 2) for cache in kv)
    q = query if part.token_of_query is None else query[part.token_of_query]
    q = q.reshape(rows, queries, kv_heads, group, size).permute(0, 2, 3, 1, 4)
    q = q.reshape(rows, kv_heads, group * queries, size)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=part.mask(window, group, q.dtype), scale=scale)
    out = out.reshape(rows, kv_heads, group, queries, size).permute(0, 3, 1, 2, 4)
    out = out.reshape(rows * queries, -1, size)
    return out if part.query_of_token is None else out[part.query_of_token]
