"""The judges of 6.1 and 6.2 where they look at more than the answer."""

from __future__ import annotations

from typing import Any

import torch

from labkit.lessons.l06_carry_over import carry_in_time, replace_placeholders
from labkit.lessons.support.carry_kernel import TwoSteps


def test_the_kernel_is_run_by_the_engine_too() -> None:
    calls = []

    def right_in_the_example_alone(token_ids: Any, carry_from: Any, previous: Any) -> None:
        calls.append(len(token_ids))
        if len(calls) == 1:
            token_ids.copy_(torch.where(carry_from >= 0, previous[carry_from.clamp(min=0).long()], token_ids))

    result = replace_placeholders.check(right_in_the_example_alone)
    assert not result
    assert "the engine's tokens are not" in result.says
    assert len(calls) > 2


def test_an_error_in_the_engine_is_the_learners_own() -> None:
    calls = []

    def fails_later(token_ids: Any, carry_from: Any, previous: Any) -> None:
        calls.append(0)
        if len(calls) > 1:
            raise KeyError("mine")
        token_ids.copy_(torch.where(carry_from >= 0, previous[carry_from.clamp(min=0).long()], token_ids))

    assert "raised KeyError" in replace_placeholders.check(fails_later).says


def test_two_steps_start_clean() -> None:
    assert len(TwoSteps("virtual").trace()) == 0


def test_a_second_solution_has_more_waits() -> None:
    few, more = (carry_in_time.score(solution) for solution in carry_in_time.solutions)
    assert few.value == few.best == 2
    assert more.value == 3
