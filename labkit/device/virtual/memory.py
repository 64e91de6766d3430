"""What the virtual GPU's payloads see: inputs as they were at the start, outputs at the end, damage where they tear.

A payload runs at its item's virtual end. That gives the values it would have read at its start, unless something wrote
to an input in between. So the first such write keeps the old bytes, and at the end the payload reads a *torn* input:
of the overwritten elements every second one as it was, the others (the first among them) as they became, as if some
threads had read before the write and some after. Each is a value that a program wrote, so an index stays in range
while the mixture belongs to no step.

Copies are the exception: DMA reads its source at its end (the worst case of semantics, 32), so a pinned buffer that is
refilled under a pending upload arrives refilled.

Fresh device memory is poisoned: NaN for floats, the byte 0xCD for integers.
"""

from __future__ import annotations

import torch

from labkit.device.api import Access, Buffer
from labkit.device.virtual.queue import Item

_POISON = {1: -51, 2: -12851, 4: -842150451, 8: -3617008641903833651}  # 0xCD repeated, as signed integers


def poison(tensor: torch.Tensor) -> None:
    """Fill with NaN (floats) or 0xCD bytes (integers)."""
    if tensor.is_floating_point():
        tensor.fill_(float("nan"))
    elif tensor.dtype in (torch.bool, torch.uint8):
        tensor.fill_(0xCD if tensor.dtype == torch.uint8 else True)
    else:
        tensor.fill_(_POISON[tensor.element_size()])


class Readers:
    """The running kernels that read a buffer, kept in ``Buffer.extra``."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        self.running: list[tuple[Item, Access]] = []


def begin_read(item: Item) -> None:
    """A kernel starts: from now until its end its inputs must not change."""
    for access in item.reads:
        access.buffer.extra.running.append((item, access))


def end_read(item: Item) -> None:
    """A kernel ends."""
    for access in item.reads:
        access.buffer.extra.running = [entry for entry in access.buffer.extra.running if entry[0] is not item]


def before_write(buffer: Buffer, start: int, stop: int, writer: Item | None = None) -> None:
    """Something is about to write bytes [start, stop): keep the old contents for every kernel that is reading them."""
    for item, access in buffer.extra.running:
        if item is not writer and access.start < stop and start < access.stop and buffer not in item.torn:
            item.torn[buffer] = (max(start, access.start), min(stop, access.stop), buffer.tensor.clone())


def run_payload(item: Item) -> None:
    """Run a payload at its virtual end, on torn inputs where there are any."""
    if item.payload is None:
        return
    if not item.torn:
        item.payload()
        return
    after = {buffer: _tear(buffer, *kept) for buffer, kept in item.torn.items()}
    try:
        item.payload()
    finally:
        written = {access.buffer for access in item.writes}
        for buffer, contents in after.items():
            if buffer not in written:
                buffer.tensor.copy_(contents)


def _tear(buffer: Buffer, start: int, stop: int, before: torch.Tensor) -> torch.Tensor:
    """Put every second overwritten element back as it was; returns the contents to restore."""
    after = buffer.tensor.clone()
    size = buffer.tensor.element_size()
    odd = slice(start // size + 1, -(-stop // size), 2)
    buffer.tensor.view(-1)[odd] = before.view(-1)[odd]
    return after
