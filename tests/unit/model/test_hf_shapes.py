"""Shapes of known models: their size, and that they run."""

import pytest
import torch

pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM

from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.model.hf_shapes import SHAPES, load_shape


@pytest.mark.parametrize(
    ("name", "millions", "kv_bytes"), [("135m", 134.5, 23_040), ("1b", 1235.8, 32_768), ("8b", 8030.3, 131_072)]
)
def test_parameters_and_cache_are_the_models_own(name, millions, kv_bytes):
    """Numbers of the model cards: parameters, and bytes of K and V per token in bfloat16."""
    config = SHAPES[name]()
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config)
    assert module.num_parameters() / 1e6 == pytest.approx(millions, abs=0.1)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    assert config.num_hidden_layers * 2 * config.num_key_value_heads * size * 2 == kv_bytes


def test_a_shape_generates():
    model = load_shape("tiny", dtype=torch.float32)
    with Engine(model, trace=False) as engine:
        assert len(engine.generate([[1, 2, 3]], max_new_tokens=4).tokens[0]) == 4
    assert model.name == "tiny shape"


def test_an_unknown_shape_is_named_with_the_known_ones():
    with pytest.raises(InvalidArgument, match=r"shape='70b': one of 135m, 1b, 8b, tiny"):
        load_shape("70b")
