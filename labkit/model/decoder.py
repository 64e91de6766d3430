"""A transformers decoder as a ``Model``: its own modules, with attention over labkit's paged KV cache.

transformers lets a model's attention be replaced by name. ``labkit/model/hf.py`` registers ``paged_attention`` under
``labkit_paged``, and ``HFModel`` runs a *view* of the model that names it in its config: the same modules and weight
tensors, with a config of its own. So the user's model is never changed, and it can be used outside the engine at any
time, from any thread. transformers builds no attention mask for a name that it has no mask function for.

Legend: T tokens, H query heads, G query heads per KV head, D head size.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from labkit.errors import InvalidArgument
from labkit.model.api import BatchInputs, KVSpec
from labkit.model.attention import PagedAttention, SdpaPaged, clamp_indices, write_kv
from labkit.model.flash import choose
from labkit.model.weights import ByteTokenizer

ATTENTION_NAME = "labkit_paged"
FLASH_BLOCK = 256  # tokens; flash-attn 2 pages its KV cache in multiples of this
CHANGES_SCORES = ("softcap", "s_aux", "position_bias", "indices")  # options the paged backends do not have
ROPE_READS_DEVICE = ("dynamic", "longrope")  # these look at the largest position in every forward pass


@dataclass(frozen=True, slots=True)
class _PagedStep:
    """What the attention of every layer needs to know about this forward pass."""

    attention: PagedAttention
    plan: Any
    slots: torch.Tensor  # [T] int64
    kv: Sequence[torch.Tensor]  # K and V of layer 0, of layer 1, ...


def paged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,  # [1, H, T, D]
    key: torch.Tensor,  # [1, H / G, T, D]
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    labkit_step: _PagedStep,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention call: stores K and V of this batch, and attends over the paged cache. ``[1, T, H, D]``"""
    for name in CHANGES_SCORES:
        if options.get(name) is not None:
            raise InvalidArgument("model", type(module).__name__, f"attention with {name} is not supported")
    layer: int = module.layer_idx  # type: ignore[assignment]
    kv = labkit_step.kv[2 * layer], labkit_step.kv[2 * layer + 1]
    write_kv(kv, labkit_step.slots, key[0].transpose(0, 1), value[0].transpose(0, 1))
    queries = query[0].transpose(0, 1)  # [T, H, D]
    out = labkit_step.attention.attend(queries, kv, labkit_step.plan, scaling, sliding_window)
    return out[None], None  # [1, T, H, D]


class HFModel:
    """A transformers causal language model whose attention goes through transformers' attention interface.

    Args:
        module: the model, loaded; its weights are shared, its config is not touched.
        tokenizer: a transformers tokenizer, or None for one token per byte.
        name: how to call it; the default is the class name.
        block_size: KV block size it will run with, if known: lets flash-attn be chosen where it works.

    Raises:
        InvalidArgument: the model's attention or positions cannot run on a paged cache.
    """

    def __init__(self, module: Any, tokenizer: Any = None, name: str = "", block_size: int | None = None) -> None:
        _check(module)
        config = module.config
        self.module, self.tokenizer, self.block_size = module, tokenizer, block_size
        self.name = name or type(module).__name__
        self.vocab_size: int = config.vocab_size
        self.max_model_len: int = config.max_position_embeddings
        self.eos_token_ids = _eos_token_ids(module, tokenizer)
        self.attention = _choose_attention(module, block_size)
        self._view = _paged_view(module)
        self._compiled: Any = None

    def kv_specs(self) -> Sequence[KVSpec]:
        """K and V of every layer: k0, v0, k1, v1, ..., each ``(kv_heads, head_dim)`` per token."""
        _, kv_heads, size = _head_sizes(self.module.config)
        layers = range(self.module.config.num_hidden_layers)
        return [KVSpec(f"{kind}{n}", (kv_heads, size), self.module.dtype) for n in layers for kind in "kv"]

    def context_bucket(self, context: int, limit: int) -> int:
        return self.attention.context_bucket(context, limit)

    @torch.inference_mode()
    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        inputs = clamp_indices(inputs, kv[0])
        step = _PagedStep(self.attention, self.attention.plan(inputs, kv[0].shape[1]), inputs.slot_mapping, kv)
        output = self._view(
            input_ids=inputs.token_ids.clamp(0, self.vocab_size - 1)[None],  # [1, T]
            position_ids=inputs.positions.clamp(0, self.max_model_len - 1)[None],
            use_cache=False,
            logits_to_keep=inputs.output_index,
            labkit_step=step,
        )
        return output.logits[0].float()  # [R, V]

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt: as a user's message in the chat template, where the tokenizer has one."""
        if self.tokenizer is None:
            return ByteTokenizer().encode(text)
        if not getattr(self.tokenizer, "chat_template", None):
            return list(self.tokenizer(text)["input_ids"])
        message = [{"role": "user", "content": text}]
        return list(self.tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens, without special tokens."""
        if self.tokenizer is None:
            return ByteTokenizer().decode(tokens)
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True)

    def to(self, device: torch.device | str) -> HFModel:
        """This model on ``device``. As with any torch module, the weights themselves move."""
        device = torch.device(device)
        if device == self.module.device:
            return self
        return HFModel(self.module.to(device), self.tokenizer, self.name, self.block_size)

    @property
    def preferred_block_size(self) -> int:
        """256 where a paged kernel works (flash-attn pages in multiples of that), else 16."""
        return 16 if _choose_attention(self.module, FLASH_BLOCK).name == "sdpa" else FLASH_BLOCK

    def for_block_size(self, block_size: int) -> HFModel:
        """The same model and weights, with the fastest attention that works for this KV block size."""
        return HFModel(self.module, self.tokenizer, self.name, block_size)

    def compiled(self) -> Any:
        """The compiled form: a ``FusedModel``. It goes through inductor on CUDA, and elsewhere, where a C++ compiler
        would be needed and no time is won, through the tracing alone."""
        from labkit.model.fused import FusedModel

        if self._compiled is None:
            backend = "inductor" if self.module.device.type == "cuda" else "aot_eager"
            self._compiled = FusedModel(self, compiled=True, backend=backend)
        return self._compiled


def _paged_view(module: Any) -> Any:
    """The same modules around the same weight tensors, with a config of their own that names labkit's attention."""
    shared = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    view = copy.deepcopy(module, memo=shared).eval()
    view.config._attn_implementation = ATTENTION_NAME
    return view


def _check(module: Any) -> None:
    config, kind = module.config, type(module).__name__
    layer_types = set(getattr(config, "layer_types", None) or ["full_attention"])
    if layer_types - {"full_attention", "sliding_attention"}:
        raise InvalidArgument("model", kind, f"full or sliding attention in every layer, not {sorted(layer_types)}")
    if not getattr(module, "_supports_attention_backend", False):
        raise InvalidArgument("model", kind, "a decoder whose attention goes through transformers' attention interface")
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") in ROPE_READS_DEVICE:
        raise InvalidArgument("rope_type", rope["rope_type"], "a type that does not read the positions on the host")


def _head_sizes(config: Any) -> tuple[int, int, int]:
    """Query heads, KV heads, head size."""
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    return heads, kv_heads, getattr(config, "head_dim", None) or config.hidden_size // heads


def _choose_attention(module: Any, block_size: int | None) -> PagedAttention:
    if block_size is None:
        return SdpaPaged("the KV block size is not known yet")
    window = getattr(module.config, "sliding_window", None)
    return choose(module.device, module.dtype, _head_sizes(module.config), block_size, window)


def _eos_token_ids(module: Any, tokenizer: Any) -> tuple[int, ...]:
    """Where generate stops (the generation config), and the end of a chat turn where the vocabulary has one."""
    configured = module.generation_config.eos_token_id if module.generation_config is not None else None
    ids = set(configured if isinstance(configured, list) else [configured])
    if tokenizer is not None:
        ids.add(tokenizer.get_vocab().get("<|im_end|>"))
    return tuple(sorted(token for token in ids if token is not None))
