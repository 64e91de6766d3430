"""Tokens of the right rungs on a real GPU against the CPU reference, as a table.

    python benchmarks/gpu_tokens.py [--device cuda]

The reference is rung 0 on the virtual GPU (the model on the CPU) in the same dtype. Ragged prompts, chunked prefill,
more requests than rows.
"""

from __future__ import annotations

import argparse
import sys

import torch

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes
from labkit.experiments import synthetic_prompts
from labkit.model import load_model
from labkit.model.api import Model
from labkit.switches import RUNG_NAMES

RIGHT_RUNGS = (0, 2, 5, 6)


def load(name: str, device: str) -> Model:
    """A model in float32 on a device, the same weights everywhere."""
    if name == "toy":
        return load_model("toy").to(torch.device(device))
    return load_model(name, dtype=torch.float32, device=device)


def generate(model: Model, rung: int, device: str) -> tuple[list[list[int]], dict[str, int]]:
    """Tokens of a fixed workload on one rung."""
    sizes = default_sizes(model, max_rows=8, token_budget=64, block_size=16, max_model_len=192)
    prompts = [
        p[:n]
        for p, n in zip(synthetic_prompts(model, 12, 120), (1, 3, 17, 120, 40, 64, 5, 90, 2, 33, 16, 71), strict=True)
    ]
    params = [SamplingParams(max_new_tokens=20 + 4 * i) for i in range(12)]
    with Engine(model, switches=rung, device=device, sizes=sizes, trace=False) as engine:
        run = engine.generate(prompts, params)
    return run.tokens, run.stats


def main() -> int:
    """Print the table; status 1 if a token differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "virtual"])
    device = parser.parse_args().device
    where = "cuda" if device == "cuda" else "cpu"
    print(f"{'model':<12}{'rung':<20}{'tokens':>8}{'equal':>8}{'steps':>7}{'overruns':>10}  verdict")
    wrong = 0
    for name in ("toy", "tiny-llama"):
        reference, _ = generate(load(name, "cpu"), 0, "virtual")
        model = load(name, where)
        for rung in RIGHT_RUNGS:
            tokens, stats = generate(model, rung, device)
            pairs = [
                (a, b) for mine, ref in zip(tokens, reference, strict=True) for a, b in zip(mine, ref, strict=True)
            ]
            equal = sum(a == b for a, b in pairs)
            wrong += equal != len(pairs)
            verdict = "right" if equal == len(pairs) else "WRONG"
            label = f"{rung} {RUNG_NAMES[rung]}"
            print(
                f"{name:<12}{label:<20}{len(pairs):>8}{equal:>8}{stats['steps']:>7}{stats['overruns']:>10}  {verdict}"
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
