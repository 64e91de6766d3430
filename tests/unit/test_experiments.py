"""Sweeps: what is varied, and that the rest stays the same."""

import pytest

from labkit.device.costs import load_profile, scaled_host
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.experiments import SWEPT, sizes_for, sweep_batch, sweep_host, sweep_model, synthetic_prompts
from labkit.model.toy import ToyModel

MODEL = ToyModel()
SHORT = {"prompt_tokens": 4, "new_tokens": 4}


def total_ms(switches, profile, requests):
    prompts = synthetic_prompts(MODEL, requests, SHORT["prompt_tokens"])
    params = SamplingParams(max_new_tokens=SHORT["new_tokens"], eos_token_ids=())
    with Engine(MODEL, switches=switches, profile=profile, sizes=sizes_for(MODEL, prompts, params)) as engine:
        return engine.generate(prompts, params).report().window_ns / 1e6


def test_a_row_is_the_time_of_the_two_runs_at_its_batch_size():
    rows = sweep_batch(MODEL, [1, 3], **SHORT)
    assert [row.x for row in rows] == [1, 3]
    for row in rows:
        assert row.sync_ms == total_ms(SWEPT[0], "h200-8b", row.x)
        assert row.async_ms == total_ms(SWEPT[1], "h200-8b", row.x)


def test_the_pair_differs_in_asynchrony_alone():
    sync, asynchronous = (set(switches.on) for switches in SWEPT)
    assert sync < asynchronous
    assert asynchronous - sync == {"lookahead", "double_buffering", "carry_over"}


def test_a_slower_host_gains_more():
    rows = sweep_host(MODEL, [0.5, 4], requests=2, **SHORT)
    gains = [1 - row.async_ms / row.sync_ms for row in rows]
    assert 0 <= gains[0] < gains[1]
    assert rows[1].sync_ms == total_ms(SWEPT[0], scaled_host(load_profile("h200-8b"), 4), 2)


def test_profiles_stand_for_models_and_gpus():
    rows = sweep_model(MODEL, ["article-8b", "h200-8b"], requests=2, **SHORT)
    assert [row.x for row in rows] == ["article-8b", "h200-8b"]
    assert rows[0].async_ms == total_ms(SWEPT[1], "article-8b", 2)


@pytest.mark.parametrize("pair", [(0, 6), ("events", "carry_over")])
def test_any_pair_of_rungs_can_be_swept(pair):
    (row,) = sweep_batch(MODEL, [2], switches=pair, **SHORT)
    assert (row.sync_ms, row.async_ms) == (total_ms(pair[0], "h200-8b", 2), total_ms(pair[1], "h200-8b", 2))


def test_a_made_up_prompt_longer_than_the_model_takes_is_refused_before_it_is_made():
    model = ToyModel()
    with pytest.raises(InvalidArgument, match=f"prompt_tokens=100000000: at most {model.max_model_len - 1}"):
        synthetic_prompts(model, 2, 10**8)


def test_more_made_up_tokens_than_a_machine_holds_are_refused_before_they_are_made():
    with pytest.raises(InvalidArgument, match="requests=1000000: at most 3125 with 16000 tokens each"):
        synthetic_prompts(ToyModel(), 10**6, 16000)
