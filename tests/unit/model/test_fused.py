"""The fused form gives the tokens of the transformers modules, and shares their weights."""

from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen3Config

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes
from labkit.errors import InvalidArgument
from labkit.experiments import synthetic_prompts
from labkit.model import fused
from labkit.model.api import BatchShape
from labkit.model.fused import FusedModel
from labkit.model.hf import HFModel, load, random_model
from labkit.switches import ladder

LENGTHS = (1, 3, 17, 70, 40)


def tokens(model, rung=0):
    prompts = [p[:n] for p, n in zip(synthetic_prompts(model, len(LENGTHS), 70), LENGTHS, strict=True)]
    sizes = default_sizes(model, max_rows=4, token_budget=32, max_model_len=96, graph_rows=(4,))
    with Engine(model, switches=rung, sizes=sizes, trace=False) as engine:
        return engine.generate(prompts, SamplingParams(max_new_tokens=12)).tokens


@pytest.fixture(scope="module")
def expected():
    return tokens(load("tiny-llama"))


@pytest.mark.parametrize("rung", [0, 6])
def test_same_tokens_as_the_modules(expected, rung):
    assert tokens(FusedModel(load("tiny-llama")), rung) == expected


def test_same_tokens_through_torch_compile(expected, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda f, compile=torch.compile, **o: compiled.append(f) or compile(f, **o))
    assert tokens(FusedModel(load("tiny-llama"), compiled=True, backend="aot_eager"), 6) == expected
    assert {f.__name__ for f in compiled} >= {"_enter_4", "_between_4", "_leave_4"}  # the one size that has a graph


@pytest.mark.parametrize("rung", [0, 5])
def test_the_switch_runs_the_compiled_form(expected, rung):
    model = load("tiny-llama")
    sizes = default_sizes(model, max_rows=4, token_budget=32, max_model_len=96, graph_rows=(4,))
    with Engine(model, switches=ladder(rung).with_(compiled=True), sizes=sizes, trace=False) as engine:
        assert isinstance(engine.core.model, FusedModel)
        prompts = [p[:n] for p, n in zip(synthetic_prompts(model, len(LENGTHS), 70), LENGTHS, strict=True)]
        assert engine.generate(prompts, SamplingParams(max_new_tokens=12)).tokens == expected


def test_the_compiled_form_is_made_once_and_its_functions_serve_every_block_size():
    base = load("tiny-llama")
    plain = FusedModel(base)
    assert base.compiled() is base.compiled() is plain.compiled() is base.compiled().compiled()
    assert base.compiled().is_compiled and not plain.is_compiled
    assert base.compiled().backend == "aot_eager", "inductor would need a C++ compiler where the model is on the CPU"
    assert base.compiled().for_block_size(4)._functions is base.compiled().for_block_size(16)._functions


def test_more_sizes_than_one_code_object_may_be_compiled_for():
    model = FusedModel(load("tiny-llama"), compiled=True, backend="eager")
    for tokens in range(1, 11):
        batch = SimpleNamespace(shape=BatchShape(tokens, tokens, tokens, 1, 16))
        normed = model._function(fused._rms_norm, batch, torch.Size((4, 16, 2, 64)))(torch.ones(tokens, 8), 2.0, 0.0)
        assert torch.equal(normed, torch.full((tokens, 8), 2.0))
    assert len(model._functions) == 10


def test_the_weights_exist_once_and_the_module_is_unchanged():
    base, ids = load("tiny-llama"), torch.arange(20)[None]
    before = base.module(ids).logits
    merged = FusedModel(base)
    attention = base.module.model.layers[0].self_attn
    assert attention.q_proj.weight.untyped_storage().data_ptr() == merged._layers[0].qkv.untyped_storage().data_ptr()
    assert torch.equal(base.module(ids).logits, before)


def test_fusing_twice_merges_once():
    base = load("tiny-llama")
    first, second = FusedModel(base), FusedModel(base)
    assert first._layers[0].qkv.data_ptr() == second._layers[0].qkv.data_ptr()
    assert first._layers[1].gate_up.shape == second._layers[1].gate_up.shape


def test_another_shape_is_refused_by_name():
    config = Qwen3Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, head_dim=16,
        num_key_value_heads=1,
    )  # fmt: skip
    with pytest.raises(InvalidArgument, match="Qwen3ForCausalLM"):
        FusedModel(HFModel(random_model(config)))
    with pytest.raises(InvalidArgument, match="Qwen3ForCausalLM"):
        HFModel(random_model(config)).compiled()
