"""nbval as ``make test`` runs it: a figure that differs in one number fails, and a summary counts what was compared."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from labkit.lessons import stored
from notebooks import build

ROOT = Path(__file__).parent.parent
CELLS = [
    ("import plotly.graph_objects as go", []),
    ("go.Figure(go.Bar(y=[1, 2, 3]))", []),
    ("import time; time.time()", [stored.IGNORES]),
    ("print('text')", []),
    ("1 / 0", [stored.RAISES]),
]


def ran() -> Any:
    cells = [nbformat.v4.new_code_cell(source, metadata={"tags": tags}) for source, tags in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": build.KERNEL})
    build.run(notebook)
    return notebook


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of a good notebook, and of the same with one number of its figure changed."""
    folder = tmp_path_factory.mktemp("notebooks")
    good = ran()
    bad = copy.deepcopy(good)
    (figure,) = stored.figures(bad.cells[1])
    assert figure["data"][0]["y"] == [1, 2, 3]
    figure["data"][0]["y"] = [1, 2, 4]
    nbformat.write(good, folder / "good.ipynb")
    nbformat.write(bad, folder / "bad.ipynb")
    command = [sys.executable, "-m", "pytest", "-rA", "--nbval", "--nbval-current-env", "-p", "conftest", "--color=no"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "good.ipynb", "bad.ipynb"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_figure_is_compared_to_the_last_number(output: str) -> None:
    assert re.findall(r"^FAILED (\S+)::Cell (\d+)", output, re.MULTILINE) == [("bad.ipynb", "1")]


def test_the_same_notebook_passes_and_what_is_tagged_is_not_compared(output: str) -> None:
    assert len(re.findall(r"^PASSED good\.ipynb::Cell", output, re.MULTILINE)) == len(CELLS)


def test_the_summary_counts_compared_cells_and_not_those_that_differ(output: str) -> None:
    summary = output.partition("cells whose output was compared")[2]
    found = re.findall(r"^(\S.*?) +(\d+) compared of +(\d+) cells run", summary, re.MULTILINE)
    assert found == [("bad.ipynb", "2", "5"), ("good.ipynb", "3", "5"), ("all notebooks", "5", "10")]
