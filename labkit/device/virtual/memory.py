"""What the virtual GPU's payloads see: inputs as they were at the start, outputs at the end, damage where they tear.

A payload runs at its item's virtual end. That gives the values it would have read at its start, unless something wrote
to an input in between. So the first such write keeps the old bytes, and at the end the payload reads a *torn* input:
of the overwritten elements every second one as it was, the others (the first among them) as they became, as if some
threads had read before the write and some after. Each is a value that a program wrote, so an index stays in range
while the mixture belongs to no step.

Copies are the exception: DMA reads its source at its end (the worst case of semantics, 32), so a pinned buffer that is
refilled under a pending upload arrives refilled. ``Hardware(dma_reads="start")`` makes it read at its start.

Buffers of one block of an allocator share their memory, one after the other; views share it at the same time.

Fresh and freed device memory is poisoned: NaN for floats, the byte 0xCD for integers.
"""

from __future__ import annotations

from typing import Any

import torch

from labkit.device.api import Buffer
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


class Memory:
    """Bytes that buffers lie in, and the running kernels that read them."""

    __slots__ = ("reading",)

    def __init__(self) -> None:
        self.reading: list[tuple[Item, Buffer, int, int]] = []  # item, its buffer, byte range of the memory


class Place:
    """Where a buffer lies: ``Buffer.extra``. ``block`` is the allocator's, None for memory of its own."""

    __slots__ = ("block", "memory", "offset")

    def __init__(self, memory: Memory, offset: int = 0, block: Any = None) -> None:
        self.memory, self.offset, self.block = memory, offset, block


def begin_read(item: Item) -> None:
    """A kernel starts: from now until its end its inputs must not change."""
    for access in item.reads:
        place = access.buffer.extra
        place.memory.reading.append((item, access.buffer, access.start + place.offset, access.stop + place.offset))


def end_read(item: Item) -> None:
    """A kernel ends."""
    for access in item.reads:
        memory = access.buffer.extra.memory
        memory.reading = [entry for entry in memory.reading if entry[0] is not item]


def before_write(buffer: Buffer, start: int, stop: int, writer: Item | None = None) -> None:
    """Something is about to write bytes [start, stop): keep the old contents for every kernel that is reading them."""
    place = buffer.extra
    if place.memory.reading:
        before_write_bytes(place.memory, start + place.offset, stop + place.offset, writer)


def before_write_bytes(memory: Memory, start: int, stop: int, writer: Item | None = None) -> None:
    """The same for bytes of a memory."""
    for item, reader, first, last in memory.reading:
        if item is not writer and first < stop and start < last and reader not in item.torn:
            at = reader.extra.offset
            item.torn[reader] = (max(start, first) - at, min(stop, last) - at, reader.tensor.clone())


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
    after, size = buffer.tensor.clone(), buffer.tensor.element_size()
    mixed = after.flatten().clone()
    odd = slice(start // size + 1, -(-stop // size), 2)
    mixed[odd] = before.flatten()[odd]
    buffer.tensor.copy_(mixed.view(after.shape))
    return after


class Copy:
    """The payload of a copy."""

    __slots__ = ("dst", "src")

    def __init__(self, dst: torch.Tensor, src: torch.Tensor) -> None:
        self.dst, self.src = dst, src

    def __call__(self) -> None:
        self.dst.copy_(self.src)

    def read_now(self) -> Copy:
        """The same copy, with the source as it is at this moment."""
        return Copy(self.dst, self.src.clone())
