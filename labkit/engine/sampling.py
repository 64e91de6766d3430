"""From logits to the next token, on the device and without a host wait.

Random rows draw by the Gumbel-max trick from a counter-based hash of (seed, position, token): a request's draws
depend on its own seed and position alone, so its tokens are the same whatever else is in the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

import torch

from labkit.errors import InvalidArgument

_INT32 = 2**31 - 1  # the sampler's integers are int32 on the device


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one request is sampled and when it ends.

    max_new_tokens  exactly this many tokens unless an end-of-sequence comes first
    temperature     0 is greedy
    top_k           0 is off; keep the k most likely
    top_p           1 is off; keep the smallest set of most likely tokens whose probability reaches p
    seed            of this request's random draws, 0 to 2**31 - 1
    logprobs        return the log-probability of every generated token
    eos_token_ids   None takes the model's; () never ends early
    """

    max_new_tokens: int = 64
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    logprobs: bool = False
    eos_token_ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_integer("max_new_tokens", self.max_new_tokens, 1)
        check_integer("top_k", self.top_k, 0, _INT32)
        check_integer("seed", self.seed, 0, _INT32)
        if not _is_number(self.temperature) or not 0 <= self.temperature <= 1e38:
            raise InvalidArgument("temperature", self.temperature, "a number from 0 to 1e38; 0 is greedy")
        if not _is_number(self.top_p) or not 0 < self.top_p <= 1:
            raise InvalidArgument("top_p", self.top_p, "a number above 0 and at most 1; 1 is off")
        if not isinstance(self.logprobs, bool):
            raise InvalidArgument("logprobs", self.logprobs, "True or False")
        if self.eos_token_ids is not None and not isinstance(self.eos_token_ids, (tuple, list, set, frozenset)):
            raise InvalidArgument("eos_token_ids", self.eos_token_ids, "a tuple of token ids, or None for the model's")


def check_integer(name: str, value: object, low: int, high: int | None = None) -> None:
    """Raise InvalidArgument unless ``value`` is an integer (NumPy's count) from ``low`` to ``high``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):  # type: ignore[operator]
        raise InvalidArgument(name, value, f"an integer of at least {low}" + (f" and at most {high}" if high else ""))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class SamplingInputs:
    """The sampler's view of a slot's input buffer, all [R]."""

    temperature: torch.Tensor  # float32
    top_p: torch.Tensor  # float32
    top_k: torch.Tensor  # int32
    seed: torch.Tensor  # int32
    position: torch.Tensor  # int32, of the token being sampled


def sample(logits: torch.Tensor, inputs: SamplingInputs | None) -> torch.Tensor:
    """Next tokens ``[R]`` int64 from logits ``[R, V]`` of any float type. ``inputs`` None: every row is greedy."""
    greedy = logits.argmax(-1)
    if inputs is None:
        return greedy
    logits = logits.float()
    hot = inputs.temperature > 0
    below_best = logits - logits.amax(-1, keepdim=True)  # so that a tiny temperature overflows to -inf, not to inf
    scaled = below_best / torch.where(hot, inputs.temperature, 1.0)[:, None]
    noise = _gumbel(inputs, logits.shape[-1])
    drawn = (_keep_likely(scaled, inputs) + noise).argmax(-1)
    return torch.where(hot, drawn, greedy)


def logprobs_of(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Log-probabilities ``[R]`` float32 of the chosen tokens under the unmodified distribution."""
    return logits.float().log_softmax(-1).gather(1, tokens[:, None])[:, 0]


def _keep_likely(scaled: torch.Tensor, inputs: SamplingInputs) -> torch.Tensor:
    """Logits with everything outside top-k and top-p at -inf, [R, V]."""
    ordered, order = scaled.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(scaled.shape[-1], device=scaled.device)
    k = torch.where(inputs.top_k > 0, inputs.top_k, scaled.shape[-1])[:, None]
    ordered = ordered.masked_fill(rank >= k, -torch.inf)
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    cut = (before >= inputs.top_p[:, None]) & (rank > 0)  # the most likely token stays even where top_p rounds to 0
    ordered = ordered.masked_fill(cut, -torch.inf)
    return torch.empty_like(scaled).scatter_(1, order, ordered)


def _gumbel(inputs: SamplingInputs, vocab_size: int) -> torch.Tensor:
    """Standard Gumbel noise [R, V], a hash of (seed, position, token)."""
    token = torch.arange(vocab_size, device=inputs.seed.device)
    x = inputs.seed.long()[:, None] * 0x9E3779B1 + inputs.position.long()[:, None] * 0x85EBCA77 + 1
    x = (_scramble(x) + token * 0xC2B2AE3D) & 0xFFFFFFFF
    uniform = ((_scramble(x) >> 8).float() + 0.5) * 2.0**-24
    return -torch.log(-torch.log(uniform))


def _scramble(x: torch.Tensor) -> torch.Tensor:
    """A 32-bit integer hash in int64 arithmetic."""
    x = x & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)
