"""What a notebook file says, on one made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.lessons import stored


def cell(source, *outputs, tags=(), count=1):
    return {
        "cell_type": "code",
        "metadata": {"tags": list(tags)} if tags else {},
        "source": source,
        "execution_count": count,
        "outputs": list(outputs),
    }


def text(value):
    return {"output_type": "execute_result", "data": {"text/plain": value}}


FIGURE = {"output_type": "execute_result", "data": {stored.FIGURE_MIME: {"data": []}, "text/plain": "Figure"}}
PRINTED = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": []}
PASSED = "4.1 Three edges: passed. Two waits."
NOT_YET = ["4.2 A: b: not yet. Nothing orders it.\n", "  yours:    1\n", "  expected: 2"]
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": "Question"},
        cell("lesson.three_edges.check(three_edges, device)", text(PASSED)),
        cell(["lesson.other.check(other, ", "device)\n"], text(NOT_YET)),
        cell("lesson.third.check(third, device)"),
        cell("lesson.third.check(another, device)", PRINTED),
    ]
}


def test_the_answers_of_checks():
    assert [(it.name, it.verdict, it.says) for it in stored.checks(NOTEBOOK)] == [
        ("three_edges", "passed", "Two waits."),
        ("other", "not yet", "Nothing orders it."),
        ("third", "", ""),
    ]


@pytest.mark.parametrize(
    ("verdict", "says", "unsolved", "solved"),
    [
        ("not yet", "Nothing orders it.", True, False),
        ("passed", "In order.", False, True),
        ("not yet", "Your function raised ValueError", False, False),
        ("", "", False, False),
    ],
)
def test_a_starter_is_refused_and_a_solution_passes(verdict, says, unsolved, solved):
    answered = stored.Answered("x", verdict, says)
    assert (answered.is_as_wanted(False), answered.is_as_wanted(True)) == (unsolved, solved)


def test_only_cells_that_ran_gave_something_and_are_not_ignored_are_compared():
    compared = [
        stored.is_compared(it)
        for it in (
            cell("1", PRINTED),
            cell("1", PRINTED, count=None),
            cell("1"),
            cell("1", PRINTED, tags=[stored.IGNORES]),
            cell("1", PRINTED, tags=[stored.SKIPS]),
            cell("1", ERROR, tags=[stored.RAISES]),
        )
    ]
    assert compared == [True, False, False, False, False, True]
    assert stored.compared(NOTEBOOK) == 3


def test_texts_and_figures_of_a_cell():
    it = cell("x", PRINTED, FIGURE, ERROR)
    assert list(stored.texts(it)) == ["one\ntwo\n", "Figure", "ValueError: x"]
    assert stored.figures(it) == [{"data": []}]


def test_a_file_is_read_as_it_is(tmp_path: Path):
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    assert stored.read(path) == NOTEBOOK
    assert len(stored.code_cells(stored.read(path))) == 4
