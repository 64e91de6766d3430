"""A Llama-shaped decoder on the same weights with fewer, larger kernels: merged projections, and compiled in between.

Between two attention calls everything is one function (``labkit/model/between_attention.py``): output projection,
residual, norm, MLP, residual, norm, QKV projection, rotary embedding, and the write of K and V into the cache. With
``compiled`` that function goes through ``torch.compile`` once per token count, so that a layer is four matrix products,
a few fused element-wise kernels and one attention call. Q, K and V are one matrix, and so are gate and up; the
transformers modules become views of them, so the weights exist once and the model outside the engine is unchanged.

Legend: T tokens, R rows, E hidden size, H query heads, K KV heads, D head size, F intermediate size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch

from labkit.errors import InvalidArgument
from labkit.model import between_attention as parts
from labkit.model.api import BatchInputs, KVSpec
from labkit.model.attention import clamp_indices
from labkit.model.decoder import HFModel
from labkit.model.kv_cache import token_view

_INDUCTOR = {"combo_kernels": True, "emulate_precision_casts": True}


@dataclass(frozen=True)
class _Layer:
    """The weights of one layer."""

    input_norm: torch.Tensor  # [E]
    qkv: torch.Tensor  # [(H + 2K) * D, E]
    out: torch.Tensor  # [E, H * D]
    post_norm: torch.Tensor  # [E]
    gate_up: torch.Tensor  # [2F, E]
    down: torch.Tensor  # [E, F]


class FusedModel:
    """The model of ``base`` in fused form.

    Args:
        base: a Llama or Mistral shape: no biases, no norms of queries and keys, full attention, SiLU.
        compiled: run the functions between attention calls through torch.compile for decode batches.
        backend: torch.compile's backend.

    Raises:
        InvalidArgument: the model has another shape.
    """

    def __init__(self, base: HFModel, *, compiled: bool = False, backend: str = "inductor") -> None:
        _check(base.module)
        self.base, self.is_compiled, self.backend = base, compiled, backend
        self.name, self.vocab_size, self.max_model_len = base.name, base.vocab_size, base.max_model_len
        self.eos_token_ids, self.module, self.attention = base.eos_token_ids, base.module, base.attention
        config = base.module.config
        self._heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._eps = config.rms_norm_eps
        self._layers = [_merge(layer) for layer in base.module.model.layers]
        self._zeros = torch.zeros_like(self._layers[0].input_norm)
        self._functions: dict[tuple[str, int, torch.Size], Callable[..., Any]] = {}

    @property
    def preferred_block_size(self) -> int:
        return self.base.preferred_block_size

    @property
    def logit_bytes(self) -> int:
        """Of one logit: they keep the weights' type until they are sampled."""
        return self.module.dtype.itemsize

    def for_block_size(self, block_size: int) -> FusedModel:
        model = FusedModel(self.base.for_block_size(block_size), compiled=self.is_compiled, backend=self.backend)
        model._functions = self._functions  # they know no weights and no cache, so every engine may use them
        return model

    def compiled(self) -> FusedModel:
        return self if self.is_compiled else self.base.compiled()

    def kv_specs(self) -> Sequence[KVSpec]:
        return self.base.kv_specs()

    def context_bucket(self, context: int, limit: int) -> int:
        return self.base.context_bucket(context, limit)

    def encode(self, text: str) -> list[int]:
        return self.base.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.base.decode(tokens)

    def to(self, device: torch.device) -> FusedModel:
        return FusedModel(self.base.to(device), compiled=self.is_compiled, backend=self.backend)

    @torch.inference_mode()
    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        inputs = clamp_indices(inputs, kv[0])
        plan = self.attention.plan(inputs, kv[0].shape[1])
        model, layers, rope = self.module.model, self._layers, self.module.model.rotary_emb
        functions = (parts.begin, parts.enter, parts.between, parts.leave)
        begin, enter, between, leave = (self._function(f, inputs, kv[0].shape) for f in functions)
        limits = (self.vocab_size, self.max_model_len, float(rope.attention_scaling))
        x, cos, sin = begin(inputs.token_ids, inputs.positions, model.embed_tokens.weight, rope.inv_freq, limits)
        place = (cos, sin, inputs.slot_mapping)
        shape = (self._heads, self._kv_heads, self._size, self._eps)
        flat = [token_view(cache) for cache in kv]  # [places in the pool, K, D]
        query = enter(x, layers[0].input_norm, layers[0].qkv, flat[0], flat[1], *place, shape)
        for number, layer in enumerate(layers):
            caches = kv[2 * number], kv[2 * number + 1]
            attended = self.attention.attend(query, caches, plan, self._size**-0.5, None).flatten(1)  # [T, H * D]
            weights = (layer.out, layer.post_norm, layer.gate_up, layer.down, self._zeros)
            if number + 1 < len(layers):
                after = layers[number + 1]
                k, v = flat[2 * number + 2], flat[2 * number + 3]
                query, x = between(attended, x, *weights, after.input_norm, after.qkv, k, v, *place, shape)
        rows = inputs.output_index.long()
        logits: torch.Tensor = leave(attended, x, *weights, model.norm.weight, self.module.lm_head.weight, rows, shape)
        return logits

    def _function(self, plain: Any, inputs: BatchInputs, cache: torch.Size) -> Callable[..., Any]:
        """``plain``, compiled for this token count if the batch is one that a graph would hold."""
        if not self.is_compiled or not inputs.shape.decode_only:
            return plain
        key = (plain.__name__, inputs.shape.tokens, cache)
        if key not in self._functions:
            # a code object of its own per size: torch.compile allows one code object eight compilations
            code = plain.__code__.replace(co_name=f"{plain.__name__}_{key[1]}")
            copy = FunctionType(code, plain.__globals__, code.co_name)
            self._functions[key] = torch.compile(
                copy, dynamic=False, fullgraph=True, backend=self.backend, options=self._options()
            )
        return self._functions[key]

    def _options(self) -> dict[str, Any] | None:
        """For inductor on a GPU: independent small kernels in one launch, and rounding where eager kernels round."""
        on_gpu = self.backend == "inductor" and self._layers[0].qkv.is_cuda
        return dict(_INDUCTOR) if on_gpu else None


def _merge(layer: Any) -> _Layer:
    """One layer's weights, merged where they read the same input; the layer's modules become views."""
    attention, mlp = layer.self_attn, layer.mlp
    return _Layer(
        layer.input_layernorm.weight,
        _stack(attention.q_proj, attention.k_proj, attention.v_proj),
        attention.o_proj.weight,
        layer.post_attention_layernorm.weight,
        _stack(mlp.gate_proj, mlp.up_proj),
        mlp.down_proj.weight,
    )


@torch.no_grad()
def _stack(*linears: Any) -> torch.Tensor:
    """Their weights as one matrix, of which they become row ranges. A second call finds them merged already."""
    first = linears[0].weight
    whole = first.untyped_storage().nbytes() // first.element_size()
    if whole == sum(linear.weight.numel() for linear in linears):
        return first.new_empty(0).set_(first.untyped_storage(), 0, (whole // first.shape[1], first.shape[1]))
    merged = torch.cat([linear.weight for linear in linears])
    at = 0
    for linear in linears:
        rows = linear.weight.shape[0]
        linear.weight.data = merged[at : at + rows]
        at += rows
    return merged


def _check(module: Any) -> None:
    config, kind = module.config, type(module).__name__
    layer = module.model.layers[0]
    attention = layer.self_attn
    plain = (
        kind in ("LlamaForCausalLM", "MistralForCausalLM")
        and attention.q_proj.bias is None
        and layer.mlp.gate_proj.bias is None
        and config.hidden_act == "silu"
        and getattr(config, "sliding_window", None) is None
    )
    if not plain:
        raise InvalidArgument("model", kind, "a Llama or Mistral shape without biases and without sliding window")
