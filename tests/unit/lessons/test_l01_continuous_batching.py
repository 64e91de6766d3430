"""Lesson 01: every plausible wrong answer gets the sentence that says what is wrong with it."""

from __future__ import annotations

import pytest

from labkit.lessons import l01_continuous_batching as lesson


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda prompt, new, size: -(-(prompt + new) // size), "never computed"),
        (lambda prompt, new, size: (prompt + new - 1) // size, "round up"),
        (lambda prompt, new, size: prompt, "Count the tokens"),
        (lambda prompt, new, size: None, "Count the tokens"),
    ],
)
def test_blocks_needed_names_the_slip(answer, says) -> None:
    result = lesson.blocks_needed.check(answer)
    assert not result.passed
    assert says in result.says


PACK = lesson.pack.solutions[0]


def changed(place, change):
    def answer(starts, counts):
        made = list(PACK(starts, counts))
        made[place] = change(made[place], counts)
        return made

    return answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (changed(0, lambda made, counts: [place for count in counts for place in range(count)]), "is its start, not 0"),
        (changed(0, lambda made, counts: made[:-1]), "as many as it has tokens"),
        (changed(1, lambda made, counts: made[1:]), "one entry more than rows"),
        (changed(2, lambda made, counts: [end + 1 for end in made]), "minus one"),
        (lambda starts, counts: PACK(starts, counts)[0], "three lists"),
        (lambda starts, counts: None, "three lists"),
    ],
)
def test_pack_names_the_slip(answer, says) -> None:
    result = lesson.pack.check(answer)
    assert not result.passed
    assert says in result.says


def test_a_decode_row_that_begins_at_zero_is_found_in_the_first_step_that_decodes() -> None:
    result = lesson.pack.check(changed(0, lambda made, counts: [p for count in counts for p in range(count)]))
    assert result.says.startswith("Step 1 ")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda running, waiting, rows: waiting, "You let in 10, where 0 of 4 rows are taken"),
        (lambda running, waiting, rows: rows - running, "0 requests wait: there is room for 0"),
        (lambda running, waiting, rows: 1 if waiting and running < rows else 0, "4 of them could enter"),
        (lambda running, waiting, rows: 0, "4 of them could enter"),
        (lambda running, waiting, rows: 2.0, "whole number"),
        (lambda running, waiting, rows: None, "whole number"),
    ],
)
def test_admit_names_the_slip(answer, says) -> None:
    result = lesson.admit.check(answer)
    assert not result.passed
    assert says in result.says


def test_the_score_of_admit_is_the_engines_own() -> None:
    score = lesson.admit.score(lesson.admit.solutions[0])
    assert score.value == score.best == lesson.at_once("virtual").empty
    assert lesson.in_waves("virtual").empty > score.best
