"""Blocks of memory that an allocator hands out again, and when: not before other streams are done with them.

An allocator cannot see which streams use a block. It is told (``record_stream``, or a non-blocking copy of pinned
memory), and when the block is freed it records an event in each of those streams. At the next allocation it looks which
events have been reached (semantics, 33 and 63). Nothing here orders any work, and nothing waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from labkit.device.api import Stream
from labkit.device.virtual import memory
from labkit.device.virtual.queue import Item

if TYPE_CHECKING:
    from labkit.device.virtual.capture import Capturing


class Block:
    """Memory at an address. ``number`` is the same for all buffers that ever lie in it."""

    __slots__ = ("address", "bytes", "key", "memory", "nbytes", "number", "pool", "tensor", "uses")

    def __init__(self, number: int, address: int, nbytes: int, key: Any) -> None:
        self.number, self.address, self.nbytes, self.key = number, address, nbytes, key
        self.bytes = torch.empty(nbytes, dtype=torch.uint8)
        self.tensor: torch.Tensor | None = None  # the latest buffer's, to be poisoned by its type
        self.memory = memory.Memory()
        self.uses: dict[Stream, None] = {}  # streams to wait for before the block is used again
        self.pool: Any = None

    def typed(self, nbytes: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """The block's first bytes as a tensor; poison if the block is new."""
        fresh = self.tensor is None
        self.tensor = self.bytes[:nbytes].view(dtype).view(tuple(shape))
        if fresh:
            memory.poison(self.tensor)
        return self.tensor

    def poison(self) -> None:
        """Damage the contents. As any write does, this tears the input of a kernel that still reads them."""
        memory.before_write_bytes(self.memory, 0, self.nbytes)
        if self.tensor is not None:
            memory.poison(self.tensor)


class BlockCache:
    """Free blocks by key, and freed blocks that wait for events."""

    def __init__(self, core: Capturing) -> None:
        self._core = core
        self.free: dict[Any, list[Block]] = {}
        self.waiting: list[tuple[Block, list[Item]]] = []
        self._deferred: list[Block] = []

    def take(self, key: Any) -> Block | None:
        """A free block, the one freed last."""
        self._look()
        blocks = self.free.get(key)
        return blocks.pop() if blocks else None

    def give(self, block: Block) -> None:
        """A block is no longer used by the program. In a capture its events are recorded after the capture (63)."""
        if not block.uses:
            self.free.setdefault(block.key, []).append(block)
        elif self._core.captures_under_way:
            self._deferred.append(block)
        else:
            self._record(block)

    def flush(self) -> list[Item]:
        """The events that freed blocks still wait for."""
        self._look()
        return [item for _, items in self.waiting for item in items]

    def drop(self, keep: Any = None) -> list[Block]:
        """Forget the free blocks, except those whose key ``keep`` accepts; returns the forgotten ones."""
        gone = [block for key, blocks in self.free.items() if not (keep and keep(key)) for block in blocks]
        self.free = {key: blocks for key, blocks in self.free.items() if keep and keep(key)}
        return gone

    def _record(self, block: Block) -> None:
        items = [self._core.marker(stream, f"free of block {block.number}") for stream in block.uses]
        block.uses = {}
        self.waiting.append((block, items))

    def _look(self) -> None:
        """Poll, as the real allocators do at every allocation."""
        if self._deferred and not self._core.captures_under_way:
            for block in self._deferred:
                self._record(block)
            self._deferred.clear()
        if not self.waiting:
            return
        still = [(block, items) for block, items in self.waiting if not all(map(self._core.reached, items))]
        for block, _ in (entry for entry in self.waiting if entry not in still):
            block.poison()
            self.free.setdefault(block.key, []).append(block)
        self.waiting = still
