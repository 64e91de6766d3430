"""Engine case 3: ten engines one after the other leave no memory and no thread behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest
import torch

from labkit.device.api import Buffer
from tests.engine.harness import ask, build, expected, play, prompt, sizes

ASKS = [ask(prompt(4 + i, i), 6) for i in range(3)]


@pytest.fixture(autouse=True)
def _what_was_there_before() -> Iterator[None]:
    """Out of sight: a collection then looks at this test's objects alone."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def in_use(device: str) -> tuple[int, int, int]:
    """Live buffers, threads, and bytes that PyTorch holds of the GPU."""
    gc.collect()
    held = 0
    if device == "cuda":
        torch.cuda.empty_cache()
        held = torch.cuda.memory_reserved()
    return sum(type(thing) is Buffer for thing in gc.get_objects()), threading.active_count(), held


@pytest.mark.parametrize("rung", [0, 6])
def test_memory_is_flat_over_ten_engines(device: str, rung: int) -> None:
    seen = []
    for _ in range(10):
        with build(rung, sizes(16), device=device) as engine:
            assert play(engine, ASKS).outcomes == expected(ASKS, 16)
        del engine
        seen.append(in_use(device))
    assert len(set(seen[1:])) == 1, "buffers, threads, bytes after each engine"
    assert seen[-1][0] <= seen[0][0]
