"""Steady states: where the requests are, what a step is, and prompts that cost nothing."""

import pytest
import torch

from labkit.bench.decode import WARM, Decode, Prefilled, Steady, prefill_steps
from labkit.model.toy import ToyModel
from labkit.switches import ladder


@pytest.fixture
def decode(rig):
    model = Prefilled(ToyModel(), 16)
    with Decode(model, ladder("carry_over"), rig.device, batch=3, longest=400, block_size=16) as engine:
        yield engine


def contexts(decode):
    return {len(request.tokens) for request in decode.core.scheduler.running}


@pytest.mark.parametrize("context", [20, 100, 300])
def test_every_request_decodes_at_the_context(decode, context):
    decode.start(context, 10)
    assert len(decode.core.scheduler.running) == 3
    assert contexts(decode) <= set(range(context, context + 3))


def test_contexts_one_after_the_other_on_one_engine(decode):
    for context in (50, 200, 30):
        decode.start(context, 5)
        decode.steps(5)
        assert contexts(decode) <= set(range(context + 5, context + 8))
    decode.finish()
    assert not decode.core.busy


def test_a_steady_state_is_around_its_context(decode):
    seen = []
    steps = decode.steps
    decode.steps = lambda count: (seen.append(min(contexts(decode))), steps(count))[1]
    steady = decode.steady(200, steps=10, blocks=2)
    assert seen[1:] == pytest.approx([190, 200], abs=2)
    assert len(steady.blocks) == 2
    assert steady.ns == min(steady.blocks) <= steady.p95


def test_step_times_add_up_to_the_clock(decode):
    decode.start(64, 20)
    start = decode.device.now_ns()
    assert sum(decode.steps(20)) == decode.device.now_ns() - start


def test_requests_last_while_the_prompts_of_others_are_taken_in(rig):
    model = Prefilled(ToyModel(), 16)
    assert prefill_steps(40, 1000) > 5
    with Decode(model, ladder("events"), rig.device, batch=40, longest=1050, block_size=16) as engine:
        engine.start(1000, 20)
        engine.steps(20)
        assert len(engine.core.scheduler.running) == 40


def test_the_quietest_stretch_counts():
    assert Steady((3e6, 2e6, 9e6), 9.5e6).ms == 2


class Counting(ToyModel):
    """Counts forward passes."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, inputs, kv):
        self.seen.append(inputs.shape)
        return super().forward(inputs, kv)


def test_only_decode_steps_reach_the_model(rig):
    model = Counting()
    with Decode(Prefilled(model, 16), ladder("events"), rig.device, batch=2, longest=90, block_size=16) as engine:
        engine.start(60, 4)
        rig.device.synchronize()
    assert model.seen
    assert all(shape.decode_only for shape in model.seen)


class Floating(ToyModel):
    """Has a cache of floating-point numbers, as a real model has."""

    def kv_specs(self):
        first, *rest = super().kv_specs()
        return first, *rest, type(first)("k0", (2,), torch.float32)

    def forward(self, inputs, kv):
        assert torch.isfinite(kv[2]).all() and kv[2].std() > 0.5
        return super().forward(inputs, kv[:2])


def test_the_cache_is_filled_with_random_numbers_before_the_first_decode(rig):
    model = Prefilled(Floating(), 16)
    with Decode(model, ladder("events"), rig.device, batch=2, longest=90, block_size=16) as engine:
        engine.start(60, 4)


def test_a_model_is_made_for_its_block_size_once():
    prefilled = Prefilled(ToyModel(), 16)
    assert prefilled.for_block_size(16) is prefilled
    assert prefilled.for_block_size(32).block_size == 32
    assert prefilled.vocab_size == 256
    assert WARM > 2
