"""How many bytes an engine has given to slots, KV cache and graphs. A second slot is cheap; this shows how cheap."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.engine.core import EngineCore

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
