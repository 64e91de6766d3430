"""``labkit start`` and ``labkit export`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.cli import main
from labkit.lessons.shipped import course_folder


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    output = {"output_type": "stream", "name": "stdout", "text": "forty-two"}
    cell = {"cell_type": "code", "metadata": {}, "source": "answer()", "execution_count": 1, "outputs": [output]}
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_start_copies_and_says_what_it_did(capsys, tmp_path):
    assert main(["start", str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().out
    assert "copied, 0 updated" in said
    assert (tmp_path / "mine" / "notebooks" / "00_start_here.ipynb").is_file()
    assert not (tmp_path / "mine" / "notebooks" / "solutions").exists()
    assert main(["start", str(tmp_path / "mine"), "--solutions"]) == 0
    assert any((tmp_path / "mine" / "notebooks" / "solutions").iterdir())


def test_export_of_a_notebook_that_was_run(capsys, ran, recwarn, tmp_path):
    assert main(["export", str(ran), "--out", str(tmp_path / "page.html")]) == 0
    assert "mine" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "forty-two" in page
    assert [str(it.message) for it in recwarn if "id" in str(it.message)] == [], "cells without ids are fine here"


def test_export_of_a_lesson_by_name_unsolved_and_solved(capsys, tmp_path):
    name = sorted(path.stem for path in (course_folder() / "notebooks" / "solutions").glob("*.ipynb"))[0]
    for flag in ([], ["--solutions"]):
        assert main(["export", name, "-o", str(tmp_path / f"{len(flag)}.html"), *flag]) == 0
    unsolved, solved = ((tmp_path / f"{n}.html").read_text(encoding="utf-8") for n in (0, 1))
    assert "This is the solved notebook" in solved
    assert "This is the solved notebook" not in unsolved


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["export", "99_none", "-o", "x.html"], "notebook='99_none': one of 00_start_here"),
        (["export", "none.ipynb", "-o", "x.html"], "No such file"),
        (["export", "broken.ipynb", "-o", "x.html"], "a Jupyter notebook of format 4"),
        (["export", "list.ipynb", "-o", "x.html"], "a Jupyter notebook of format 4"),
        (["export", "bare.ipynb", "-o", "x.html"], "a Jupyter notebook of format 4"),
        (["export", "mine.ipynb", "-o", "x.pdf"], "--out='x.pdf': a name that ends in .html"),
        (["start", "mine.ipynb"], "DIR='mine.ipynb': a folder"),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, ran, arguments, says):
    monkeypatch.chdir(ran.parent)
    Path("broken.ipynb").write_text("not json")
    Path("list.ipynb").write_text("[1]")
    Path("bare.ipynb").write_text('{"cells": [{"cell_type": "code"}], "nbformat": 4, "metadata": {}}')
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_page_that_cannot_be_written_is_one_line(capsys, ran):
    assert main(["export", str(ran), "-o", str(ran.parent / "none" / "x.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
