"""The fused form gives the tokens of the transformers modules, and shares their weights."""

from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen3Config

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes
from labkit.errors import InvalidArgument
from labkit.experiments import synthetic_prompts
from labkit.model.api import BatchShape
from labkit.model.between_attention import rms_norm
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
    expected_names = {"begin_4", "enter_4", "between_4", "leave_4"}
    assert {f.__name__ for f in compiled} >= expected_names  # the one size that has a graph


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


def test_logits_keep_the_weights_type_until_they_are_sampled():
    assert FusedModel(load("tiny-llama", dtype=torch.bfloat16)).logit_bytes == 2
    assert FusedModel(load("tiny-llama")).logit_bytes == 4


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_32_requests_compiled_and_in_graphs_get_the_tokens_of_rung_0():
    model = load("tiny-llama").to(torch.device("cuda"))
    prompts = synthetic_prompts(model, 32, 20)
    sizes = default_sizes(model, max_rows=32, token_budget=1024, max_model_len=64, graph_rows=(32,))
    found = []
    for switches in (ladder(0), ladder(6).with_(compiled=True)):
        with Engine(model, switches=switches, device="cuda", sizes=sizes, trace=False) as engine:
            found.append(engine.generate(prompts, SamplingParams(max_new_tokens=24)).tokens)
    assert found[0] == found[1]


def test_more_sizes_than_one_code_object_may_be_compiled_for():
    model = FusedModel(load("tiny-llama"), compiled=True, backend="eager")
    for tokens in range(1, 11):
        batch = SimpleNamespace(shape=BatchShape(tokens, tokens, tokens, 1, 16))
        normed = model._function(rms_norm, batch, torch.Size((4, 16, 2, 64)))(torch.ones(tokens, 8), 2.0, 0.0)
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
