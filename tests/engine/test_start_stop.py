"""Engine cases 1 and 2: starting, stopping, and starting again."""

from __future__ import annotations

import pytest

from labkit.engine.sampling import SamplingParams
from labkit.errors import EngineClosed
from tests.engine.harness import ask, build, check, expected, play, prompt, sizes

TWO_SECONDS = 2_000_000_000


def test_a_request_two_seconds_after_the_start(block_size: int, right_rung: int) -> None:
    asks = [ask(prompt(5), 6, arrival_ns=TWO_SECONDS)]
    with build(right_rung, sizes(block_size)) as engine:
        assert engine.step() == []
        played = play(engine, asks)
        assert engine.device.now_ns() > TWO_SECONDS
    assert played.outcomes == expected(asks, block_size)


def test_requests_with_idle_time_between_them(block_size: int) -> None:
    check([ask(prompt(3 + i, i), 4, arrival_ns=i * TWO_SECONDS) for i in range(3)], sizes(block_size))


def test_no_request_at_all(right_rung: int) -> None:
    with build(right_rung, sizes(4)) as engine:
        assert engine.step() == []
        assert not engine.busy
        assert engine.generate([]).tokens == []
    with build(right_rung, sizes(4)):
        pass


def test_a_second_generate_starts_clean(block_size: int, right_rung: int) -> None:
    first = [ask(prompt(3 + 5 * i, i), 9) for i in range(5)]
    second = [ask(prompt(6 + 2 * i, 40 + i), 7) for i in range(3)]
    with build(right_rung, sizes(block_size)) as engine:
        runs = [
            engine.generate([one.prompt for one in asks], [one.params for one in asks])
            for asks in (first, second, first)
        ]
        assert [request.id for request in engine.core.requests.values()] == list(range(13))
        assert engine.core.scheduler.pool.free == engine.sizes.num_blocks
    for asks, run in zip((first, second, first), runs, strict=True):
        assert [tuple(tokens) for tokens in run.tokens] == [outcome.tokens for outcome in expected(asks, block_size)]
        assert run.stats["overruns"] == 0
    assert runs[0].stats == runs[2].stats


def test_graphs_are_captured_once_and_serve_every_run(block_size: int) -> None:
    with build(6, sizes(block_size)) as engine:
        graphs = dict(engine.core.launcher.graphs)
        assert {key.rows for key in graphs} == set(engine.sizes.padded_rows)
        for salt in range(2):
            engine.generate([prompt(4, salt), prompt(7, salt)], SamplingParams(max_new_tokens=5))
        assert engine.core.launcher.graphs == graphs


def test_closing_twice_and_using_a_closed_engine(right_rung: int) -> None:
    with build(right_rung, sizes(4)) as engine:
        request = engine.submit(prompt(4), max_new_tokens=50)
        engine.step()
    engine.close()
    assert request.finish_reason == "cancelled"
    assert not engine.busy
    for call in (engine.step, lambda: engine.submit([1]), lambda: engine.generate([[1]]), lambda: engine.stream([1])):
        with pytest.raises(EngineClosed, match="closed"):
            call()


def test_an_exception_in_the_block_closes_the_engine_and_comes_through(right_rung: int) -> None:
    engine = build(right_rung, sizes(4))

    def use() -> None:
        with engine:
            engine.submit(prompt(4), max_new_tokens=50)
            engine.step()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()
    assert engine.core.closed
    assert engine.core.requests[0].finish_reason == "cancelled"
