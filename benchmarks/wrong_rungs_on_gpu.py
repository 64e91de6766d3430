"""Wrong rungs on a real GPU: how often their tokens are wrong, and how often right by luck; never an error.

    python benchmarks/wrong_rungs_on_gpu.py [--runs 10] [--models toy,tiny-llama,1B] [--device cuda]

Rungs 1, 3 and 4 each run the same requests so many times, in an engine of their own each time. A run is wrong if a
token differs from rung 0's on the same device. After them rungs 0, 5 and 6 run in the same process and must be right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
from gpu_common import header, shaped, table, took, where

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.experiments import synthetic_prompts
from labkit.model import load_model
from labkit.model.api import Model
from labkit.sizes import Sizes
from labkit.switches import RUNG_NAMES

WRONG, RIGHT = (1, 3, 4), (0, 5, 6)
Tokens = list[list[int]]


def load(name: str) -> Model:
    """The toy, the tiny Llama in float32, or a shape in bfloat16."""
    if name == "toy":
        return load_model("toy").to(where())
    return load_model(name, dtype=torch.float32, device=where()) if name == "tiny-llama" else shaped(name)


def generate(model: Model, rung: int, device: str) -> Tokens:
    """Eight requests. In float32 ragged prompts in chunks of at most 64 tokens; in bfloat16, where a token may depend
    on the number of rows, eight rows in lockstep, so that right rungs agree to the bit."""
    lockstep = model.kv_specs()[0].dtype is torch.bfloat16
    size = model.preferred_block_size
    blocks = 8 * -(-128 // size)
    budget = 512 if lockstep else 64
    sizes = Sizes(
        max_rows=8, token_budget=budget, block_size=size, num_blocks=blocks, max_model_len=128, graph_rows=(8,)
    )
    prompts = [prompt[: 48 if lockstep else 5 + 6 * i] for i, prompt in enumerate(synthetic_prompts(model, 8, 48))]
    params = [SamplingParams(max_new_tokens=32 if lockstep else 24 + i, eos_token_ids=()) for i in range(8)]
    with Engine(model, switches=rung, device=device, sizes=sizes, unsafe=True, trace=False) as engine:
        return engine.generate(prompts, params).tokens


def share_wrong(tokens: Tokens, reference: Tokens) -> float:
    """Share of the tokens that differ from the reference."""
    pairs = [(a, b) for mine, ref in zip(tokens, reference, strict=True) for a, b in zip(mine, ref, strict=True)]
    return sum(a != b for a, b in pairs) / len(pairs)


def outcomes(model: Model, rung: int, device: str, runs: int, reference: Tokens) -> tuple[int, int, int, list[float]]:
    """Runs wrong, right by luck, ended by an error; and the shares of wrong tokens."""
    shares: list[float] = []
    errors = 0
    for _ in range(runs):
        try:
            shares.append(share_wrong(generate(model, rung, device), reference))
        except Exception as error:
            errors += 1
            print(f"rung {rung}: {type(error).__name__}: {error}", flush=True)
    return sum(share > 0 for share in shares), sum(share == 0 for share in shares), errors, shares or [0.0]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; status 1 if there was an error, or a right rung was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--models", default="toy,tiny-llama,1B")
    parser.add_argument("--device", default="cuda", choices=["cuda", "virtual"])
    arguments = parser.parse_args(argv)
    header()
    rows: list[tuple[object, ...]] = [
        ("model", "rung", "runs", "wrong", "right by luck", "errors", "wrong tokens, least", "most")
    ]
    failed = 0
    for name in arguments.models.split(","):
        with took(name):
            model = load(name)
            reference = generate(model, 0, arguments.device)
            for rung in (*WRONG, *RIGHT):
                runs = arguments.runs if rung in WRONG else 1
                wrong, right, errors, shares = outcomes(model, rung, arguments.device, runs, reference)
                failed += errors + (wrong if rung in RIGHT else 0)
                label = f"{rung} {RUNG_NAMES[rung]}"
                rows.append((name, label, runs, wrong, right, errors, min(shares), max(shares)))
    table(rows)
    print("FAILED" if failed else "No error, and every right rung right afterwards.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
