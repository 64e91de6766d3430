"""Engine case 13: graphs of one memory pool, and captures beside a thread that allocates."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from labkit.entry import Engine
from tests.engine.conftest import NO_GPU
from tests.engine.harness import ask, build, expected, play, prompt, sizes

ASKS = [ask(prompt(3 + i, i), 4 + 2 * i) for i in range(8)]


def replay(engine: Engine, slot: int, rows: int) -> list[int]:
    """Replay one greedy graph with whatever is in its inputs, and read its output."""
    core = engine.core
    graph = next(graph for key, graph in core.launcher.graphs.items() if (key.slot, key.rows) == (slot, rows))
    graph.replay(core.streams.compute)
    core.device.synchronize()
    return core.slots.slots[slot].outputs_dev.tensor[0, :rows].tolist()


def test_what_a_graph_left_survives_the_other_graphs_of_its_pool(device: str) -> None:
    """Every size of both slots replayed in turn: A's output is read again after B's and all smaller graphs ran."""
    with build(6, sizes(16), device=device) as engine:
        assert play(engine, ASKS).outcomes == expected(ASKS, 16)
        first = replay(engine, 0, 8)
        assert len(set(first)) > 1
        for slot in (1, 0):
            for rows in (8, 4, 2, 1):
                if (slot, rows) != (0, 8):
                    replay(engine, slot, rows)
                    kept = engine.core.slots.slots[0].outputs_dev.tensor[0, 4:8].tolist()
                    assert kept == first[4:], f"after the graph of {rows} rows in slot {slot}"
        assert play(engine, ASKS).outcomes == expected(ASKS, 16)


@contextmanager
def allocating() -> Iterator[list[int]]:
    """Another thread takes device memory of ever new sizes from the driver; the list counts the allocations."""
    counts, stop, failures = [0], threading.Event(), []

    def allocate() -> None:
        size = 1 << 21
        try:
            while not stop.is_set():
                size += 1 << 19
                torch.empty(size, dtype=torch.uint8, device="cuda")
                counts[0] += 1
                if size > 1 << 26:
                    size = 1 << 21
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        yield counts
    finally:
        stop.set()
        thread.join()
    assert not failures


@pytest.mark.gpu
@NO_GPU
def test_captures_beside_a_thread_that_allocates_cuda() -> None:
    with allocating() as counts, build(6, sizes(16), device="cuda") as engine:
        captured = counts[0]
        assert play(engine, ASKS).outcomes == expected(ASKS, 16)
    assert 0 < captured <= counts[0]
