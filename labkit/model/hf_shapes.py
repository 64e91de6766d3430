"""Shapes of known models with seeded random weights, for timing: no download, and the kernels do not know better."""

from __future__ import annotations

import torch

from labkit.errors import InvalidArgument
from labkit.model.decoder import HFModel
from labkit.model.hf import LlamaConfig, llama_8b_config, random_model, tiny_llama_config  # raises without transformers

LONGEST = 131072  # tokens


def smollm2_135m_config() -> LlamaConfig:
    """SmolLM2-135M (config.json of HuggingFaceTB/SmolLM2-135M-Instruct), for longer contexts than it was trained on."""
    return LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=LONGEST,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )


def llama_1b_config() -> LlamaConfig:
    """Llama-3.2-1B (config.json of meta-llama/Llama-3.2-1B), with plain rotary embeddings."""
    return LlamaConfig(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        max_position_embeddings=LONGEST,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )


SHAPES = {
    "135m": smollm2_135m_config,
    "1b": llama_1b_config,
    "8b": llama_8b_config,
    "tiny": tiny_llama_config,
}


def load_shape(name: str, device: torch.device | str = "cpu", dtype: torch.dtype = torch.bfloat16) -> HFModel:
    """A model of a shape, made on ``device``.

    Raises:
        InvalidArgument: no such shape.
    """
    if name not in SHAPES:
        raise InvalidArgument("shape", name, f"one of {', '.join(SHAPES)}")
    return HFModel(random_model(SHAPES[name](), 0, dtype, device, std=0.02), None, f"{name} shape")
