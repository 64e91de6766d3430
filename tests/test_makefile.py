"""What the Makefile would run, read off ``make -n``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not on PATH")


def would_run(*arguments: str) -> str:
    """The commands of a target, in an environment that is there already."""
    done = [f"--assume-old={sys.prefix}/.{part}" for part in ("weights", "test", "check", "lab", "created")]
    return make("--dry-run", f"VENV={sys.prefix}", *done, *arguments)


def make(*arguments: str) -> str:
    """What make prints, also where these tests run under make: then it would tell which folder it enters."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_the_lab_starts_the_learner_s_copy_and_opens_its_first_notebook() -> None:
    start, lab = would_run("lab").strip().split("\n", 1)
    assert start.endswith("-m labkit start course")
    assert "--ip=127.0.0.1" in lab and "root_dir=course " in lab
    assert "default_url=/lab/tree/notebooks/00_start_here.ipynb" in lab


def test_another_folder_is_opened_as_it_is() -> None:
    commands = would_run("lab", "NOTEBOOKS=/tmp/mine")
    assert "labkit start" not in commands and "default_url" not in commands
    assert "root_dir=/tmp/mine" in commands


def test_the_course_can_be_elsewhere() -> None:
    commands = would_run("lab", "COURSE=elsewhere")
    assert "labkit start elsewhere" in commands and "root_dir=elsewhere " in commands


def test_the_tests_compare_the_notebooks_strictly() -> None:
    commands = would_run("test")
    assert re.search(r"pytest --nbval --nbval-current-env --nbval-cell-timeout=\d+ tests notebooks", commands)
    assert "lax" not in commands


def test_one_notebook_can_be_built() -> None:
    assert would_run("notebooks", "ARGS=04_events").strip().endswith("notebooks/build.py 04_events")


def test_help_lists_every_target() -> None:
    told = make("help")
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert [line.split()[1] for line in told.splitlines()] == phony.group(1).split()
