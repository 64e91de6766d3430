"""Engine cases 4 to 7: requests come and end at any step."""

from __future__ import annotations

import random

import pytest

from labkit.model.toy import ToyModel
from tests.engine.harness import ASYNC, CONTEXT, SYNC, ask, check, prompt, sizes
from tests.engine.reference import greedy

LENGTH = 12
PROMPT = prompt(5)
GREEDY = greedy(PROMPT, LENGTH)


def first_at(index: int, tokens: list[int] = GREEDY) -> int:
    """The token at this place, which must not occur before it, so that as end of sequence it ends there."""
    assert tokens[index] not in tokens[:index]
    return tokens[index]


@pytest.mark.parametrize("seed", range(3))
def test_arrivals_at_random_steps_and_in_bursts(block_size: int, seed: int) -> None:
    """Case 4: many more requests than rows, slots or streams."""
    draw = random.Random(seed)
    asks = []
    for burst in range(8):
        step = draw.randrange(30)
        asks += [
            ask(prompt(draw.randint(1, 20), 10 * burst + one), draw.randint(1, 12), at_step=step)
            for one in range(draw.choice((1, 1, 2, 5)))
        ]
    played = check(asks, sizes(block_size, max_rows=6, token_budget=24))
    assert all(max(batch.rows for batch in each.batches) >= 3 for each in played.values())


def test_more_requests_than_rows(block_size: int) -> None:
    """Concurrency above any slot or row count."""
    played = check([ask(prompt(2 + i % 5, i), 5) for i in range(30)], sizes(block_size, max_rows=6))
    assert {max(batch.rows for batch in each.batches) for each in played.values()} == {6}


def test_arrivals_by_the_clock(block_size: int) -> None:
    asks = [ask(prompt(3 + i % 4, i), 6, arrival_ns=(i * 7 % 5) * 30_000_000) for i in range(12)]
    check(asks, sizes(block_size, max_rows=4))


@pytest.mark.parametrize("index", [0, 2, 3, 10, 11], ids=["first", "before-edge", "at-edge", "later", "last-allowed"])
def test_end_of_sequence(block_size: int, index: int) -> None:
    """Case 5. With 5 prompt tokens, token 3 is at place 8: a block edge of 4."""
    asks = [ask(PROMPT, LENGTH, eos_token_ids=(first_at(index),)), ask(prompt(9, 1), LENGTH)]
    played = check(asks, sizes(block_size))
    for each in played.values():
        assert each.requests[0].finish_reason == "eos"
        assert len(each.requests[0].output) == index + 1
        assert each.requests[1].finish_reason == "length"


def test_end_of_sequence_at_the_edge_of_a_large_block(block_size: int) -> None:
    for length in (block_size - 2, block_size - 1, block_size, block_size + 1):
        tokens = greedy(prompt(length, 3), 4)
        check([ask(prompt(length, 3), 6, eos_token_ids=(first_at(1, tokens),))], sizes(block_size))


def test_several_end_of_sequence_ids_from_the_model(block_size: int) -> None:
    model = ToyModel(max_model_len=CONTEXT, eos_token_ids=(first_at(7), first_at(4)))
    asks = [ask(PROMPT, LENGTH), ask(PROMPT, LENGTH, eos_token_ids=()), ask(PROMPT, 5), ask(prompt(20, 2), LENGTH)]
    played = check(asks, sizes(block_size), model)
    for each in played.values():
        assert [len(request.output) for request in each.requests[:3]] == [5, LENGTH, 5]
        assert [request.finish_reason for request in each.requests[:3]] == ["eos", "length", "eos"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_costs_exactly_that_many_rows(block_size: int, limit: int) -> None:
    """Case 6: a length limit is known beforehand, so nothing is computed for nothing."""
    asks = [ask(prompt(3 + i, i), limit) for i in range(5)]
    for each in check(asks, sizes(block_size)).values():
        assert [len(request.output) for request in each.requests] == [limit] * 5
        assert (each.sampled_rows, each.overruns) == (5 * limit, 0)


def test_a_limit_that_just_fits_the_cache(block_size: int) -> None:
    """The last token needs no place: it is never computed."""
    blocks = 3
    for length in (1, block_size, 2 * block_size + 1):
        limit = blocks * block_size + 1 - length
        each = check([ask(prompt(length), limit)], sizes(block_size, max_rows=1, num_blocks=blocks))
        assert {len(played.requests[0].output) for played in each.values()} == {limit}


def test_a_limit_that_just_fits_the_context(block_size: int) -> None:
    check([ask(prompt(10), CONTEXT - 10), ask(prompt(CONTEXT - 1), 1)], sizes(block_size))


def test_only_an_end_of_sequence_costs_an_overrun_row(block_size: int) -> None:
    asks = [
        ask(PROMPT, LENGTH, eos_token_ids=(first_at(4),)),  # ends early: asynchronously one row too many
        ask(PROMPT, LENGTH, eos_token_ids=(first_at(LENGTH - 1),)),  # ends where its limit ends it anyway
        ask(prompt(7, 1), LENGTH),
    ]
    played = check(asks, sizes(block_size))
    assert [played[rung].overruns for rung in SYNC] == [0, 0]
    assert [played[rung].overruns for rung in ASYNC] == [1, 1]
    for each in played.values():
        assert each.sampled_rows == 5 + 2 * LENGTH + each.overruns


def test_each_step_brings_at_most_one_token_per_request(block_size: int) -> None:
    """Case 7; gaps, repeats and ends are checked in every case by ``check_events``."""
    asks = [ask(prompt(2 + i, i), 6, at_step=i) for i in range(4)]
    for each in check(asks, sizes(block_size)).values():
        assert len(each.events) == 4 * 6
        assert all(0 <= event.token < 256 for event in each.events)
