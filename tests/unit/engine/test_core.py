"""The engine core without a front door: phases, life cycle, checks. The engine cases are in tests/engine."""

import pytest

from labkit.device.virtual import VirtualDevice
from labkit.engine.assemble import assemble
from labkit.engine.sampling import SamplingParams
from labkit.errors import EngineClosed, InvalidArgument, RequestTooLarge
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from labkit.switches import ladder

SIZES = Sizes(max_rows=2, token_budget=8, block_size=4, num_blocks=4, max_model_len=32)
PARAMS = SamplingParams(max_new_tokens=3)


@pytest.fixture
def core():
    return assemble(ladder("carry_over"), SIZES, VirtualDevice(), ToyModel())


def test_a_step_returns_events_and_then_nothing(core):
    core.submit([1, 2, 3], PARAMS)
    steps = []
    while core.busy:
        steps.append([(event.index, event.finish_reason) for event in core.step()])
    assert steps[:3] == [[(0, "")], [(1, "")], [(2, "length")]]
    assert core.step() == []


def test_ids_count_up_and_withdrawn_requests_are_forgotten(core):
    first, second = core.submit([1], PARAMS), core.submit([2], PARAMS)
    core.withdraw(first)
    assert (first.id, second.id) == (0, 1)
    assert list(core.requests) == [1]
    assert list(core.scheduler.waiting) == [second]


def test_a_request_arrives_now_at_the_earliest(core):
    core.device.sleep_until(500)
    assert core.submit([1], PARAMS).arrival_ns == 500
    assert core.submit([1], PARAMS, arrival_ns=900).arrival_ns == 900


def test_end_of_sequence_ids_are_the_requests_or_the_models():
    core = assemble(ladder(0), SIZES, VirtualDevice(), ToyModel(eos_token_ids=(4, 5)))
    assert core.submit([1], PARAMS).eos_token_ids == {4, 5}
    assert core.submit([1], SamplingParams(max_new_tokens=3, eos_token_ids=())).eos_token_ids == set()
    assert core.submit([1], SamplingParams(max_new_tokens=3, eos_token_ids=(9,))).eos_token_ids == {9}


@pytest.mark.parametrize(
    ("prompt", "limit", "error", "message"),
    [
        ([], 1, InvalidArgument, "at least one token"),
        ([1] * 32, 1, InvalidArgument, "prompt='32 tokens': at most 31: max_model_len is 32"),
        ([1] * 30, 3, InvalidArgument, "max_new_tokens=3: 1 to 2: the prompt has 30 tokens and max_model_len is 32"),
        ([1] * 10, 8, RequestTooLarge, r"needs 5 KV blocks of 4 tokens \(17 tokens\), the pool has 4"),
    ],
)
def test_refused_requests_leave_no_trace(core, prompt, limit, error, message):
    with pytest.raises(error, match=message):
        core.submit(prompt, SamplingParams(max_new_tokens=limit))
    assert core.requests == {}
    assert not core.busy


def test_the_largest_request_that_fits(core):
    assert core.submit([1] * 10, SamplingParams(max_new_tokens=7)).limit == 17


def test_cancel_brings_one_event_without_a_token(core):
    request = core.submit([1], PARAMS)
    assert core.cancel(request.id)
    assert not core.cancel(request.id)
    (event,) = core.step()
    assert (event.request_id, event.token, event.index, event.finish_reason) == (0, None, 0, "cancelled")
    assert not core.busy


def test_close_cancels_frees_and_refuses(core):
    request = core.submit([1], PARAMS)
    core.step()
    core.close()
    core.close()
    assert request.finish_reason == "cancelled"
    assert core.scheduler.pool.used == 0
    with pytest.raises(EngineClosed, match="the engine is closed; build a new one"):
        core.submit([1], PARAMS)
    with pytest.raises(EngineClosed):
        core.step()
