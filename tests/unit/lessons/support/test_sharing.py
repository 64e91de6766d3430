"""A learner's share of the token budget in the engine's scheduler: what is refused, and that the tokens stay right."""

from __future__ import annotations

import pytest

from labkit.lessons import l01_continuous_batching as lesson
from labkit.lessons.support.sharing import judge_share

SHARE = lesson.share.solutions[0]


def in_order(needs, budget):
    counts = []
    for need in needs:
        counts.append(min(need, budget))
        budget -= counts[-1]
    return counts


def never_cut(needs, budget):
    counts = []
    for need in needs:
        counts.append(need if need <= budget else 0)
        budget -= counts[-1]
    return counts


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda needs, budget: needs, "has 118 tokens, and the budget is 16"),
        (in_order, "its reader waits for a prompt"),
        (never_cut, "it will be so for ever"),
        (lambda needs, budget: [1] * len(needs), "tokens of the budget were left"),
        (lambda needs, budget: [2] * len(needs), "Request 3 needs 1 tokens computed, and got 2"),
        (lambda needs, budget: [-1] * len(needs), "got -1"),
        (lambda needs, budget: needs[:1], "There were 4 requests, and share returned 1 numbers"),
        (lambda needs, budget: [need / 2 for need in needs], "whole numbers"),
        (lambda needs, budget: None, "whole numbers"),
    ],
)
def test_a_wrong_share_gets_its_sentence(answer, says) -> None:
    result = lesson.share.check(answer)
    assert not result.passed
    assert says in result.says


def test_prompts_last_to_first_is_right_too() -> None:
    def from_the_end(needs, budget):
        return SHARE(needs[::-1], budget)[::-1]

    assert judge_share(from_the_end, "virtual").passed
