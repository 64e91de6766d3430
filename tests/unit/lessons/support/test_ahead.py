"""A loop one step ahead is recognised by what it enqueues before it waits; each slip has its sentence."""

from __future__ import annotations

import pytest

from labkit.engine.loop import run_async, run_sync
from labkit.lessons.support.ahead import idle_ms, judge_look_ahead


def enqueue(engine, batch):
    slot = engine.slots.next()
    engine.fill(slot, batch)
    engine.upload(slot, batch)
    engine.compute(slot, batch)
    engine.download(slot, batch)
    return slot, batch


def without_a_drain(engine):
    running = None
    while (batch := engine.plan()) is not None:
        new = enqueue(engine, batch)
        if running:
            yield engine.settle(*running)
        running = new


def ends_at_the_first_none(engine):
    yield from without_a_drain_but_the_last(engine)


def without_a_drain_but_the_last(engine):
    running = None
    while (batch := engine.plan()) is not None:
        new = enqueue(engine, batch)
        if running:
            yield engine.settle(*running)
        running = new
    yield engine.settle(*running)


def plans_and_then_waits(engine):
    running = None
    while True:
        batch = engine.plan()
        if running:
            yield engine.settle(*running)
        elif batch is None:
            return
        running = enqueue(engine, batch) if batch is not None else None


def two_steps_ahead(engine):
    flying = []
    while True:
        batch = engine.plan()
        if batch is not None:
            flying.append(enqueue(engine, batch))
        if len(flying) > 2 or (batch is None and flying):
            yield engine.settle(*flying.pop(0))
        elif batch is None:
            return


def settles_the_new_step(engine):
    while (batch := engine.plan()) is not None:
        yield engine.settle(*enqueue(engine, batch))


def settles_twice(engine):
    running = None
    while True:
        batch = engine.plan()
        new = enqueue(engine, batch) if batch is not None else None
        if running:
            yield engine.settle(*running)
        running = new or running


@pytest.mark.parametrize(
    ("loop", "says"),
    [
        (run_sync, "host and GPU take turns"),
        (settles_the_new_step, "host and GPU take turns"),
        (without_a_drain, "The drain is missing"),
        (ends_at_the_first_none, "the 2 that waited could have had their rows"),
        (plans_and_then_waits, "the GPU has nothing to do"),
        (two_steps_ahead, "two steps ahead, with two slots"),
        (settles_twice, "through settle twice"),
        (lambda engine: None, "has to be a generator"),
    ],
)
def test_each_slip_has_its_sentence(loop, says) -> None:
    result = judge_look_ahead(loop, "virtual")
    assert not result.passed
    assert says in result.says
    assert result.expected


def test_the_engines_loop_passes_and_idles_less_than_the_synchronous_one() -> None:
    assert judge_look_ahead(run_async, "virtual").passed
    assert idle_ms(run_async, "virtual") < idle_ms(run_sync, "virtual")
