"""The records of a run's steps say what the engine did: checked against its tokens, which the log does not make."""

import pytest

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import EngineFault
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from labkit.steplog import StepRecord

PARAMS = SamplingParams(max_new_tokens=6, eos_token_ids=())
PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10, 11, 12], [13]]
SMALL = Sizes(max_rows=3, token_budget=6, block_size=4, num_blocks=12, max_model_len=16)


def run(rung=5, sizes=SMALL, prompts=PROMPTS, params=PARAMS):
    with Engine(ToyModel(), switches=rung, sizes=sizes, unsafe=True) as engine:
        return engine.generate(prompts, params)


@pytest.mark.parametrize("rung", [0, 2, 5, 6])
def test_the_sampled_tokens_of_a_request_s_rows_are_its_output(rung):
    result = run(rung)
    for number, tokens in enumerate(result.tokens):
        rows = [row for step in result.steps for row in step.rows if row.request == number and row.samples]
        assert [row.sampled for row in rows][: len(tokens)] == tokens


@pytest.mark.parametrize("rung", [0, 5])
def test_every_token_is_computed_once_and_in_order(rung):
    result = run(rung)
    for number, (prompt, tokens) in enumerate(zip(result.prompts, result.tokens, strict=True)):
        rows = [row for step in result.steps for row in step.rows if row.request == number]
        known = len(prompt) + len(tokens) - 1
        positions = [row.start + offset for row in rows for offset in range(row.count)]
        assert positions[:known] == list(range(known))


def test_a_prompt_above_the_budget_is_a_chain_of_chunks_and_only_the_last_one_samples():
    rows = [row for step in run().steps for row in step.rows if row.request == 1 and row.start < 9]
    assert [row.samples for row in rows] == [False] * (len(rows) - 1) + [True]
    assert sum(row.count for row in rows) == 9
    assert len(rows) > 1
    assert all(step.tokens <= SMALL.token_budget for step in run().steps)


@pytest.mark.parametrize("rung", [0, 2])
def test_a_synchronous_engine_knows_every_token(rung):
    steps = run(rung).steps
    assert not any(row.placeholder for step in steps for row in step.rows)


def test_a_placeholder_stands_for_the_output_of_the_row_that_it_names():
    result = run(5)
    carried = 0
    for before, step in zip(result.steps, result.steps[1:], strict=False):
        for row in step.rows:
            tokens = result.prompts[row.request] + result.tokens[row.request]
            if row.placeholder:
                source = before.rows[row.carry_from]
                assert source.request == row.request
                assert source.start + source.count == row.start
                if row.start < len(tokens):
                    assert source.sampled == tokens[row.start]
                assert row.token == 0
                carried += 1
            else:
                assert row.token == tokens[row.start]
    assert carried >= 10


def test_slots_take_turns_and_decode_rows_come_first():
    steps = run(5).steps
    assert [step.slot for step in steps[:4]] == ["A", "B", "A", "B"]
    assert {step.slot for step in run(0).steps} == {"A"}
    for step in steps:
        assert all(row.count == 1 for row in step.rows[: step.decode_rows])
        assert all(row.count > 1 or row.start == 0 or not row.samples for row in step.rows[step.decode_rows :])


def test_blocks_hold_the_tokens_and_no_block_has_two_owners():
    for step in run(5).steps:
        taken = [block for _, blocks in step.owners for block in blocks] + list(step.held)
        assert len(taken) == len(set(taken))
        assert set(taken) <= set(range(step.num_blocks)) == set(range(12))
        assert all(len(row.blocks) * SMALL.block_size >= row.start + row.count for row in step.rows)
        assert all(dict(step.owners)[row.request] == row.blocks for row in step.rows)


def test_requests_that_are_not_in_a_step_keep_their_blocks():
    sizes = Sizes(max_rows=3, token_budget=2, block_size=4, num_blocks=12, max_model_len=16)
    waiting = [
        step
        for step in run(5, sizes, [[1], [2], [3]]).steps
        if {row.request for row in step.rows} < {n for n, _ in step.owners}
    ]
    assert waiting


def test_blocks_freed_under_a_step_in_flight_are_held():
    lengths = [SamplingParams(max_new_tokens=n, eos_token_ids=()) for n in (2, 6, 6)]
    short = [[1, 2, 3], [4], [5]]
    assert any(step.held for step in run(5, prompts=short, params=lengths).steps)
    assert not any(step.held for step in run(0, prompts=short, params=lengths).steps)


def test_the_records_of_a_run_are_its_own():
    with Engine(ToyModel(), sizes=SMALL) as engine:
        first, second = (engine.generate([[1, 2, 3]], PARAMS) for _ in range(2))
    assert first.stats["steps"] == len(first.steps)
    assert [step.step for step in second.steps] == [step.step + len(first.steps) for step in first.steps]
    assert all(isinstance(step, StepRecord) and step.settled for step in second.steps)


def test_without_tracing_nothing_is_recorded():
    with Engine(ToyModel(), sizes=SMALL, trace=False) as engine:
        assert engine.generate([[1, 2, 3]], PARAMS).steps == ()


def test_steps_of_a_run_that_failed_are_in_no_other():
    with Engine(ToyModel(), sizes=SMALL) as engine:
        launch = engine.core.launcher.run
        vars(engine.core.launcher)["run"] = lambda *_: 1 / 0
        with pytest.raises(EngineFault):
            engine.generate([[1, 2, 3]], PARAMS)
        vars(engine.core.launcher)["run"] = launch
        again = engine.generate([[1, 2, 3]], PARAMS)
    assert again.stats["steps"] == len(again.steps)


def test_a_step_that_was_planned_and_not_yet_settled_is_open():
    with Engine(ToyModel(), sizes=SMALL) as engine:
        engine.submit([1, 2, 3], PARAMS)
        engine.step()
        steps = engine.take_steps()
        assert [(step.settled, step.rows[0].sampled is None) for step in steps] == [(True, False), (False, True)]
