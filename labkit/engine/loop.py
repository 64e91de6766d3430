"""Start reading here: the two loops. Their difference is the lesson.

Both run the same six phases, which are methods of ``EngineCore`` (core.py) and spans in every trace:

    plan      choose the requests and tokens of the next step             host only
    fill      write the step's inputs into the slot's host buffer         host only
    upload    enqueue the copy to the device                              H2D stream
    compute   enqueue carry-over, forward pass and sampling               compute stream
    download  enqueue the copy of the new tokens to the host              D2H stream
    settle    wait for the download, hand the tokens to their requests    the host's only wait

A loop is a generator: each ``next`` runs until the tokens of one more step are known and yields them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from labkit.engine.request import TokenEvent

if TYPE_CHECKING:
    from labkit.engine.core import EngineCore


def run_sync(engine: EngineCore) -> Iterator[list[TokenEvent]]:
    """Host and GPU take turns: a step is settled before the next one is planned."""
    while (batch := engine.plan()) is not None:
        slot = engine.slots.next()
        engine.fill(slot, batch)
        engine.upload(slot, batch)
        engine.compute(slot, batch)
        engine.download(slot, batch)
        yield engine.settle(slot, batch)


def run_async(engine: EngineCore) -> Iterator[list[TokenEvent]]:
    """One step ahead: step N+1 is planned and enqueued while the GPU runs step N, and only then is N settled.

    The cold start is the first turn, which has nothing to settle; the drain is the last, which has nothing to plan.
    """
    running = None
    while True:
        batch = engine.plan()
        if batch is not None:
            slot = engine.slots.next()
            engine.fill(slot, batch)
            engine.upload(slot, batch)
            engine.compute(slot, batch)
            engine.download(slot, batch)
        if running is not None:
            yield engine.settle(*running)
        elif batch is None:
            return
        running = (slot, batch) if batch is not None else None
