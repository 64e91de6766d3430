"""Paged attention on flash-attn's kernels, and the choice between the backends by trying them.

Legend: T tokens, R rows, H query heads, G query heads per KV head, D head size, B block size, M block-table columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from labkit.model.api import BatchInputs, BatchShape
from labkit.model.attention import KV, PagedAttention, SdpaPaged
from labkit.model.varlen import VarlenPaged

CLOSE = 0.05  # what the probe's half-precision results may differ by


@dataclass(frozen=True, slots=True)
class _FlashPlan:
    shape: BatchShape
    block_table: torch.Tensor  # [R, M] int32
    seq_lens: torch.Tensor  # [R] int32
    prefill_cu_q: torch.Tensor | None = None  # [prefill rows + 1] int32, from 0; None: no prefill
    prefill_cu_k: torch.Tensor | None = None  # [prefill rows + 1] int32, from 0


class FlashPaged:
    """flash-attn's paged kernels: ``flash_attn_with_kvcache`` for decode rows, ``flash_attn_varlen_func`` for prefill.

    CUDA, fp16 or bf16, block size a multiple of 256 (flash-attn 2). Context length is a device tensor here, so one
    graph serves every length.
    """

    name = "flash"

    def __init__(self, why: str = "flash-attn works here") -> None:
        from flash_attn import flash_attn_varlen_func, flash_attn_with_kvcache

        self.why = why
        self._decode, self._prefill = flash_attn_with_kvcache, flash_attn_varlen_func

    def context_bucket(self, context: int, limit: int) -> int:
        return limit

    def plan(self, inputs: BatchInputs, block_size: int) -> _FlashPlan:
        shape, decode = inputs.shape, inputs.shape.decode_rows
        if shape.rows == decode:
            return _FlashPlan(shape, inputs.block_table, inputs.seq_lens)
        lengths = inputs.seq_lens[decode:].cumsum(0, dtype=torch.int32)
        return _FlashPlan(
            shape=shape,
            block_table=inputs.block_table,
            seq_lens=inputs.seq_lens,
            prefill_cu_q=(inputs.cu_seqlens_q[decode:] - decode).clamp(min=0),
            prefill_cu_k=F.pad(lengths, (1, 0)),
        )

    def attend(self, query: torch.Tensor, kv: KV, plan: _FlashPlan, scale: float, window: int | None) -> torch.Tensor:
        left_right = (-1, -1) if window is None else (window - 1, 0)
        options = {"softmax_scale": scale, "causal": True, "window_size": left_right}
        decode, rows = plan.shape.decode_rows, plan.shape.rows
        outputs = []
        if decode > 0:
            outputs.append(self._attend_decode(query[:decode], kv, plan, options))
        if rows > decode:
            outputs.append(self._attend_prefill(query[decode:], kv, plan, options))
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _attend_decode(self, query: torch.Tensor, kv: KV, plan: _FlashPlan, options: dict) -> torch.Tensor:
        rows = plan.shape.decode_rows
        lengths, table = plan.seq_lens[:rows], plan.block_table[:rows]
        return self._decode(query[:, None], *kv, cache_seqlens=lengths, block_table=table, **options)[:, 0]

    def _attend_prefill(self, query: torch.Tensor, kv: KV, plan: _FlashPlan, options: dict) -> torch.Tensor:
        return self._prefill(
            query,
            *kv,
            cu_seqlens_q=plan.prefill_cu_q,
            cu_seqlens_k=plan.prefill_cu_k,
            max_seqlen_q=plan.shape.max_chunk,
            max_seqlen_k=plan.shape.context,
            block_table=plan.block_table[plan.shape.decode_rows :],
            **options,
        )


def choose(
    device: torch.device, dtype: torch.dtype, heads: tuple[int, int, int], block_size: int, window: int | None = None
) -> PagedAttention:
    """The fastest backend that works for these sizes, found by running it; ``why`` says what decided: flash-attn, else
    PyTorch's own paged kernel, else SDPA.

    ``heads``: query heads, KV heads, head size. ``window``: the model's sliding window in tokens, if it has one.

    Synchronises with the device, so call it before anything is captured.
    """
    if device.type != "cuda":
        return SdpaPaged(f"flash-attn needs CUDA, the model is on {device.type}")
    failures: list[str] = []
    for name, make in (("flash-attn", FlashPaged), ("varlen_attn", VarlenPaged)):
        try:
            error = _probe(make(), device, dtype, heads, block_size, window)
        except (ImportError, RuntimeError, TypeError, ValueError, NotImplementedError) as failure:
            failures.append(f"{name} does not work here: {(str(failure) or repr(failure)).splitlines()[0]}")
            continue
        if error < CLOSE:
            return make("; ".join([*failures, f"{name} works here"]))
        failures.append(f"{name}'s result is off by {error:.3g} here")
    return SdpaPaged("; ".join(failures))


def _probe(
    backend: PagedAttention,
    device: torch.device,
    dtype: torch.dtype,
    heads: tuple[int, int, int],
    block_size: int,
    window: int | None,
) -> float:
    """Largest difference from SdpaPaged on one decode row and one prefill row."""
    query_heads, kv_heads, size = heads
    inputs = _probe_batch(device, block_size)
    generator = torch.Generator(device).manual_seed(0)
    query = torch.randn(4, query_heads, size, generator=generator, device=device).to(dtype)
    k, v = torch.randn(2, 3, block_size, kv_heads, size, generator=generator, device=device).to(dtype)
    results = [
        each.attend(query, (k, v), each.plan(inputs, block_size), size**-0.5, window) for each in (backend, SdpaPaged())
    ]
    return (results[0].float() - results[1].float()).abs().max().item()


def _probe_batch(device: torch.device, block_size: int) -> BatchInputs:
    def ints(values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    return BatchInputs(
        token_ids=ints([0] * 4),
        positions=ints([4, 2, 3, 4]),
        slot_mapping=ints([4, block_size + 2, block_size + 3, block_size + 4]),
        cu_seqlens_q=ints([0, 1, 4]),
        seq_lens=ints([5, 5]),
        block_table=ints([[0], [1]]),
        output_index=ints([0, 3]),
        shape=BatchShape(rows=2, tokens=4, decode_rows=1, max_chunk=3, context=5),
    )
