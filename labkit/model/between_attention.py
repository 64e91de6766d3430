"""What a Llama-shaped decoder computes before, between and after its attention calls, as functions for torch.compile.

They know no model: weights, caches and sizes are arguments, so one compiled function serves every layer and engine.

Legend: T tokens, R rows, E hidden size, H query heads, K KV heads, D head size, F intermediate size, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

_ONE_KERNEL = range(32, 65)  # rows: with fewer or more cuBLAS takes one kernel itself, or is faster with two

Shape = tuple[int, int, int, float]  # query heads, KV heads, head size, epsilon


def begin(
    token_ids: torch.Tensor,  # [T]
    positions: torch.Tensor,  # [T]
    embeddings: torch.Tensor,  # [V, E]
    frequencies: torch.Tensor,  # [D / 2] float32
    limits: tuple[int, int, float],  # vocabulary, positions, what cos and sin are scaled by
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Embeddings ``[T, E]`` and the rotary embedding's cos and sin ``[T, D]``."""
    vocab_size, max_positions, scaling = limits
    x = F.embedding(token_ids.clamp(0, vocab_size - 1), embeddings)
    half = positions.clamp(0, max_positions - 1)[:, None].float() * frequencies
    angles = torch.cat((half, half), dim=-1)
    return x, (angles.cos() * scaling).to(x.dtype), (angles.sin() * scaling).to(x.dtype)


def enter(
    x: torch.Tensor,
    norm: torch.Tensor,
    qkv: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    slots: torch.Tensor,
    shape: Shape,
) -> torch.Tensor:
    """Norm, QKV projection, rotary embedding, K and V into the cache. Queries ``[T, H, D]``."""
    heads, kv_heads, size, eps = shape
    projected = F.linear(rms_norm(x, norm, eps), qkv).view(-1, heads + 2 * kv_heads, size)
    query, key, value = projected.split((heads, kv_heads, kv_heads), dim=1)
    k_cache[slots] = _rotate(key, cos, sin)  # index_put_ of an argument: torch.compile keeps it in place
    v_cache[slots] = value
    return _rotate(query, cos, sin)


def between(
    attended: torch.Tensor,  # [T, H * D]
    x: torch.Tensor,  # [T, E]
    out: torch.Tensor,
    post_norm: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    zeros: torch.Tensor,  # [E]
    next_norm: torch.Tensor,
    next_qkv: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    slots: torch.Tensor,
    shape: Shape,
) -> tuple[torch.Tensor, torch.Tensor]:
    """From one layer's attention to the next one's queries ``[T, H, D]`` and residual ``[T, E]``."""
    x = _finish(attended, x, out, post_norm, gate_up, down, zeros, shape[3])
    return enter(x, next_norm, next_qkv, k_cache, v_cache, cos, sin, slots, shape), x


def leave(
    attended: torch.Tensor,
    x: torch.Tensor,
    out: torch.Tensor,
    post_norm: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    zeros: torch.Tensor,
    norm: torch.Tensor,
    lm_head: torch.Tensor,  # [V, E]
    rows: torch.Tensor,  # [R]
    shape: Shape,
) -> torch.Tensor:
    """From the last layer's attention to logits ``[R, V]``, for the rows that need them."""
    x = _finish(attended[rows], x[rows], out, post_norm, gate_up, down, zeros, shape[3])
    return F.linear(rms_norm(x, norm, shape[3]), lm_head)


def _finish(
    attended: torch.Tensor,
    x: torch.Tensor,
    out: torch.Tensor,
    post_norm: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    zeros: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Output projection, MLP and their residuals, ``[T, E]``."""
    x = _add(x, product(attended, out, zeros))
    gate, up = F.linear(rms_norm(x, post_norm, eps), gate_up).chunk(2, dim=-1)
    return _add(x, product(F.silu(gate) * up, down, zeros))


def product(x: torch.Tensor, weight: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    """``x @ weight.T`` by one kernel for batches in which cuBLAS would split it over K and add up in a second one.

    With a bias, here zeros, PyTorch asks cuBLASLt, which takes one kernel (``benchmarks/products_on_gpu.py``).
    torch.compile would take the bias out again, so for it the product is an operator that it cannot look into.
    """
    if not x.is_cuda or x.shape[0] not in _ONE_KERNEL:
        return F.linear(x, weight)
    biased = torch.ops.labkit.product if torch.compiler.is_compiling() else _biased
    return biased(x, weight, zeros)


def _biased(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.addmm(bias, x, weight.t())


def _add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The residual, rounded as in ``x + y``. Written so, torch.compile puts it into the norm's kernel that follows; a
    plain sum becomes the product's third operand, which is copied to where the result goes first (63 copies a step)."""
    return (x.float() + y.float()).to(x.dtype)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """``x`` ``[T, E]`` over the root of its mean square, computed in float32 and rounded before the weight ``[E]``."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of ``[T, heads, D]`` by angles ``[T, D]``, transformers' half-split form."""
    first, second = x.chunk(2, dim=-1)
    return x * cos[:, None] + torch.cat((-second, first), dim=-1) * sin[:, None]


_LIBRARY = torch.library.Library("labkit", "DEF")
_LIBRARY.define("product(Tensor x, Tensor weight, Tensor bias) -> Tensor")
_LIBRARY.impl("product", _biased, "CUDA")


@torch.library.register_fake("labkit::product")
def _product_like(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[0])
