"""PyTorch's caching allocator across streams: a freed block goes back to the stream it was allocated in (61).

Work in that stream is in order, so the block can be used again at once, without any wait. Work of another stream that
still uses it is known only from ``record_stream`` (62, 63). Captures allocate from private pools (57, 58).

Simpler than the original: a block serves only requests of its own size, rounded up to 512 bytes; nothing is split.
Rule numbers are those of ``docs/semantics.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.device.api import Stream
from labkit.device.virtual.blocks import Block, BlockCache
from labkit.errors import DeviceError

if TYPE_CHECKING:
    from labkit.device.virtual.capture import Capturing

_ROUND = 512  # bytes
_BASE = 0x7F_0000_0000

Key = tuple["GraphPool | None", Stream, int]


class GraphPool:
    """A private memory pool: of one capture, or shared by several. ``graphs`` counts those that keep it alive."""

    def __init__(self) -> None:
        self.graphs = 0
        self.live = 0  # blocks in use


class CachingAllocator:
    """Device memory. ``in_use`` and ``reserved`` are bytes."""

    def __init__(self, core: Capturing) -> None:
        self._core = core
        self._cache = BlockCache(core)
        self._blocks = 0
        self._next_address = _BASE
        self.in_use = self.reserved = 0

    def malloc(self, nbytes: int, stream: Stream, pool: GraphPool | None = None) -> Block:
        """A block for use in ``stream``: a cached one, or a new one at the cost of a cudaMalloc. Never waits (39).

        Raises:
            DeviceError: out of memory, also after waiting for every block that is only being released.
        """
        size = max(_ROUND, -(-nbytes // _ROUND) * _ROUND)
        key = (pool, stream, size)
        block = self._cache.take(key) or self._grow(key)
        block.pool = pool
        if pool is not None:
            pool.live += 1
        self.in_use += size
        return block

    def free(self, block: Block) -> None:
        """The program no longer uses the block. It becomes poison when its own stream gets there."""
        if block.pool is not None:
            block.pool.live -= 1
        self.in_use -= block.nbytes
        stream: Stream = block.key[1]
        if not block.uses and not self._core.captures_under_way:
            self._core.marker(stream, f"free of block {block.number}", payload=block.poison)
        self._cache.give(block)

    def record_stream(self, block: Block, stream: Stream) -> None:
        """Another stream uses the block: once freed, it waits for what that stream has been given by then (63)."""
        if stream is not block.key[1]:
            block.uses[stream] = None

    def empty_cache(self) -> None:
        """Give cached blocks back to the device: waits for the whole device if there are any (39)."""
        self._wait_for_releases()
        gone = self._cache.drop(keep=lambda key: key[0] is not None and (key[0].graphs or key[0].live))
        if gone:
            self._core.wait_for_device()
            self._core.spend(self._core.profile.free_ns * len(gone))
        self.reserved -= sum(block.nbytes for block in gone)

    def _wait_for_releases(self) -> None:
        for item in self._cache.flush():
            self._core.wait_for_item(item)
        self._cache.flush()

    def _grow(self, key: Key) -> Block:
        size, limit = key[2], self._core.hardware.memory_bytes
        if limit is not None and self.reserved + size > limit:
            self.empty_cache()
            if self.reserved + size > limit:
                raise DeviceError(f"out of memory: {size} bytes asked for, {limit - self.reserved} free of {limit}")
        self._core.spend(self._core.profile.malloc_ns)
        self._blocks += 1
        block = Block(self._blocks, self._next_address, size, key)
        self._next_address += size
        self.reserved += size
        return block
