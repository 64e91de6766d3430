"""The engine asks for order at six moments of a step, and has no other."""

from __future__ import annotations

import pytest

from labkit.analysis.races import check
from labkit.lessons.support.ordered_engine import MOMENTS, Ordering, right_tokens, run_ordered


def test_the_moments_come_in_this_order_in_every_step():
    seen = []
    run = run_ordered(lambda moment, slot, streams: seen.append((moment, slot.name)))
    assert seen == [(moment, "A") for moment in MOMENTS] * run.stats["steps"]


def test_without_order_the_tokens_are_wrong_and_the_same_every_time():
    first, second = (run_ordered(lambda moment, slot, streams: None) for _ in range(2))
    assert first.tokens == second.tokens != right_tokens()
    assert check(first.trace).races


def test_an_exception_of_the_order_comes_out_as_it_is():
    def order(moment, slot, streams):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run_ordered(order)


def test_nothing_else_is_asked_for():
    with pytest.raises(AttributeError, match="before_upload"):
        Ordering(None, None).before_upload  # noqa: B018
