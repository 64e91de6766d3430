"""What a notebook file says: its cells, which outputs a test compares, what its checks answered. Needs no Jupyter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IGNORES, RAISES, SKIPS = "nbval-ignore-output", "raises-exception", "nbval-skip"
DEVICE_LINE = 'device = "virtual"  # "cuda" on a machine with a GPU'
FIGURE_MIME = "application/vnd.plotly.v1+json"
WIDGET_MIME = "application/vnd.jupyter.widget"

# How a check begins when it could not judge: the answer raised something, or gave what cannot be used.
UNJUDGED = ("Your function raised", "The check cannot work", "Your function takes other")

Cell = dict[str, Any]
Notebook = dict[str, Any]

_CHECK = re.compile(r"^lesson\.(\w+)\.check\(\1, device\)$")
_VERDICT = re.compile(r"^[\d.]+ .*?: (passed|not yet)\. (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Answered:
    """What the check of one exercise answered: ``passed``, ``not yet``, or nothing where it was not run."""

    name: str
    verdict: str
    says: str

    def is_as_wanted(self, solved: bool) -> bool:
        """In a solved notebook a check passes; in an unsolved one it refuses the starter, and by judgement."""
        return self.verdict == ("passed" if solved else "not yet") and not self.says.startswith(UNJUDGED)


def read(path: Path) -> Notebook:
    """A notebook file as it is."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(notebook: Notebook) -> list[Cell]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def tags(cell: Cell) -> list[str]:
    return list(cell["metadata"].get("tags", []))


def joined(text: str | list[str]) -> str:
    """A text of a notebook file, which may be stored as its lines."""
    return text if isinstance(text, str) else "".join(text)


def source(cell: Cell) -> str:
    return joined(cell["source"])


def is_compared(cell: Cell) -> bool:
    """Whether nbval compares this cell's output: without an execution count it only runs it."""
    ignored = {IGNORES, SKIPS} & set(tags(cell))
    return not ignored and cell["execution_count"] is not None and bool(cell["outputs"])


def compared(notebook: Notebook) -> int:
    """The number of cells whose output nbval compares."""
    return sum(map(is_compared, code_cells(notebook)))


def texts(cell: Cell) -> Iterator[str]:
    """What a cell printed and answered, as plain text."""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            yield joined(output["text"])
        elif output["output_type"] == "error":
            yield f"{output['ename']}: {output['evalue']}"
        elif "text/plain" in output.get("data", {}):
            yield joined(output["data"]["text/plain"])


def figures(cell: Cell) -> list[Any]:
    """The plotly figures that a cell drew."""
    data = [output.get("data", {}) for output in cell["outputs"]]
    return [it[FIGURE_MIME] for it in data if FIGURE_MIME in it]


def exercise_of(cell: Cell) -> str | None:
    """The exercise that this cell checks, by name; None for any other cell."""
    found = _CHECK.match(source(cell).strip())
    return found.group(1) if found else None


def checks(notebook: Notebook) -> list[Answered]:
    """What each check answered, in order."""
    return [_answered(name, cell) for cell in code_cells(notebook) if (name := exercise_of(cell))]


def _answered(name: str, cell: Cell) -> Answered:
    found = _VERDICT.search("\n".join(texts(cell)))
    return Answered(name, *found.groups()) if found else Answered(name, "", "")
