"""What differs between GPUs, drivers and versions of PyTorch where the rules leave a choice."""

from __future__ import annotations

from dataclasses import dataclass, fields

from labkit.errors import InvalidArgument

_CHOICES = {
    "dma_reads": ("end", "start"),
    "staging": ("by_size", "sync_stage", "stage_only"),
    "pinned_alloc_in_capture": ("pool", "trap"),
}


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The machine. Rule numbers are those of ``docs/semantics.md``.

    gpus                     devices, numbered from 0 (25, 34)
    connections              hardware queues that streams share in turn; None: one for each stream (45)
    dma_reads                when a copy takes its source: at its ``end``, the worst case, or at its ``start`` (32)
    staging                  whether a pageable upload waits for its stream before it is staged: ``by_size`` (the
                             profile's ``stage_only_bytes``), ``sync_stage`` (always) or ``stage_only`` (never) (29)
    pinned_alloc_in_capture  ``pool``: legal; ``trap``: error 900, as in older versions of PyTorch (59)
    memory_bytes             device memory; None: as much as asked for (39)
    """

    gpus: int = 1
    connections: int | None = None
    dma_reads: str = "end"
    staging: str = "by_size"
    pinned_alloc_in_capture: str = "pool"
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            choices = _CHOICES.get(field.name)
            if choices is not None and value not in choices:
                raise InvalidArgument(field.name, value, f"one of {', '.join(choices)}")
            if choices is None and not (value is None and field.name != "gpus") and not _positive(value):
                raise InvalidArgument(field.name, value, "an integer of at least 1")


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
