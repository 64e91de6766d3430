"""A notebook's answers at a glance."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from labkit.errors import InvalidArgument
from labkit.lessons.exercise import Exercise
from labkit.lessons.scoreboard import score
from tests.unit.lessons.test_exercise import SUM, _plus, _start

SECOND = Exercise(**{**vars(SUM), "number": "9.2", "name": "again", "title": "Again & again"})
LESSON = SimpleNamespace(again=SECOND, four=SUM)


def test_every_exercise_of_the_lesson_in_order():
    board = score({"lesson": LESSON, "four": _plus, "again": _start})
    assert [(it.number, it.passed) for it in board.results] == [("9.1", True), ("9.2", False)]
    assert board.passed == 1
    assert repr(board) == "1 of 2 exercises passed\n9.1 Four: passed\n9.2 Again & again: not yet"


@pytest.mark.parametrize("answers", [{}, {"again": 4}, {"again": None}])
def test_what_is_not_there_or_no_function_is_not_answered_yet(answers):
    board = score({"lesson": LESSON, "four": _plus, **answers})
    assert board.results[1].says == "not answered yet"
    assert board.passed == 1


def test_the_notebook_s_form():
    html = score({"lesson": LESSON, "four": _plus})._repr_html_()
    assert "<b>1 of 2 exercises passed</b>" in html and "Again &amp; again" in html and html.count("<tr>") == 2


@pytest.mark.parametrize("answers", [{}, {"lesson": None}, {"lesson": SimpleNamespace()}])
def test_without_a_lesson_it_says_what_to_pass(answers):
    with pytest.raises(InvalidArgument, match="globals"):
        score(answers)


def test_the_device_reaches_every_check():
    seen = []

    def judge(answer, device):
        seen.append(device)
        return SUM.judge(answer, device)

    lesson = SimpleNamespace(four=Exercise(**{**vars(SUM), "judge": judge}))
    score({"lesson": lesson, "four": _plus}, "cuda")
    assert seen == ["cuda"]
