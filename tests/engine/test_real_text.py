"""Real text from a real model: transformers' own greedy generate is the oracle of rung 0, and rung 0 of the others."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from labkit.engine.sampling import SamplingParams
from labkit.experiments import read_prompts, run_ladder, sizes_for
from labkit.model.weights import SMOLLM2_PIP, smollm2_gguf

ROOT = Path(__file__).parents[2]
PROMPTS = read_prompts(ROOT / "examples" / "prompts.txt")[:13]
PARAMS = SamplingParams(max_new_tokens=12)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(smollm2_gguf() is None, reason=f"the weights of SmolLM2 are missing: {SMOLLM2_PIP}"),
]


@pytest.fixture(scope="module")
def model():
    from labkit.model.hf import load

    return load("smollm2")


@pytest.fixture(scope="module")
def ladder(model):
    return run_ladder(model, PROMPTS, PARAMS)


def test_one_prompt_is_longer_than_the_token_budget(model):
    budget = sizes_for(model, PROMPTS, PARAMS).token_budget
    assert sum(len(model.encode(prompt)) > budget for prompt in PROMPTS) == 1


def test_rung_0_equals_transformers_generate(model, ladder):
    spec = importlib.util.spec_from_file_location("against_transformers", ROOT / "examples" / "against_transformers.py")
    example = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    run = ladder.runs["default_stream"]
    theirs = [example.generate_with_transformers(model, prompt, PARAMS.max_new_tokens) for prompt in run.prompts]
    assert len(theirs) >= 12
    assert run.tokens == theirs


def test_which_rungs_are_right(ladder):
    assert [rung.right for rung in ladder.rungs] == [True, False, True, False, False, True, True]


def test_the_wrong_rungs_are_explained(ladder):
    for rung in ladder.rungs:
        assert rung.why.startswith("Right" if rung.right else "Wrong")


def test_a_second_run_gives_the_same_object(model, ladder):
    again = run_ladder(model, PROMPTS, PARAMS, rungs=[5], keep_runs=False)
    first = ladder.to_dict()
    assert again.to_dict() == {**first, "rungs": [first["rungs"][5]]}
