"""The pool of KV blocks: who has which, and when a freed one may be handed out again.

A block freed while a step is in flight may still be written by that step (an overrun row, a preempted request), so it
is *held* until the step has ended, and only then free.
"""

from __future__ import annotations

from collections import deque

from labkit.errors import LabkitError


class BlockPool:
    """``num_blocks`` block numbers, each free, held, or used by one request."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._free: deque[int] = deque(range(num_blocks))
        self._held: deque[tuple[int, list[int]]] = deque()  # (step, blocks), steps ascending
        self._used: set[int] = set()

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def held(self) -> int:
        return sum(len(blocks) for _, blocks in self._held)

    @property
    def held_blocks(self) -> list[int]:
        """Freed, and not free before a step in flight has ended."""
        return [block for _, blocks in self._held for block in blocks]

    @property
    def used(self) -> int:
        return len(self._used)

    def allocate(self) -> int:
        """Take a free block. Raises IndexError when there is none."""
        block = self._free.popleft()
        self._used.add(block)
        return block

    def release(self, blocks: list[int], after_step: int | None) -> None:
        """Give blocks back: free at once, or held until ``after_step`` has ended."""
        if not self._used.issuperset(blocks):
            raise LabkitError(f"blocks {sorted(set(blocks) - self._used)} are freed twice")
        self._used.difference_update(blocks)
        if after_step is None:
            self._free.extend(blocks)
        else:
            self._held.append((after_step, blocks))

    def step_ended(self, step: int) -> None:
        """Blocks held for this step or an earlier one are free now."""
        while self._held and self._held[0][0] <= step:
            self._free.extend(self._held.popleft()[1])

    def reset(self) -> None:
        """All blocks free, as at the start."""
        self.__init__(self.num_blocks)  # type: ignore[misc]
