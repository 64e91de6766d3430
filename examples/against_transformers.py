"""Rung 0's tokens against transformers' own greedy ``generate``, prompt by prompt.

    python examples/against_transformers.py [--model smollm2] [--prompts examples/prompts.txt] [--max-new-tokens 32]

Prints one line per prompt; exits with status 1 if a token differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.experiments import read_prompts, sizes_for
from labkit.model.hf import HFModel, load


def generate_with_transformers(model: HFModel, prompt: list[int], max_new_tokens: int) -> list[int]:
    """Greedy tokens of the unchanged transformers model, one prompt alone."""
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        output = model.module.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            eos_token_id=list(model.eos_token_ids) or None,
            pad_token_id=0,
        )
    return output[0, len(prompt) :].tolist()


def compare(model: HFModel, prompts: list[str], max_new_tokens: int) -> list[tuple[list[int], list[int], list[int]]]:
    """For each prompt: its token ids, labkit's tokens on rung 0, and transformers' tokens."""
    params = SamplingParams(max_new_tokens=max_new_tokens)
    with Engine(model, switches="default_stream", sizes=sizes_for(model, prompts, params), trace=False) as engine:
        run = engine.generate(prompts, params)
    theirs = [generate_with_transformers(model, prompt, max_new_tokens) for prompt in run.prompts]
    return list(zip(run.prompts, run.tokens, theirs, strict=True))


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--prompts", default=str(Path(__file__).parent / "prompts.txt"))
    parser.add_argument("--max-new-tokens", type=int, default=32)
    arguments = parser.parse_args()
    rows = compare(load(arguments.model), read_prompts(arguments.prompts), arguments.max_new_tokens)
    print(f"{'prompt tokens':>14}{'new tokens':>12}{'equal':>8}")
    for prompt, ours, theirs in rows:
        print(f"{len(prompt):>14}{len(ours):>12}{'yes' if ours == theirs else 'NO':>8}")
    different = sum(ours != theirs for _, ours, theirs in rows)
    print(f"{len(rows) - different} of {len(rows)} prompts equal")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
