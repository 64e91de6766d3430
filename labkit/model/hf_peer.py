"""transformers' own continuous batching, to stand beside: ``generate_batch`` on the same weights."""

from __future__ import annotations

import time
from typing import Any

from labkit.errors import DeviceError, MissingExtra

try:
    from transformers import ContinuousBatchingConfig, GenerationConfig
except ImportError as missing:
    raise MissingExtra("transformers", "hf") from missing


def peer_seconds(module: Any, prompts: list[list[int]], new_tokens: int, *, use_async: bool) -> float:
    """Time of one ``generate_batch`` call, greedy and without end of sequence, set-up included.

    Raises:
        DeviceError: it did not generate every token.
    """
    generation = GenerationConfig(max_new_tokens=new_tokens, do_sample=False, eos_token_id=-1, pad_token_id=0)
    config = ContinuousBatchingConfig(use_async_batching=use_async)
    start = time.perf_counter()
    outputs = module.generate_batch(
        inputs=prompts, generation_config=generation, continuous_batching_config=config, progress_bar=False
    )
    seconds = time.perf_counter() - start
    lengths = {len(output.generated_tokens) for output in outputs.values()}
    if lengths != {new_tokens} or len(outputs) != len(prompts):
        raise DeviceError(f"generate_batch gave {sorted(lengths)} tokens for {len(outputs)} of {len(prompts)} prompts")
    return seconds


def peer_step_ns(module: Any, prompts: list[list[int]], steps: int, *, use_async: bool, warm_up: bool = True) -> float:
    """ns per decode step: from two runs that differ in the number of tokens alone, so that set-up and prompts cancel.

    The model's attention becomes flash-attn 2, the fastest that ``generate_batch`` knows. ``warm_up``: run once before,
    which the first call on a model needs. A run sets up a cache and captures graphs, which takes many seconds.
    """
    module.set_attn_implementation("flash_attention_2")
    short = 8
    if warm_up:
        peer_seconds(module, prompts, short, use_async=use_async)
    times = [peer_seconds(module, prompts, n, use_async=use_async) for n in (short, short + steps)]
    return (times[1] - times[0]) / steps * 1e9
