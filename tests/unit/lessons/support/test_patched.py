"""An engine with a part of the learner's."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.lessons.support.patched import counted, reverse_rows, right_tokens, run_patched


def test_a_change_is_applied_and_the_rest_is_the_engine() -> None:
    plain, reversed_rows = run_patched("virtual", "carry_over"), run_patched("virtual", "carry_over", reverse_rows)
    assert reversed_rows.tokens == plain.tokens
    rows = [[row.request for row in run.steps[1].rows] for run in (plain, reversed_rows)]
    assert rows == [[0, 1, 2, 3], [3, 2, 1, 0]]


def test_an_error_comes_out_as_it_is() -> None:
    class Broken:
        def planned(self, batch: Any, scheduler: Any) -> None:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_patched("virtual", "carry_over", observers=(Broken(),))


def test_sentences() -> None:
    assert right_tokens([[1, 2], [3]], [[1, 9], [3, 4]]) == "2 of 4 tokens are right"
    assert [counted(number, "race") for number in (0, 1, 2)] == ["0 races", "1 race", "2 races"]
