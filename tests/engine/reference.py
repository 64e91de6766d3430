"""The toy model once more, in plain integers: no batch, no cache, no torch. What the engine must agree with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

_A, _B, _C, _D = 0x9E3779B97F4A7C15, 0x2545F4914F6CDD1D, 0x5851F42D4C957F2D, 0x2127599BF4325C37
_WORD = 2**64 - 1


def _mix(x: int) -> int:
    x = ((x ^ (x >> 32)) * _D) & _WORD
    return x ^ (x >> 29)


def _key(token: int, position: int) -> int:
    return _mix((token * _A + (position + 1) * _B) & _WORD)


def logits(tokens: Sequence[int], vocab_size: int = 256) -> np.ndarray:
    """Logits [V] float64 of the token that follows."""
    keys = [_key(token, position) for position, token in enumerate(tokens)]
    state = (sum(keys) + _mix(keys[(len(tokens) - 1) * 7 // 11]) * _C) & _WORD
    values = [_mix((state + token * _A) & _WORD) for token in range(vocab_size)]
    return np.array([(value >> 24 & 0xFFFF00) | token for token, value in enumerate(values)]) * (8 / 2**24)


def logprobs(tokens: Sequence[int], vocab_size: int = 256) -> np.ndarray:
    """Log-softmax of ``logits``, [V] float64."""
    values = logits(tokens, vocab_size)
    return values - values.max() - np.log(np.exp(values - values.max()).sum())


def greedy(prompt: Sequence[int], limit: int, eos: Collection[int] = (), vocab_size: int = 256) -> list[int]:
    """What one request must generate: ``limit`` tokens, or fewer if the last one is in ``eos``."""
    tokens = list(prompt)
    while len(tokens) < len(prompt) + limit:
        tokens.append(int(logits(tokens, vocab_size).argmax()))
        if tokens[-1] in eos:
            break
    return tokens[len(prompt) :]
