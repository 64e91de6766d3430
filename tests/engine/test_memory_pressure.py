"""Engine cases 14 to 16: a pool too small for the load, and who owns which block when."""

from __future__ import annotations

import random

import pytest

from labkit.engine.request import Request
from labkit.engine.scheduler import Scheduler
from labkit.entry import Engine
from labkit.errors import LabkitError, RequestTooLarge
from tests.engine.harness import ASYNC, RIGHT, SYNC, ask, build, check, expected, play, prompt, run_out, sizes


class Victims:
    """Notes which requests were preempted, and whether their last token was still on the device."""

    def __init__(self) -> None:
        self.pending: list[int] = []

    def watch(self, engine: Engine) -> None:
        scheduler = engine.core.scheduler

        def preempt(request: Request) -> None:
            self.pending.append(request.pending)
            Scheduler.preempt(scheduler, request)

        scheduler.preempt = preempt  # type: ignore[method-assign]


@pytest.mark.parametrize("blocks", [6, 7, 9])
def test_preemption_by_recompute(block_size: int, blocks: int, device: str) -> None:
    """Case 14: tokens equal those of a run with room to spare, victims in flight included."""
    asks = [ask(prompt(block_size - 1 - i % 3, i), 2 * block_size + 3) for i in range(4)]
    for rung in RIGHT:
        victims = Victims()
        with build(rung, sizes(block_size, max_rows=4, num_blocks=blocks), device=device) as engine:
            victims.watch(engine)
            played = play(engine, asks)
        assert played.outcomes == expected(asks, block_size)
        assert len(victims.pending) == played.preemptions > 0
        assert any(victims.pending) == (rung in ASYNC), "in flight where the loop is asynchronous"


@pytest.mark.parametrize("seed", range(3))
def test_preemption_of_chunked_prompts_with_ends(block_size: int, seed: int) -> None:
    draw = random.Random(seed)
    asks = [
        ask(
            prompt(draw.randint(1, 3 * block_size), i),
            draw.randint(1, 2 * block_size),
            at_step=draw.randint(0, 10),
            eos_token_ids=tuple(range(6)),
        )
        for i in range(10)
    ]
    played = check(asks, sizes(block_size, max_rows=5, token_budget=block_size + 3, num_blocks=5))
    assert all(each.preemptions for each in played.values())


def test_the_last_to_come_is_the_first_to_go(block_size: int) -> None:
    asks = [ask(prompt(block_size, i), 2 * block_size) for i in range(3)]
    played = check(asks, sizes(block_size, max_rows=3, num_blocks=5))
    for each in played.values():
        assert each.requests[0].preemptions == 0
        assert each.requests[2].preemptions > 0


def test_a_row_that_waits_for_a_held_block_is_skipped_and_resumed(block_size: int) -> None:
    """Asynchronously a victim's blocks come free one step later: its evictor sits that step out."""
    asks = [ask(prompt(block_size), 3), ask(prompt(1, 1), 3), ask(prompt(2 * block_size, 2), 3)]
    played = check(asks, sizes(block_size, max_rows=3, token_budget=4 * block_size, num_blocks=4))
    for rung, each in played.items():
        steps = [[batch.step for batch in each.batches if request in batch.requests] for request in each.requests]
        assert steps[0] == ([0, 1, 2] if rung in SYNC else [0, 2, 3])
        assert steps[1] == [0, 1, 2]
        assert each.requests[2].preemptions == 1


def test_one_request_that_needs_the_whole_pool(block_size: int) -> None:
    asks = [ask(prompt(3, i), 3 * block_size - 2) for i in range(3)]
    played = check(asks, sizes(block_size, num_blocks=3))
    assert all(each.preemptions for each in played.values())


def test_a_request_larger_than_the_pool_is_refused(block_size: int, right_rung: int) -> None:
    """Case 15: with the sizes in the message, and the others go on."""
    asks = [ask(prompt(5, i), 10) for i in range(3)]
    with build(right_rung, sizes(block_size, num_blocks=4)) as engine:
        requests = [engine.submit(one.prompt, one.params) for one in asks]
        engine.step()
        message = rf"needs 5 KV blocks of {block_size} tokens \({4 * block_size + 1} tokens\), the pool has 4"
        with pytest.raises(RequestTooLarge, match=message):
            engine.submit(prompt(7), max_new_tokens=4 * block_size - 5)
        just_fits = engine.submit(prompt(7), max_new_tokens=4 * block_size - 6)
        run_out(engine)
        assert [tuple(request.output) for request in requests] == [one.tokens for one in expected(asks, block_size)]
        assert len(just_fits.output) == 4 * block_size - 6


def test_one_prompt_too_large_submits_none_of_them(block_size: int, right_rung: int) -> None:
    with build(right_rung, sizes(block_size, num_blocks=4)) as engine:
        with pytest.raises(RequestTooLarge):
            engine.generate([prompt(4), prompt(5 * block_size)], max_new_tokens=4)
        assert not engine.busy
        assert len(engine.generate([prompt(4)], max_new_tokens=4).tokens[0]) == 4


def test_freed_blocks_are_held_while_a_step_is_in_flight(block_size: int) -> None:
    """Case 16; the sums and the hand-outs are checked in every case by ``Watch``."""
    seen = {}
    for rung in RIGHT:
        seen[rung] = 0
        with build(rung, sizes(block_size)) as engine:
            pool = engine.core.scheduler.pool
            request = engine.submit(prompt(block_size), max_new_tokens=50)
            for _ in range(3):
                engine.step()
            engine.cancel(request)
            seen[rung] = pool.held
            assert pool.held + pool.free == pool.num_blocks
            run_out(engine)
            assert pool.free == pool.num_blocks
    assert seen == {0: 0, 2: 0, 5: 2, 6: 2}


def test_a_block_cannot_be_freed_twice() -> None:
    with build(5, sizes(4)) as engine:
        pool = engine.core.scheduler.pool
        block = pool.allocate()
        pool.release([block], None)
        with pytest.raises(LabkitError, match="freed twice"):
            pool.release([block], None)
