"""Engine cases 17 and 18: a request can be cancelled wherever it stands, and nobody else notices."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labkit.engine.request import Request, State
from labkit.errors import Cancelled, InvalidArgument
from tests.engine.harness import ASYNC, ask, build, check_events, expected, prompt, run_out, sizes

LONG = 30
OTHERS = [ask(prompt(3, 1), 12), ask(prompt(6, 2), 15)]


def waiting(request: Request) -> bool:
    return request.state is State.WAITING


def prefilling(request: Request) -> bool:
    return request.state is State.RUNNING and 0 < request.computed < len(request.prompt)


def decoding(request: Request) -> bool:
    return len(request.output) >= 4


def just_finished(request: Request) -> bool:
    return request.finished


@pytest.mark.parametrize("where", [waiting, prefilling, decoding, just_finished])
def test_cancel(block_size: int, right_rung: int, where: Callable[[Request], bool]) -> None:
    mine = ask(prompt(40, 3), 9 if where is just_finished else LONG)
    capacities = sizes(block_size, max_rows=2 if where is waiting else 3, token_budget=10)
    with build(right_rung, capacities) as engine:
        others = [engine.submit(one.prompt, one.params) for one in OTHERS]
        request = engine.submit(mine.prompt, mine.params)
        events = []
        while not where(request):
            events += engine.step()
        if where is decoding:
            assert request.pending == (right_rung in ASYNC), "in flight where the loop is asynchronous"
        before = list(request.output)
        assert engine.cancel(request) is (where is not just_finished)
        assert engine.cancel(request.id) is False
        events += run_out(engine)
        pool = engine.core.scheduler.pool
        assert pool.free == pool.num_blocks
    check_events([*others, request], events)
    assert request.output == before
    assert request.finish_reason == ("length" if where is just_finished else "cancelled")
    assert tuple(before) == expected([mine], block_size)[0].tokens[: len(before)]
    assert [tuple(other.output) for other in others] == [one.tokens for one in expected(OTHERS, block_size)]


def test_cancel_an_unknown_id(right_rung: int) -> None:
    with build(right_rung, sizes(4)) as engine:
        engine.submit(prompt(3), max_new_tokens=2)
        for unknown in (1, -1, 10**9):
            with pytest.raises(InvalidArgument, match=f"request_id={unknown}"):
                engine.cancel(unknown)


def test_a_request_of_another_engine_is_not_cancelled_here(right_rung: int) -> None:
    with build(right_rung, sizes(4)) as engine, build(right_rung, sizes(4)) as other:
        mine, foreign = engine.submit(prompt(3)), other.submit(prompt(3))
        with pytest.raises(InvalidArgument, match="submitted to this engine"):
            engine.cancel(foreign)
        assert not mine.finished


def test_the_consumers_stream_ends(block_size: int, right_rung: int) -> None:
    with build(right_rung, sizes(block_size)) as engine:
        stream = engine.stream(prompt(5), max_new_tokens=LONG)
        seen = [next(stream).token for _ in range(3)]
        assert engine.cancel(0)
        with pytest.raises(Cancelled, match=r"request 0 was cancelled after 3 tokens"):
            next(stream)
        assert next(stream, None) is None
    assert tuple(seen) == expected([ask(prompt(5), LONG)], block_size)[0].tokens[:3]


def test_cancel_while_preempted(block_size: int, right_rung: int) -> None:
    asks = [ask(prompt(block_size, i), 2 * block_size) for i in range(2)]
    with build(right_rung, sizes(block_size, max_rows=2, num_blocks=4)) as engine:
        first, second = (engine.submit(one.prompt, one.params) for one in asks)
        while not second.preemptions:
            engine.step()
        assert engine.cancel(second)
        run_out(engine)
        assert engine.core.scheduler.pool.free == 4
    assert tuple(first.output) == expected(asks, block_size)[0].tokens


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_cancel_everything_while_others_wait(block_size: int, right_rung: int, steps: int) -> None:
    """Case 18: the waiting ones are admitted."""
    asks = [ask(prompt(2 * block_size, i), block_size + 6) for i in range(6)]
    with build(right_rung, sizes(block_size, max_rows=3, num_blocks=9)) as engine:
        requests = [engine.submit(one.prompt, one.params) for one in asks]
        for _ in range(steps):
            engine.step()
        running = list(engine.core.scheduler.running)
        assert running
        for request in running:
            engine.cancel(request)
        run_out(engine)
    wanted = expected(asks, block_size)
    for request, outcome in zip(requests, wanted, strict=True):
        if request in running:
            assert request.finish_reason == "cancelled"
        else:
            assert tuple(request.output) == outcome.tokens


def test_cancel_every_single_one(right_rung: int) -> None:
    with build(right_rung, sizes(4, max_rows=3)) as engine:
        requests = [engine.submit(prompt(5, i), max_new_tokens=20) for i in range(6)]
        for _ in range(3):
            engine.step()
        events = []
        for request in requests:
            engine.cancel(request)
        events += run_out(engine)
        assert sorted(event.request_id for event in events) == list(range(6))
        assert {event.finish_reason for event in events} == {"cancelled"}
        assert len(engine.generate([prompt(4)], max_new_tokens=3).tokens[0]) == 3
