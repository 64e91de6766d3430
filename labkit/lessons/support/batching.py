"""The small runs of lesson 01: static and continuous batching of the same requests, and a long prompt that arrives."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from labkit.engine.batch import Batch
from labkit.engine.slots import Slot
from labkit.entry import Engine
from labkit.lessons.support.schedules import Served, serve, taken
from labkit.sizes import Sizes

LENGTHS = (3, 9, 2, 5, 8, 2, 6, 3, 4, 2)  # new tokens of the requests in the small examples
PROMPTS = [[request + 1] for request in range(len(LENGTHS))]
ROWS = 4


def open_engine(device: str, **sizes: Any) -> Engine:
    """The synchronous engine with the toy model, and sizes of one's own."""
    chosen = replace(Sizes(max_rows=ROWS, num_blocks=512, max_model_len=2048), **sizes)
    options: Any = {"device": device, "profile": "article-8b", "sizes": chosen}
    return Engine.from_pretrained("toy", switches="default_stream", **options)


def in_waves(device: str) -> Served:
    """Static batching on this engine: four requests enter, and the next four once all of them have ended."""
    with open_engine(device) as engine:
        return serve(engine, PROMPTS, LENGTHS, lambda running, waiting, rows: 0 if running else min(rows, waiting))


def at_once(device: str) -> Served:
    """The same requests, all handed to the engine's own scheduler."""
    with open_engine(device) as engine:
        requests = [engine.submit(p, max_new_tokens=n) for p, n in zip(PROMPTS, LENGTHS, strict=True)]
        while engine.busy:
            engine.step()
        return taken(engine, requests)


def long_prompt_arrives(device: str, token_budget: int, prompt_tokens: int = 960) -> Served:
    """Seven requests decode; after four steps a long prompt arrives."""
    with open_engine(device, max_rows=8, token_budget=token_budget) as engine:
        requests = [engine.submit([request + 1], max_new_tokens=24) for request in range(7)]
        for _ in range(4):
            engine.step()
        requests.append(engine.submit([place % 251 for place in range(prompt_tokens)], max_new_tokens=2))
        while engine.busy:
            engine.step()
        return taken(engine, requests)


# -- what a step's buffers hold ----------------------------------------------------------------------------------------

PACKED = ("positions", "cu_seqlens_q", "output_index")


class PackedSteps:
    """An observer that keeps, for each step, starts and counts of its rows and the engine's own arrays."""

    def __init__(self) -> None:
        self.steps: list[SimpleNamespace] = []

    def filled(self, slot: Slot, batch: Batch) -> None:
        ends = (batch.tokens, batch.rows + 1, batch.rows)
        arrays = {name: getattr(slot.host, name)[:end].tolist() for name, end in zip(PACKED, ends, strict=True)}
        self.steps.append(SimpleNamespace(starts=list(batch.starts), counts=list(batch.counts), **arrays))


def packed_steps(device: str) -> list[SimpleNamespace]:
    """Steps of a real engine in which requests decode while prompts come in, some of them in chunks."""
    watcher, sizes = PackedSteps(), Sizes(max_rows=4, token_budget=12, num_blocks=64, max_model_len=64)
    with Engine.from_pretrained("toy", switches=0, device=device, sizes=sizes, observers=[watcher]) as engine:
        engine.generate([[1, 2, 3], [4] * 20, [5], [6] * 7, [7] * 9], max_new_tokens=4)
    return watcher.steps
