"""The article's experiment on the virtual GPU: 8B costs, batch 32, 8192 new tokens.

The profile fixes the synchronous step. That the asynchronous run then needs 22 % less time is not in it.
"""

from __future__ import annotations

import pytest

from labkit.engine.sampling import SamplingParams
from labkit.experiments import run_ladder, synthetic_prompts
from labkit.model.toy import ToyModel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rungs():
    model = ToyModel()
    prompts = synthetic_prompts(model, 32, 128)
    result = run_ladder(
        model, prompts, SamplingParams(max_new_tokens=8192), rungs=[0, 6], profile="article-8b", keep_runs=False
    )
    return {rung.rung: rung for rung in result.rungs}


def test_the_synchronous_rung_has_the_articles_numbers(rungs):
    assert abs(rungs[0].gpu_active - 0.760) <= 0.005
    assert abs(rungs[0].total_ms / 300_600 - 1) <= 0.01


def test_the_full_rung_keeps_the_gpu_busy(rungs):
    assert rungs[6].gpu_active >= 0.993
    assert rungs[6].total_ms <= 236_000
    assert rungs[6].right


def test_one_host_wait_a_step(rungs):
    assert rungs[0].host_waits_per_step == 2  # both copies block
    assert rungs[6].host_waits_per_step == 1
