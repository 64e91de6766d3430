"""Who is in the next step, with how many tokens; what happens when blocks or budget run out."""

import pytest

from labkit.engine.request import Request, State
from labkit.engine.sampling import SamplingParams
from labkit.engine.scheduler import Scheduler
from labkit.sizes import Sizes


def scheduler_of(**sizes):
    given = {"max_rows": 3, "token_budget": 8, "block_size": 4, "num_blocks": 12, "max_model_len": 32, **sizes}
    return Scheduler(Sizes(**given))


def request(number, length, limit=9, arrival_ns=0, eos=()):
    return Request(number, [1] * length, SamplingParams(max_new_tokens=limit), frozenset(eos), arrival_ns)


def submit(scheduler, *requests):
    for one in requests:
        scheduler.submit(one)


def plan(scheduler, now_ns=0):
    """The next batch as (id, start, count) per row, and the batch."""
    batch = scheduler.plan(now_ns)
    return [
        (r.id, start, count) for r, start, count in zip(batch.requests, batch.starts, batch.counts, strict=True)
    ], batch


def settle(scheduler, batch, token=7):
    return scheduler.settle(batch, [token] * batch.rows, None)


def test_first_come_first_served_under_the_token_budget():
    scheduler = scheduler_of()
    submit(scheduler, request(0, 3), request(1, 4), request(2, 6))
    rows, batch = plan(scheduler)
    assert rows == [(2, 0, 1), (0, 0, 3), (1, 0, 4)], "rows of one token come first in the batch"
    assert batch.samples == [False, True, True]
    settle(scheduler, batch)
    rows, batch = plan(scheduler)
    assert rows == [(0, 3, 1), (1, 4, 1), (2, 1, 5)]
    assert batch.samples == [True] * 3


def test_rows_are_limited_and_a_free_seat_is_taken_in_the_next_step():
    scheduler = scheduler_of(max_rows=2)
    submit(scheduler, request(0, 1, limit=1), request(1, 1), request(2, 1))
    rows, batch = plan(scheduler)
    assert [row[0] for row in rows] == [0, 1]
    (end, _) = settle(scheduler, batch)
    assert (end.request_id, end.finish_reason) == (0, "length")
    assert [row[0] for row in plan(scheduler)[0]] == [1, 2]


def test_arrival_times_order_the_line_and_hold_requests_back():
    scheduler = scheduler_of()
    submit(scheduler, request(0, 1, arrival_ns=50), request(1, 1, arrival_ns=10), request(2, 1, arrival_ns=10))
    assert [one.id for one in scheduler.waiting] == [1, 2, 0]
    assert [row[0] for row in plan(scheduler, now_ns=49)[0]] == [1, 2]
    assert [one.id for one in scheduler.waiting] == [0]


def test_a_step_ahead_the_sampled_token_is_pending_and_carried():
    scheduler = scheduler_of()
    submit(scheduler, request(0, 2), request(1, 3))
    first = plan(scheduler)[1]
    rows, second = plan(scheduler)
    assert rows == [(0, 2, 1), (1, 3, 1)]
    assert (first.carries, second.carries) == ([-1, -1], [0, 1])
    assert scheduler.in_flight == 2
    settle(scheduler, first)
    assert [one.pending for one in scheduler.running] == [1, 1]


def test_a_request_at_its_limit_is_in_no_further_step():
    scheduler = scheduler_of()
    submit(scheduler, request(0, 2, limit=1))
    batch = plan(scheduler)[1]
    assert scheduler.plan(0) is None
    settle(scheduler, batch)
    assert not scheduler.running
    assert scheduler.overruns == 0


def test_an_unforeseen_end_costs_one_overrun_row():
    scheduler = scheduler_of()
    submit(scheduler, request(0, 2, eos=[7]))
    first, second = plan(scheduler)[1], plan(scheduler)[1]
    (event,) = settle(scheduler, first)
    assert event.finish_reason == "eos"
    assert scheduler.pool.held > 0
    assert settle(scheduler, second) == []
    assert scheduler.overruns == 1
    assert scheduler.pool.free == 12


def test_a_request_enters_only_when_its_whole_prompt_fits():
    scheduler = scheduler_of(num_blocks=3, token_budget=32)
    submit(scheduler, request(0, 8), request(1, 5), request(2, 1))
    assert [row[0] for row in plan(scheduler)[0]] == [0], "nobody overtakes the one that does not fit"


def test_the_last_to_come_gives_its_blocks_up():
    scheduler = scheduler_of(num_blocks=4, token_budget=32)
    submit(scheduler, request(0, 8), request(1, 8))
    settle(scheduler, plan(scheduler)[1])
    first, second = scheduler.running
    assert plan(scheduler)[0] == [(0, 8, 1)]
    assert (second.state, second.computed, second.blocks, second.preemptions) == (State.WAITING, 0, [], 1)
    assert scheduler.waiting[0] is second
    assert len(first.blocks) == 3
    assert scheduler.preemptions == 1


def test_blocks_of_a_victim_in_flight_are_waited_for():
    scheduler = scheduler_of(num_blocks=4, token_budget=32)
    submit(scheduler, request(0, 8), request(1, 8))
    batch = plan(scheduler)[1]
    assert scheduler.plan(0) is None, "preempted, but its blocks are held"
    assert (scheduler.pool.held, scheduler.preemptions) == (2, 1)
    assert scheduler.plan(0) is None
    assert scheduler.preemptions == 1, "no second victim while blocks are on their way"
    settle(scheduler, batch)
    assert plan(scheduler)[0] == [(0, 8, 1)]


def test_one_victim_is_enough_for_two_that_need_a_block():
    scheduler = scheduler_of(max_rows=4, num_blocks=8, token_budget=32)
    submit(scheduler, *(request(number, 8) for number in range(4)))
    batch = plan(scheduler)[1]
    assert scheduler.plan(0) is None
    assert scheduler.preemptions == 1
    settle(scheduler, batch)
    assert [row[0] for row in plan(scheduler)[0]] == [0, 1]


def test_nobody_is_admitted_whose_last_token_is_still_on_the_device():
    scheduler = scheduler_of()
    one = request(0, 3)
    submit(scheduler, one, request(1, 3))
    one.pending = 1
    assert scheduler.plan(0) is None
    one.pending = 0
    assert [row[0] for row in plan(scheduler)[0]] == [0, 1]


def test_a_preempted_request_is_computed_again_from_its_known_tokens():
    scheduler = scheduler_of(num_blocks=6, token_budget=32)
    one = request(0, 6)
    submit(scheduler, one)
    settle(scheduler, plan(scheduler)[1], token=7)
    scheduler.preempt(one)
    rows, batch = plan(scheduler)
    assert rows == [(0, 0, 7)]
    assert batch.samples == [True]
    assert batch.carries == [-1]


def test_with_less_budget_than_rows_the_longest_unserved_come_first():
    scheduler = scheduler_of()
    submit(scheduler, *(request(number, 1) for number in range(3)))
    settle(scheduler, plan(scheduler)[1])
    scheduler.sizes = Sizes(max_rows=3, token_budget=2, block_size=4, num_blocks=12, max_model_len=32)
    served = []
    for _ in range(3):
        rows, batch = plan(scheduler)
        served.append([row[0] for row in rows])
        settle(scheduler, batch)
    assert served == [[0, 1], [2, 0], [1, 0]]


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_finish_wherever_it_stands(state):
    scheduler = scheduler_of()
    one, error = request(0, 5), RuntimeError("why")
    submit(scheduler, one)
    if state == "running":
        settle(scheduler, plan(scheduler)[1])
    scheduler.finish(one, "error", error)
    assert (one.finish_reason, one.error, one.finished) == ("error", error, True)
    assert not scheduler.waiting and not scheduler.running
    assert scheduler.pool.free == 12


def test_a_freed_seat_points_at_the_trash_block():
    scheduler = scheduler_of()
    one = request(0, 5)
    submit(scheduler, one)
    batch = plan(scheduler)[1]
    seat = one.seat
    assert scheduler.block_table[seat, :2].tolist() == one.blocks
    settle(scheduler, batch)
    scheduler.finish(one, "cancelled")
    assert (scheduler.block_table[seat] == 12).all()
    assert one.seat == -1


def test_restart_puts_everybody_back_in_line():
    scheduler = scheduler_of()
    requests = [request(number, 5, arrival_ns=number) for number in range(4)]
    submit(scheduler, *requests)
    settle(scheduler, plan(scheduler, now_ns=9)[1])
    plan(scheduler, now_ns=9)  # in flight
    scheduler.restart(requests)
    assert [one.id for one in scheduler.waiting] == [0, 1, 2, 3]
    assert (scheduler.in_flight, scheduler.pool.free) == (0, 12)
    assert all((one.pending, one.computed, one.blocks) == (0, 0, []) for one in requests)
    assert (scheduler.block_table == 12).all()
    rows, batch = plan(scheduler, now_ns=9)
    assert [row[:2] for row in rows if row[0] == 0] == [(0, 0)]
    assert len(requests[0].tokens) == 6, "a token that the host knows is not computed again"
