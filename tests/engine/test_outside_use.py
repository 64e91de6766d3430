"""Engine case 24: the model is used outside the engine while the engine is alive, and gives its ordinary result."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from labkit.entry import Engine
from labkit.experiments import synthetic_prompts
from labkit.model.fused import FusedModel
from labkit.sizes import Sizes
from tests.engine.harness import RIGHT

SIZES = Sizes(max_rows=4, token_budget=64, block_size=16, num_blocks=32, max_model_len=96, graph_rows=(4,))


def where(device: str) -> str:
    return "cuda" if device == "cuda" else "cpu"


def generate(module: Any, prompt: list[int]) -> list[int]:
    """transformers' own greedy generate."""
    ids = torch.tensor([prompt], device=module.device)
    output = module.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return output[0, len(prompt) :].tolist()


@pytest.mark.parametrize("form", ["modules", "merged"])
def test_a_forward_and_a_generate_outside_a_running_engine(device: str, form: str) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    from labkit.model.hf import load

    base = load("tiny-llama", device=where(device))
    prompts, ids = synthetic_prompts(base, 4, 20), torch.arange(30, device=base.module.device)[None]
    logits, tokens = base.module(ids).logits, [generate(base.module, prompt) for prompt in prompts]
    model = base if form == "modules" else FusedModel(base)
    for rung in RIGHT:
        with Engine(model, switches=rung, device=device, sizes=SIZES, trace=False) as engine:
            requests = [engine.submit(prompt, max_new_tokens=8) for prompt in prompts]
            for step in range(100):
                assert torch.equal(base.module(ids).logits, logits), f"rung {rung}, step {step}"
                if step == 3:
                    assert generate(base.module, prompts[1]) == tokens[1]
                if not engine.busy:
                    break
                engine.step()
        assert [request.output for request in requests] == tokens
    assert generate(base.module, prompts[0]) == tokens[0]
