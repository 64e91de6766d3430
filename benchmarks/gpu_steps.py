"""Steady ms per decode step on a real GPU, by rung and by how the model runs, beside the byte floor.

    python benchmarks/gpu_steps.py [--model llama-8b] [--batch 32] [--contexts 500,4096] [--variants ...]

A variant is MODEL:RUNG with MODEL one of hf (transformers' modules), fused (merged projections) and compiled (fused,
through torch.compile). The floor is the bytes that a step must read (the
weights once, and K and V of the whole context) over the bandwidth of a large device-to-device copy in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from labkit.entry import Engine
from labkit.experiments import synthetic_prompts
from labkit.model import load_model
from labkit.model.api import Model
from labkit.model.fused import FusedModel
from labkit.sizes import Sizes

DEFAULT = "hf:0,hf:5,hf:6,fused:5,fused:6,compiled:6"


def bandwidth() -> float:
    """Device memory bandwidth in GB/s, bytes read plus bytes written."""
    source = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(12):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return 2 * source.numel() / statistics.median(times) / 1e6


def step_bytes(model: Model, batch: int, context: int) -> int:
    """Bytes that one decode step must read."""
    module = model.module  # type: ignore[attr-defined]
    embedding = module.model.embed_tokens.weight
    weights = sum(p.numel() * p.element_size() for p in module.parameters())
    if module.lm_head.weight is not embedding:
        weights -= embedding.numel() * embedding.element_size()  # a step reads a few rows of it
    per_token = sum(torch.Size(s.per_token).numel() * s.dtype.itemsize for s in model.kv_specs())
    return weights + batch * context * per_token


def steady(model: Model, rung: int, batch: int, context: int, steps: int) -> tuple[float, float, str]:
    """Median and 95th percentile of a step's wall time in ms, and the attention backend."""
    size = model.preferred_block_size
    longest = context + steps + 80
    sizes = Sizes(
        max_rows=batch,
        token_budget=max(batch, 8192),
        block_size=size,
        max_model_len=longest,
        num_blocks=batch * -(-longest // size),
        graph_rows=(batch,),
    )
    with Engine(model, switches=rung, device="cuda", sizes=sizes, trace=False) as engine:
        for prompt in synthetic_prompts(model, batch, context):
            engine.submit(prompt, max_new_tokens=steps + 60)
        core = engine.core
        while core.scheduler.waiting or any(r.computed < context for r in core.scheduler.running):
            core.step()
        for _ in range(20):
            core.step()
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            core.step()
            times.append((time.perf_counter() - start) * 1e3)
        backend = core.model.attention.name  # type: ignore[attr-defined]
    return statistics.median(times), statistics.quantiles(times, n=20)[-1], backend


def variant(base: Model, how: str) -> Model:
    """The model in the form that a variant names."""
    if how == "hf":
        return base
    return FusedModel(base, compiled=how == "compiled")  # type: ignore[arg-type]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama-8b")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--contexts", default="500,4096")
    parser.add_argument("--variants", default=DEFAULT)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    base, gbps = load_model(arguments.model, device="cuda"), bandwidth()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments.model}, batch {arguments.batch}")
    print(f"copy bandwidth {gbps:.0f} GB/s")
    print(f"{'variant':<16}{'context':>8}{'median ms':>11}{'p95 ms':>9}{'floor ms':>10}{'ratio':>7}  attention")
    for name in arguments.variants.split(","):
        how, rung = name.split(":")
        model = variant(base, how)
        for context in map(int, arguments.contexts.split(",")):
            floor = step_bytes(model, arguments.batch, context) / gbps / 1e6
            begun = time.perf_counter()
            median, p95, backend = steady(model, int(rung), arguments.batch, context, arguments.steps)
            took = time.perf_counter() - begun
            print(
                f"{name:<16}{context:>8}{median:>11.2f}{p95:>9.2f}{floor:>10.2f}{median / floor:>7.2f}  {backend}"
                f"  ({took:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
