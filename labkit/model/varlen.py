"""Paged attention on PyTorch's own variable-length kernel, ``torch.nn.attention.varlen`` (paged from 2.12 on).

One call takes decode rows and prefill chunks alike. Which kernel is behind it, and which block sizes it takes, depends
on PyTorch and the GPU, so ``labkit/model/flash.py`` tries it before it is chosen.

Legend: T tokens, R rows, H query heads, G query heads per KV head, D head size, M block-table columns.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from labkit.model.api import BatchInputs
from labkit.model.attention import KV


class VarlenPaged:
    """``varlen_attn`` with a block table. Context length is a device tensor, so one graph serves every length.

    Raises:
        ImportError: PyTorch has no paged ``varlen_attn``.
    """

    name = "varlen"

    def __init__(self, why: str = "PyTorch's paged varlen_attn works here") -> None:
        try:
            from torch.nn.attention.varlen import varlen_attn
        except ImportError:
            raise ImportError(f"PyTorch {torch.__version__} has no varlen_attn") from None
        if "block_table" not in inspect.signature(varlen_attn).parameters:
            raise ImportError(f"varlen_attn of PyTorch {torch.__version__} takes no block table")
        self.why = why
        self._attend: Any = varlen_attn

    def context_bucket(self, context: int, limit: int) -> int:
        return limit

    def plan(self, inputs: BatchInputs, block_size: int) -> BatchInputs:
        return inputs

    def attend(self, query: torch.Tensor, kv: KV, plan: BatchInputs, scale: float, window: int | None) -> torch.Tensor:
        """Each row's last query is at its last key, so (-1, 0) is causal and (w - 1, 0) a window of w tokens."""
        options: dict[str, Any] = {
            "scale": scale,
            "window_size": (-1, 0) if window is None else (window - 1, 0),
            "enable_gqa": query.shape[1] != kv[0].shape[2],
            "seqused_k": plan.seq_lens,  # [R]
            "block_table": plan.block_table,  # [R, M]
        }
        shape = plan.shape
        lengths = plan.cu_seqlens_q, None  # of queries [R + 1]; of keys nothing: seqused_k has them
        out: torch.Tensor = self._attend(query, *kv, *lengths, shape.max_chunk, shape.context, **options)
        return out
