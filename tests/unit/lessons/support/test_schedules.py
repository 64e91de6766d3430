"""The scheduler by itself: what it counts is what the engine runs, and the three policies do what their names say."""

from __future__ import annotations

import pytest

from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.lessons.support.batching import LENGTHS, PROMPTS, ROWS, in_waves, open_engine
from labkit.lessons.support.schedules import POLICIES, output_lengths, replay, serve, taken


def test_lengths_are_the_same_below_every_cap() -> None:
    free, capped = output_lengths(200, 10**6), output_lengths(200, 64)
    assert capped == [min(64, length) for length in free]
    assert min(free) >= 1
    assert 100 < sum(free) / len(free) < 160


def test_the_scheduler_alone_counts_the_steps_of_the_engine() -> None:
    with open_engine("virtual") as engine:
        requests = [engine.submit(p, max_new_tokens=n) for p, n in zip(PROMPTS, LENGTHS, strict=True)]
        while engine.busy:
            engine.step()
        served = taken(engine, requests)
    alone = replay(LENGTHS, ROWS, "continuous")
    assert (alone.steps, alone.used) == (len(served.steps), served.used)
    static = replay(LENGTHS, ROWS, "static")
    waves = in_waves("virtual")
    assert (static.steps, static.used, static.slot_use) == (len(waves.steps), waves.used, waves.slot_use)


def test_every_policy_computes_every_token_once() -> None:
    for policy in POLICIES:
        assert replay(LENGTHS, ROWS, policy).used == sum(LENGTHS)


def test_static_waits_for_a_full_batch_and_dynamic_for_a_free_engine() -> None:
    lengths, arrivals = [3, 3, 3, 3], [0, 1, 10, 11]
    assert replay(lengths, 2, "static", arrivals).waits == (2, 1, 2, 1)
    assert replay(lengths, 2, "dynamic", arrivals).waits == (1, 3, 1, 3)
    assert replay(lengths, 2, "continuous", arrivals).waits == (1, 1, 1, 1)
    assert replay(lengths, 2, "continuous", arrivals).mean_wait == 1


def test_policies_are_named() -> None:
    with pytest.raises(InvalidArgument, match="static, dynamic, continuous"):
        replay([1], 1, "greedy")


def test_serving_nobody_ends() -> None:
    with Engine.from_pretrained("toy") as engine:
        served = serve(engine, [[1]], [2], lambda running, waiting, rows: 0)
    assert served.tokens == []
    assert served.steps == ()
