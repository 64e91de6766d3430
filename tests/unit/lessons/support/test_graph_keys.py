"""Engines with a key of the learner's: each forgotten field does its own damage, and only one of them is a race."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.analysis.races import check
from labkit.lessons.support.graph_keys import (
    BATCHES,
    FIELDS,
    BoundedToy,
    KeyedGraphs,
    outcome,
    run_keyed,
    run_padded,
    run_reference,
)

DAMAGE = {"slot": "greedy", "rows": "greedy", "context": "greedy", "random": "random", "logprobs": "logprobs"}


def without(forgotten: str) -> Any:
    return lambda *values: tuple(v for name, v in zip(FIELDS, values, strict=True) if name != forgotten)


@pytest.mark.parametrize("work", ["greedy", "random", "logprobs"])
def test_the_whole_key_is_right(work: str) -> None:
    same, total, near = outcome(run_keyed("virtual", without(""), work), run_reference("virtual", work))
    assert same == total
    assert near


@pytest.mark.parametrize("forgotten", FIELDS)
def test_a_forgotten_field_does_damage(forgotten: str) -> None:
    work = DAMAGE[forgotten]
    run = run_keyed("virtual", without(forgotten), work)
    same, total, near = outcome(run, run_reference("virtual", work))
    assert (same < total, near) == ((False, False) if forgotten == "logprobs" else (True, True))
    assert bool(check(run.trace).races) == (forgotten == "slot")


def test_keys_that_are_one_to_the_learner_share_a_graph() -> None:
    graphs = KeyedGraphs(without("slot"))
    run_keyed("virtual", graphs, "greedy")
    assert len(graphs.asked_for) == graphs.captured, "every warm-up captures, also over an earlier graph"


def test_the_bounded_model_has_a_graph_for_each_bound() -> None:
    assert [BoundedToy().context_bucket(n, 64) for n in (1, 16, 17, 40, 64)] == [16, 16, 32, 64, 64]
    assert BoundedToy().context_bucket(60, 50) == 50


def test_padding_is_counted_in_the_engine() -> None:
    for sizes in ((12,), (3, 6, 12)):
        by_hand = sum(min(size for size in sizes if size >= rows) - rows for rows in BATCHES)
        assert run_padded("virtual", sizes)[1] == by_hand
