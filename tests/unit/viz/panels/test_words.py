from __future__ import annotations

import re
from html import unescape

import pytest

from labkit.analysis.units import share_text, time_text
from labkit.switches import MECHANISMS, explain, ladder
from labkit.viz.panels import words
from labkit.viz.panels.board import Board, Outcome


def plain(html: str) -> str:
    return unescape(re.sub("<[^>]*>", " ", html))


@pytest.fixture(scope="module")
def board() -> Board:
    return Board()


def at(board: Board, rung: int) -> Outcome:
    return board.choose_rung(rung)


def test_every_mechanism_is_described() -> None:
    assert tuple(words.ADDS) == MECHANISMS


def test_the_verdict_says_it_in_a_word_and_a_sign_and_marks_the_unsafe(board: Board) -> None:
    right, outcome = words.verdict(at(board, 2)), at(board, 1)
    wrong = words.verdict(outcome)
    assert "✓ RIGHT: all 64 tokens equal rung 0's, no race" in right and "UNSAFE" not in right
    assert outcome.wrong_tokens and outcome.races
    assert f"✗ WRONG: {outcome.wrong_tokens} of 64 tokens differ from rung 0's, {outcome.races} races" in wrong
    assert "⚠ UNSAFE" in wrong


def test_the_explanation_is_all_that_explain_says(board: Board) -> None:
    said = plain(words.explanation(at(board, 3)))
    explanation = explain(ladder(3))
    assert explanation.why in said
    assert all(said.count(finding.text) == 1 for finding in explanation.findings)


def test_the_numbers_are_the_reports_of_both_runs(board: Board) -> None:
    before, now = at(board, 2), at(board, 5)
    said = plain(words.numbers(now, before))
    for outcome in (now, before):
        report = outcome.report
        for value in (share_text(report.gpu_active), time_text(report.window_ns), time_text(report.ns_per_step)):
            assert value in said
        assert f"{outcome.tokens_per_s:,.0f}" in said
    assert words.speed_up(before.report.window_ns, now.report.window_ns) in said


def test_a_first_run_has_no_difference(board: Board) -> None:
    assert "points" not in words.numbers(at(board, 2), None)


def test_less_time_and_more_speed_stand_side_by_side() -> None:
    assert words.speed_up(1000, 780) == "-22.0 % (1.28x)"
    assert words.speed_up(1000, 1250) == "+25.0 % (0.80x)"
    assert words.speed_up(0, 780) == ""


def test_a_wrong_token_is_struck_through_with_the_right_one_behind_it(board: Board) -> None:
    outcome = at(board, 4)
    html = words.tokens(outcome)
    assert html.count("<s>") == outcome.wrong_tokens > 0
    row = next(n for n, (a, b) in enumerate(zip(outcome.run.tokens, outcome.reference, strict=True)) if a != b)
    place = next(n for n in range(8) if outcome.run.tokens[row][n] != outcome.reference[row][n])
    assert f"<s>{outcome.run.tokens[row][place]}</s>→{outcome.reference[row][place]}" in html
    assert "<s>" not in words.tokens(at(board, 5))


def test_of_a_large_batch_the_first_requests_are_shown(board: Board) -> None:
    html = words.tokens(board.change(batch=32))
    board.change(batch=8)
    assert html.count("<tr>") == 8 and "the first 8 of 32 requests" in html


def test_the_races_come_with_their_fixes(board: Board) -> None:
    outcome = at(board, 3)
    said = plain(words.races(outcome))
    assert f"{outcome.races} races" in said
    assert outcome.race_report.repair
    assert all(str(fix) in said for fix in outcome.race_report.repair)
    assert all(race.missing_edge in said for race in outcome.race_report.races)


def test_races_are_counted_before_their_fixes_are_known(board: Board) -> None:
    outcome = at(board, 3)
    assert plain(words.races(outcome, looking=True)).strip().startswith(f"{outcome.races} races; looking")
    assert "No race" in words.races(at(board, 5), looking=True)


def test_what_comes_from_outside_is_escaped() -> None:
    assert words.failure(ValueError("<b>")).count("<b>") == 0
