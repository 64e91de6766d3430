"""``docs/teaching.md`` is true: its plans add up, and every notebook, exercise and command in it exists."""

from __future__ import annotations

import re
import shlex
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from labkit.cli import _parser
from labkit.lessons import exercises
from notebooks import build

TEXT = (Path(__file__).parent.parent / "docs" / "teaching.md").read_text(encoding="utf-8")
HALF_DAY, TWO_DAYS = (
    TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0] for title in ("Half a day", "Two days")
)


def rows(section: str, columns: int) -> list[list[str]]:
    """The cells of a table, its head left out."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.split("\n") if line[:1] == "|"]
    assert {len(row) for row in found} == {columns}
    return found[2:]


def gaps(plan: list[tuple[str, str]]) -> list[str]:
    """Rows after which the next one does not begin when this one ends; ``plan`` is of (from, minutes)."""
    times = [(datetime.strptime(start, "%H:%M"), minutes) for start, minutes in plan]
    pairs = pairwise(times)
    return [f"{a:%H:%M}" for (a, minutes), (b, _) in pairs if a + timedelta(minutes=int(minutes)) != b]


def test_half_a_day_is_four_hours_without_a_gap() -> None:
    plan = [(row[0], row[1]) for row in rows(HALF_DAY, 5)]
    assert gaps(plan) == []
    assert (plan[0][0], plan[-1][0]) == ("0:00", "4:00")


@pytest.mark.parametrize("day", ["1", "2"])
def test_each_of_two_days_has_no_gap(day: str) -> None:
    plan = [(row[1], row[2]) for row in rows(TWO_DAYS, 5) if row[0] == day]
    assert len(plan) > 5
    assert gaps(plan) == []


def test_a_gap_is_seen() -> None:
    assert gaps([("9:00", "30"), ("9:45", "15"), ("10:00", "")]) == ["09:00"]


def test_two_days_hold_the_whole_course() -> None:
    assert {name for name in build.names() if f"`{name}`" not in TWO_DAYS} == set()


def test_every_notebook_that_is_named_exists() -> None:
    named = set(re.findall(r"\b\d\d_[a-z_]+\b", TEXT))
    assert named
    assert named - set(build.names()) == set()


def test_every_exercise_that_is_named_exists_and_is_of_the_notebook_of_its_row() -> None:
    known = exercises()
    for row in rows(HALF_DAY, 5) + rows(TWO_DAYS, 5):
        for number in re.findall(r"\b\d+\.\d+\b", row[-1]):
            assert number in known
            assert any(f"`{int(number.split('.')[0]):02}_" in cell for cell in row), row


COMMANDS = re.findall(r"(?:`|lock )labkit ([a-z]+ [^`\n]*(?:\n  [^`\n]*)?)", TEXT)


def test_there_are_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} >= {"start", "export", "races", "ladder", "trace"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_one(command: str) -> None:
    _parser().parse_args(shlex.split(command))
