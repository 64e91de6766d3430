"""What nbval does not notice: a notebook that compares nothing, a misspelt tag, a cell that no longer raises.

And what an unsolved and a solved notebook have to say. Each rule is a function from a notebook to what breaks it, and
is tried on a good notebook with one fault.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.lessons import stored
from labkit.lessons.stored import IGNORES, RAISES, Cell, Notebook, code_cells, is_compared, source, tags

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"
UNSOLVED, SOLVED = sorted(FOLDER.glob("*.ipynb")), sorted((FOLDER / "solutions").glob("*.ipynb"))
TAGS = {RAISES, IGNORES, "nbval-check-output", "nbval-skip"}
COMMENTS = ("NBVAL_", "PYTEST_VALIDATE_")
LARGEST_BYTES = 300_000

Rule = Callable[[Notebook], list[str]]


def nothing_compared(notebook: Notebook) -> list[str]:
    return [] if stored.compared(notebook) else ["no cell's output is compared"]


def never_run(notebook: Notebook) -> list[str]:
    return [f"never run: {source(cell)}" for cell in code_cells(notebook) if cell["execution_count"] is None]


def unknown_tags(notebook: Notebook) -> list[str]:
    return [f"tag {tag}" for cell in notebook["cells"] for tag in tags(cell) if tag not in TAGS]


def comments_for_nbval(notebook: Notebook) -> list[str]:
    """Tags say it in one place; a comment in the code would be overlooked here."""
    found = [mark for cell in code_cells(notebook) for mark in COMMENTS if mark in source(cell)]
    return [f"a comment with {mark}" for mark in found]


def errors_and_tags_differ(notebook: Notebook) -> list[str]:
    """A cell is tagged as raising exactly if its stored output is an error."""
    found = []
    for cell in code_cells(notebook):
        raised = any(output["output_type"] == "error" for output in cell["outputs"])
        if raised != (RAISES in tags(cell)):
            found.append(f"raised {raised}, tagged {RAISES in tags(cell)}: {source(cell)}")
    return found


def warnings(notebook: Notebook) -> list[str]:
    """What a learner would take for a fault of the lab."""
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    return [f"stderr: {stored.joined(it['text'])}" for it in outputs if it.get("name") == "stderr"]


def saved_widgets(notebook: Notebook) -> list[str]:
    state = ["widget state"] if "widgets" in notebook["metadata"] else []
    data = [output.get("data", {}) for cell in code_cells(notebook) if is_compared(cell) for output in cell["outputs"]]
    return state + [f"compared {mime}" for it in data for mime in it if mime.startswith(stored.WIDGET_MIME)]


def too_large(notebook: Notebook) -> list[str]:
    size = len(json.dumps(notebook))
    return [f"{size} bytes"] if size > LARGEST_BYTES else []


def local_paths(notebook: Notebook) -> list[str]:
    """Paths of the machine that ran it, in tracebacks for example: noise for a reader, and a difference for nbval."""
    return [f"path {path}" for path in (str(ROOT), "/home/", "/root/", "/Users/") if path in json.dumps(notebook)]


def checks_not_compared(notebook: Notebook) -> list[str]:
    """The answer of a check is part of the test."""
    cells = [cell for cell in code_cells(notebook) if stored.exercise_of(cell)]
    return [f"not compared: {source(cell)}" for cell in cells if not is_compared(cell)]


def unsolved_and_not_refused(notebook: Notebook) -> list[str]:
    """The starter is refused by a judged sentence, and not because it raised something."""
    return [f"{it.name}: {it.verdict}. {it.says}" for it in stored.checks(notebook) if not it.is_as_wanted(False)]


def solved_and_not_passed(notebook: Notebook) -> list[str]:
    return [f"{it.name}: {it.verdict}. {it.says}" for it in stored.checks(notebook) if not it.is_as_wanted(True)]


COMMON: list[Rule] = [
    nothing_compared,
    never_run,
    unknown_tags,
    comments_for_nbval,
    errors_and_tags_differ,
    warnings,
    saved_widgets,
    too_large,
    local_paths,
    checks_not_compared,
]
RULES: dict[str, list[Rule]] = {
    "unsolved": [*COMMON, unsolved_and_not_refused],
    "solved": [*COMMON, solved_and_not_passed],
}
CASES = [
    (path, rule)
    for kind, paths in [("unsolved", UNSOLVED), ("solved", SOLVED)]
    for path in paths
    for rule in RULES[kind]
]


def test_there_are_notebooks() -> None:
    assert UNSOLVED and SOLVED


@pytest.mark.parametrize(("path", "rule"), CASES, ids=[f"{p.relative_to(FOLDER)}-{r.__name__}" for p, r in CASES])
def test_notebook(path: Path, rule: Rule) -> None:
    assert rule(stored.read(path)) == []


# The rules themselves, each on a good notebook with one fault.


def result(text: str) -> dict[str, Any]:
    return {"output_type": "execute_result", "data": {"text/plain": text}, "execution_count": 1, "metadata": {}}


def code(text: str, *outputs: dict[str, Any], **metadata: Any) -> Cell:
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": text,
        "execution_count": 1,
        "outputs": list(outputs),
    }


CHECK = "lesson.three_edges.check(three_edges, device)"
NOT_YET = result("4.1 Three edges: not yet. Nothing orders them.\n  yours:    1\n  expected: 2")
PASSED = result("4.1 Three edges: passed. In order.")
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": []}
STDERR = {"output_type": "stream", "name": "stderr", "text": "FutureWarning: x"}
WIDGET = {"output_type": "display_data", "data": {f"{stored.WIDGET_MIME}-view+json": {}}, "metadata": {}}


def good(answer: dict[str, Any]) -> Notebook:
    return {
        "metadata": {},
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": "Question"},
            code("1 + 1", result("2")),
            code("f()", ERROR, tags=[RAISES]),
            code(CHECK, answer),
        ],
    }


def with_cell(number: int, **changes: Any) -> Notebook:
    notebook = good(NOT_YET)
    notebook["cells"][number].update(changes)
    return notebook


def without_comparison() -> Notebook:
    notebook = good(NOT_YET)
    del notebook["cells"][3]
    for cell in code_cells(notebook):
        cell["metadata"] = {"tags": [*tags(cell), IGNORES]}
    return notebook


def answered(text: str) -> Notebook:
    return with_cell(3, outputs=[result(text)])


FAULTS: list[tuple[str, Rule, Notebook]] = [
    ("unsolved", nothing_compared, without_comparison()),
    ("unsolved", nothing_compared, {**good(NOT_YET), "cells": good(NOT_YET)["cells"][:1]}),
    ("unsolved", never_run, with_cell(1, execution_count=None)),
    ("unsolved", unknown_tags, with_cell(1, metadata={"tags": ["nbval-ignore-outputs"]})),
    ("unsolved", comments_for_nbval, with_cell(1, source="# NBVAL_IGNORE_OUTPUT\n1 + 1")),
    ("unsolved", errors_and_tags_differ, with_cell(2, outputs=[result("2")])),
    ("unsolved", errors_and_tags_differ, with_cell(1, outputs=[ERROR])),
    ("unsolved", warnings, with_cell(1, outputs=[STDERR])),
    ("unsolved", saved_widgets, {**good(NOT_YET), "metadata": {"widgets": {}}}),
    ("unsolved", saved_widgets, with_cell(1, outputs=[WIDGET])),
    ("unsolved", too_large, with_cell(1, source="x" * LARGEST_BYTES)),
    ("unsolved", local_paths, with_cell(1, source=f"open('{ROOT}/x')")),
    ("unsolved", checks_not_compared, with_cell(3, metadata={"tags": [IGNORES]})),
    ("unsolved", unsolved_and_not_refused, good(PASSED)),
    ("unsolved", unsolved_and_not_refused, answered("4.1 Three edges: not yet. Your function raised ValueError")),
    ("unsolved", unsolved_and_not_refused, answered("nothing that a check says")),
    ("solved", solved_and_not_passed, good(NOT_YET)),
    ("solved", solved_and_not_passed, answered("nothing that a check says")),
]


def names(rules: list[Rule]) -> list[str]:
    return [rule.__name__ for rule in rules]


@pytest.mark.parametrize(
    ("kind", "rule", "notebook"), FAULTS, ids=[f"{kind}-{rule.__name__}" for kind, rule, _ in FAULTS]
)
def test_each_rule_sees_its_fault_and_no_other(kind: str, rule: Rule, notebook: Notebook) -> None:
    fine = good(PASSED if kind == "solved" else NOT_YET)
    assert names([other for other in RULES[kind] if other(copy.deepcopy(fine))]) == []
    assert names([other for other in RULES[kind] if other(notebook)]) == [rule.__name__]


def test_every_rule_is_tried() -> None:
    assert {rule for _, rule, _ in FAULTS} == {rule for rules in RULES.values() for rule in rules}
