"""Where the course lies: beside the package in a checkout, in the package where a wheel was installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import labkit
from labkit.errors import InvalidArgument, LabkitError
from labkit.lessons import shipped

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An installed package without anything in it."""
    (tmp_path / "site" / "labkit").mkdir(parents=True)
    monkeypatch.setattr(labkit, "__file__", str(tmp_path / "site" / "labkit" / "__init__.py"))
    return tmp_path / "site" / "labkit"


def test_in_a_checkout_it_is_the_repository():
    assert shipped.course_folder() == ROOT
    assert shipped.lesson_names()[0] == "00_start_here"
    assert (ROOT / shipped.SEMANTICS).is_file()


def test_in_a_wheel_it_is_in_the_package(package):
    (package / "notebooks" / "solutions").mkdir(parents=True)
    for name in ("notebooks/01_a.ipynb", "notebooks/00_b.ipynb", "notebooks/solutions/01_a.ipynb", "notebooks/x.ipynb"):
        (package / name).write_text("{}")
    assert shipped.course_folder() == package
    assert shipped.lesson_names() == ["00_b", "01_a"]
    assert shipped.notebook_path("01_a", solved=True) == package / "notebooks" / "solutions" / "01_a.ipynb"
    assert shipped.notebook_path("01_a") == package / "notebooks" / "01_a.ipynb"
    assert shipped.notebook_path("00_b", solved=True) == package / "notebooks" / "00_b.ipynb", "nothing to solve"


def test_without_notebooks_it_says_so(package):
    with pytest.raises(LabkitError, match="no notebooks"):
        shipped.course_folder()


def test_an_unknown_lesson_is_named_with_those_that_are():
    with pytest.raises(InvalidArgument, match="notebook='99_x': one of 00_start_here"):
        shipped.notebook_path("99_x")


def test_a_wheel_is_built_with_the_course_where_it_is_looked_for():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    names = (shipped.NOTEBOOKS, shipped.SEMANTICS)
    assert wheel["force-include"] == {name: f"labkit/{name}" for name in names}
