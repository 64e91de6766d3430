"""How many bytes an engine has given to slots, KV cache and graphs. A second slot is cheap; this shows how cheap."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

from labkit.engine.core import EngineCore
from labkit.engine.slots import InputLayout
from labkit.errors import InvalidArgument
from labkit.model.api import Model
from labkit.model.kv_cache import block_bytes
from labkit.sizes import COUNTS, Sizes

_FLOAT32 = 4  # bytes


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Some memory of an engine.

    part    slot A, slot B, KV cache, or CUDA graphs
    place   device, pinned or pageable
    bytes   its size; of graphs a lower bound, see ``what``
    """

    part: str
    what: str
    place: str
    bytes: int


def memory_of(core: EngineCore) -> tuple[MemoryUse, ...]:
    """Slots buffer by buffer, the KV cache, and the pool that all graphs share, in this order.

    A graph keeps its intermediate tensors in a memory pool. Counted of them are the logits, ``[R, V]``, float32
    unless the model says otherwise: with one pool for all graphs those of the largest, since no two graphs run at once.
    """
    uses = []
    for slot in core.slots.slots:
        for what in ("inputs_host", "inputs_dev", "outputs_host", "outputs_dev"):
            buffer = getattr(slot, what)
            uses.append(MemoryUse(f"slot {slot.name}", what, buffer.place, buffer.nbytes))
    blocks = f"{core.sizes.num_blocks} blocks of {core.sizes.block_size} tokens, and the trash block"
    uses.append(MemoryUse("KV cache", blocks, "device", sum(buffer.nbytes for buffer in core.kv)))
    rows = [key.rows for key in getattr(core.launcher, "graphs", {})]
    if rows:
        row_bytes = core.model.vocab_size * getattr(core.model, "logit_bytes", _FLOAT32)
        apart = f"logits of {len(rows)} graphs in one pool; {sum(rows) * row_bytes} B in pools of their own"
        uses.append(MemoryUse("CUDA graphs", apart, "device", max(rows) * row_bytes))
    return tuple(uses)


def check_host_memory(model: Model, sizes: Sizes, slots: int) -> None:
    """Say before anything is allocated that an engine on the virtual GPU would not fit into this machine's memory, of
    which a quarter is left to everything else. A real GPU's allocator says so itself.

    Raises:
        InvalidArgument: the sizes ask for more.
    """
    cache = (sizes.num_blocks + 1) * block_bytes(model.kv_specs(), sizes.block_size)
    inputs = slots * 2 * InputLayout(sizes).numel * torch.int32.itemsize  # host and device
    here = _host_memory() * 3 // 4
    if cache + inputs > here:
        raise InvalidArgument(
            "sizes",
            ", ".join(f"{name} {getattr(sizes, name)}" for name in COUNTS),
            f"what fits into {here / 2**30:.1f} GiB: the KV cache takes {cache / 2**30:.1f} GiB, "
            f"the inputs {inputs / 2**30:.1f} GiB",
        )


def _host_memory() -> int:
    """Bytes of this machine's memory; where the system does not tell, more than any machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 62
