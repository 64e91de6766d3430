"""``labkit start``: what is copied, what is updated, and that what a learner wrote stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.errors import InvalidArgument
from labkit.lessons import kit, stored
from labkit.lessons.kit import LIST, start

FIRST, SECOND, SOLVED = "notebooks/00_a.ipynb", "notebooks/01_b.ipynb", "notebooks/solutions/01_b.ipynb"
RULES = "docs/semantics.md"


def notebook(source: str) -> str:
    output = {"output_type": "stream", "name": "stdout", "text": "42"}
    cell = {"cell_type": "code", "metadata": {}, "source": source, "execution_count": 3, "outputs": [output]}
    text = {"cell_type": "markdown", "metadata": {}, "source": "# µ"}
    return json.dumps({"cells": [text, cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def course(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A course of two notebooks."""
    folder = tmp_path / "course"
    for name in (FIRST, SECOND, SOLVED, RULES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(notebook(name) if name != RULES else "1. A rule.\n", encoding="utf-8")
    (folder / "notebooks" / "build.py").write_text("")
    monkeypatch.setattr(kit, "course_folder", lambda: folder)
    return folder


@pytest.fixture
def copy(course: Path, tmp_path: Path) -> Path:
    """A learner's copy."""
    start(tmp_path / "mine")
    return tmp_path / "mine"


def test_the_lessons_are_copied_without_outputs_and_solutions(copy):
    assert sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()) == sorted(
        [LIST, RULES, FIRST, SECOND]
    )
    (cell,) = stored.code_cells(stored.read(copy / SECOND))
    assert (cell["source"], cell["outputs"], cell["execution_count"]) == (SECOND, [], None)
    assert "# µ" in (copy / SECOND).read_text(encoding="utf-8")


def test_solutions_come_when_asked_for_and_as_they_are(course, copy):
    assert start(copy, solutions=True).copied == [SOLVED]
    assert (copy / SOLVED).read_bytes() == (course / SOLVED).read_bytes()


def test_a_second_start_changes_nothing(copy):
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*.ipynb")}
    done = start(copy)
    assert (done.copied, done.updated, done.kept) == ([], [], [])
    assert done.same == [RULES, FIRST, SECOND]
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*.ipynb")} == before


def test_what_the_learner_changed_is_kept_and_named(copy):
    (copy / FIRST).write_text("my work")
    done = start(copy)
    assert (done.kept, done.outdated) == ([FIRST], [])
    assert (copy / FIRST).read_text() == "my work"
    assert f"kept, you changed it: {FIRST}\n" in str(done)


def test_what_the_learner_did_not_change_is_updated(course, copy):
    (course / FIRST).write_text(notebook("better"))
    done = start(copy)
    assert (done.updated, done.same) == ([FIRST], [RULES, SECOND])
    assert stored.code_cells(stored.read(copy / FIRST))[0]["source"] == "better"
    assert start(copy).updated == [], "the list knows the new one"


def test_changed_on_both_sides_is_kept_and_told_again_each_time(course, copy):
    (copy / FIRST).write_text("my work")
    (course / FIRST).write_text(notebook("better"))
    for _ in range(2):
        done = start(copy)
        assert (done.kept, done.outdated) == ([FIRST], [FIRST])
        assert "the lesson has changed too" in str(done)
    assert (copy / FIRST).read_text() == "my work"


def test_a_renamed_one_makes_room_for_the_lesson(course, copy):
    (copy / FIRST).write_text("my work")
    (copy / FIRST).rename(copy / "notebooks" / "mine.ipynb")
    assert start(copy).copied == [FIRST]
    assert (copy / "notebooks" / "mine.ipynb").read_text() == "my work"


@pytest.mark.parametrize("lost", [None, "not json", "[1]"])
def test_without_its_list_everything_that_differs_is_kept(course, copy, lost):
    (course / FIRST).write_text(notebook("better"))
    if lost is None:
        (copy / LIST).unlink()
    else:
        (copy / LIST).write_text(lost)
    done = start(copy)
    assert (done.kept, done.same) == ([FIRST], [RULES, SECOND])


def test_a_folder_that_holds_other_things_keeps_them(course, tmp_path):
    (tmp_path / "mine" / "notebooks").mkdir(parents=True)
    (tmp_path / "mine" / SECOND).write_text("a file of mine with that name")
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    done = start(tmp_path / "mine")
    assert (done.copied, done.kept) == ([RULES, FIRST], [SECOND])
    assert (tmp_path / "mine" / SECOND).read_text() == "a file of mine with that name"
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "x"


def test_a_copy_that_broke_off_is_taken_up(course, copy, monkeypatch):
    (course / FIRST).write_text(notebook("better"))
    monkeypatch.setattr(kit, "_replace", failing_at(kit._replace, LIST))
    with pytest.raises(OSError, match="disk"):
        start(copy)
    monkeypatch.undo()
    monkeypatch.setattr(kit, "course_folder", lambda: course)
    done = start(copy)
    assert (done.kept, done.same) == ([], [RULES, FIRST, SECOND])
    assert not list(copy.rglob("*.new"))


def failing_at(replace, name):
    def fails(path, content):
        if path.name == name:
            raise OSError("disk full")
        replace(path, content)

    return fails


def test_a_file_is_no_folder(course, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match="DIR="):
        start(tmp_path / "file")


def test_the_real_course_can_be_started(tmp_path):
    done = start(tmp_path / "mine", solutions=True)
    assert len(done.copied) >= 3
    assert str(done).splitlines()[-1].startswith(f"Open it: cd {tmp_path / 'mine'} && jupyter lab, ")
    links = {link for path in done.folder.rglob("*.ipynb") for link in (path.parent / "../docs").resolve().glob("*.md")}
    assert done.folder.resolve() / RULES in links
