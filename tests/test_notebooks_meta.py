"""What nbval does not notice: a notebook that compares nothing, a misspelt tag, a cell that no longer raises."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted(path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_" not in str(path))
RAISES = "raises-exception"
IGNORES = "nbval-ignore-output"
TAGS = {RAISES, IGNORES, "nbval-check-output", "nbval-skip"}
LARGEST_BYTES = 300_000
WIDGET_MIME = "application/vnd.jupyter.widget"

Notebook = dict[str, Any]
Cell = dict[str, Any]


def tags(cell: Cell) -> list[str]:
    return cell["metadata"].get("tags", [])


def code_cells(notebook: Notebook) -> list[Cell]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def is_compared(cell: Cell) -> bool:
    """Whether nbval compares this cell's output: without an execution count it only runs it."""
    ignored = {IGNORES, "nbval-skip"} & set(tags(cell))
    return not ignored and cell["execution_count"] is not None and bool(cell["outputs"])


def nothing_compared(notebook: Notebook) -> list[str]:
    return [] if any(map(is_compared, code_cells(notebook))) else ["no cell's output is compared"]


def never_run(notebook: Notebook) -> list[str]:
    return [f"never run: {cell['source']}" for cell in code_cells(notebook) if cell["execution_count"] is None]


def unknown_tags(notebook: Notebook) -> list[str]:
    return [f"tag {tag}" for cell in notebook["cells"] for tag in tags(cell) if tag not in TAGS]


def errors_and_tags_differ(notebook: Notebook) -> list[str]:
    """A cell is tagged as raising exactly if its stored output is an error."""
    found = []
    for cell in code_cells(notebook):
        raised = any(output["output_type"] == "error" for output in cell["outputs"])
        if raised != (RAISES in tags(cell)):
            found.append(f"raised {raised}, tagged {RAISES in tags(cell)}: {cell['source']}")
    return found


def saved_widgets(notebook: Notebook) -> list[str]:
    state = ["widget state"] if "widgets" in notebook["metadata"] else []
    data = [output.get("data", {}) for cell in code_cells(notebook) if is_compared(cell) for output in cell["outputs"]]
    return state + [f"compared {mime}" for mimes in data for mime in mimes if mime.startswith(WIDGET_MIME)]


def too_large(notebook: Notebook) -> list[str]:
    size = len(json.dumps(notebook))
    return [f"{size} bytes"] if size > LARGEST_BYTES else []


def local_paths(notebook: Notebook) -> list[str]:
    """Paths of the machine that ran it, in tracebacks for example: noise for a reader, and a difference for nbval."""
    return [f"path {path}" for path in (str(ROOT), "/home/", "/root/", "/Users/") if path in json.dumps(notebook)]


RULES: list[Callable[[Notebook], list[str]]] = [
    nothing_compared,
    never_run,
    unknown_tags,
    errors_and_tags_differ,
    saved_widgets,
    too_large,
    local_paths,
]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_notebook(path: Path, rule: Callable[[Notebook], list[str]]) -> None:
    assert rule(json.loads(path.read_text())) == []


# The rules themselves, each on a good notebook with one fault.

RESULT = {"output_type": "execute_result", "data": {"text/plain": "2"}, "execution_count": 1, "metadata": {}}
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": []}
GOOD: Notebook = {
    "metadata": {},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": "Question"},
        {"cell_type": "code", "metadata": {}, "source": "1 + 1", "execution_count": 1, "outputs": [RESULT]},
        {
            "cell_type": "code",
            "metadata": {"tags": [RAISES]},
            "source": "f()",
            "execution_count": 2,
            "outputs": [ERROR],
        },
    ],
}


def with_cell(number: int, **changes: Any) -> Notebook:
    notebook = copy.deepcopy(GOOD)
    notebook["cells"][number].update(changes)
    return notebook


ALL_IGNORED = copy.deepcopy(GOOD)
for ignored in code_cells(ALL_IGNORED):
    ignored["metadata"] = {"tags": [*tags(ignored), IGNORES]}

WIDGET = {"output_type": "display_data", "data": {f"{WIDGET_MIME}-view+json": {}}, "metadata": {}}
FAULTS: list[tuple[Callable[[Notebook], list[str]], Notebook]] = [
    (nothing_compared, ALL_IGNORED),
    (nothing_compared, {**GOOD, "cells": GOOD["cells"][:1]}),
    (never_run, with_cell(1, execution_count=None)),
    (unknown_tags, with_cell(1, metadata={"tags": ["nbval-ignore-outputs"]})),
    (errors_and_tags_differ, with_cell(2, outputs=[RESULT])),
    (errors_and_tags_differ, with_cell(1, outputs=[ERROR])),
    (saved_widgets, {**GOOD, "metadata": {"widgets": {}}}),
    (saved_widgets, with_cell(1, outputs=[WIDGET])),
    (too_large, with_cell(1, source="x" * LARGEST_BYTES)),
    (local_paths, with_cell(1, source=f"open('{ROOT}/x')")),
]


@pytest.mark.parametrize(("rule", "notebook"), FAULTS, ids=[rule.__name__ for rule, _ in FAULTS])
def test_each_rule_sees_its_fault_and_no_other(rule: Callable[[Notebook], list[str]], notebook: Notebook) -> None:
    assert [other.__name__ for other in RULES if other(GOOD)] == []
    assert [other.__name__ for other in RULES if other(notebook)] == [rule.__name__]
