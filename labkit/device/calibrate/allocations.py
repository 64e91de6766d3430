"""What allocations cost that miss every cache, and giving memory back (C12)."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from labkit.device.calibrate.rig import Rig

NBYTES = 64 << 20  # more than the caching allocator keeps together in one of its segments
PINNED_BYTES = 1 << 20


def measure_allocations(rig: Rig, repeats: int) -> dict[str, Any]:
    """Fields of ``Profile``."""
    rig.release()
    rig.device.synchronize()
    malloc, free = [], []
    for _ in range(repeats):
        block, took = timed(rig, lambda: rig.malloc(NBYTES))
        malloc.append(took)
        del block
        rig.device.synchronize()
        blocks, took = timed(rig, rig.release)
        _, wait = timed(rig, rig.device.synchronize)  # giving memory back waits for the device, which is idle here
        free.append(max(0, took - wait) / max(1, blocks))
    kept = [timed(rig, partial(rig.pinned_malloc, PINNED_BYTES << n)) for n in range(repeats)]
    return {
        "malloc_ns": round(statistics.median(malloc)),
        "free_ns": round(statistics.median(free)),
        "pinned_malloc_ns": round(min(took for _, took in kept)),
    }


def timed(rig: Rig, call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call returns, and its host ns."""
    start = rig.device.now_ns()
    result = call()
    return result, rig.device.now_ns() - start
