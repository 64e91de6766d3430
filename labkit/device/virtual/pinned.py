"""PyTorch's caching host allocator: pinned memory by powers of two, not handed out again while a copy uses it.

Every non-blocking copy notes its stream; a freed buffer waits for an event in each of them (semantics, 33). What an
alias of the buffer does after that, a numpy view say, is outside this protection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.device.api import Stream
from labkit.device.virtual.blocks import Block, BlockCache

if TYPE_CHECKING:
    from labkit.device.virtual.capture import Capturing

_BASE = 0x20_0000_0000


class PinnedAllocator:
    """Pinned host memory."""

    def __init__(self, core: Capturing) -> None:
        self._core = core
        self._cache = BlockCache(core)
        self._blocks = 0
        self._next_address = _BASE

    def malloc(self, nbytes: int) -> Block:
        """A block of at least ``nbytes``: a cached one, or a new one at the cost of a cudaHostAlloc.

        Raises:
            CaptureError: in a capture, with ``Hardware(pinned_alloc_in_capture="trap")`` (59).
        """
        if self._core.hardware.pinned_alloc_in_capture == "trap":
            self._core.unsafe_call("an allocation of pinned memory")
        size = 1 << max(0, nbytes - 1).bit_length()
        return self._cache.take(size) or self._grow(size)

    def used(self, block: Block, stream: Stream) -> None:
        """A non-blocking copy in ``stream`` uses the block."""
        block.uses[stream] = None

    def free(self, block: Block) -> None:
        """The program no longer uses the block."""
        self._cache.give(block)

    def _grow(self, size: int) -> Block:
        self._core.spend(self._core.profile.pinned_malloc_ns)
        self._blocks += 1
        block = Block(-self._blocks, self._next_address, size, size)
        self._next_address += size
        return block
