"""What the engine asks of a model. A model is stateless: the KV cache and every index come in from outside.

Legend: T tokens in the batch, R rows (requests), M block-table columns, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch


@dataclass(frozen=True, slots=True)
class BatchShape:
    """The host scalars of a batch: everything that launches bake in. Decode rows come first, prefill chunks after.

    ``context`` bounds the longest context of a row (tokens already in the cache plus this step's); inside a graph it is
    the bucket the graph was captured for, never the batch's own value.
    """

    rows: int  # R
    tokens: int  # T
    decode_rows: int  # the first rows, one token each
    max_chunk: int  # most tokens of one row; 1 in a decode-only batch
    context: int

    @property
    def decode_only(self) -> bool:
        return self.decode_rows == self.rows


@dataclass(frozen=True, slots=True)
class BatchInputs:
    """The device tensors that one forward pass reads: views of one slot's packed input buffer."""

    token_ids: torch.Tensor  # [T] int32, after carry-over
    positions: torch.Tensor  # [T] int32
    slot_mapping: torch.Tensor  # [T] int32, place in the KV pool that a token's K and V are written to
    cu_seqlens_q: torch.Tensor  # [R+1] int32, first token of each row
    seq_lens: torch.Tensor  # [R] int32, context length of each row, this step's tokens included
    block_table: torch.Tensor  # [R, M] int32
    output_index: torch.Tensor  # [R] int32, the token of each row whose logits are sampled
    shape: BatchShape


@dataclass(frozen=True, slots=True)
class KVSpec:
    """One tensor of the KV cache: ``[num_blocks + 1, block_size, *per_token]`` of ``dtype``, the last one trash."""

    name: str
    per_token: tuple[int, ...]
    dtype: torch.dtype


@runtime_checkable
class Model(Protocol):
    """A decoder-only language model over a paged KV cache."""

    name: str
    vocab_size: int
    max_model_len: int
    eos_token_ids: tuple[int, ...]

    @property
    def preferred_block_size(self) -> int:
        """Tokens per KV block at which this model's attention is fastest here."""

    def for_block_size(self, block_size: int) -> Model:
        """The same model and weights with the fastest attention that works for this KV block size.

        May synchronise with the device, so the engine asks before anything is in flight.
        """

    def compiled(self) -> Model:
        """The same model and weights with fewer, larger kernels; the model itself where there is nothing to compile.

        Logits may differ in rounding. Every call gives the same object, so that nothing is compiled twice.

        Raises:
            InvalidArgument: the model could be compiled, and its shape is not one that labkit can.
        """

    def kv_specs(self) -> Sequence[KVSpec]:
        """The tensors that the engine allocates for this model, in the order ``forward`` gets them."""

    def context_bucket(self, context: int, limit: int) -> int:
        """The bound on context length to bake into a graph: at least ``context``, at most ``limit``. A model whose
        launches bake in no context length returns ``limit`` always, so that one graph serves every length."""

    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        """Logits ``[R, V]`` of the tokens at ``output_index``; writes K and V at ``slot_mapping``.

        The logits are float32, or of the weights' type (then ``logit_bytes`` says so).

        Must not synchronise with the device, and must tolerate any in-range index values: in a wrong combination of
        switches the indices may belong to another step.
        """

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt as the user typed it (with the chat template applied, where the model has one)."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens."""

    def to(self, device: torch.device) -> Model:
        """The same model with its weights on ``device``."""
