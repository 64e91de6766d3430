"""Build the notebooks from their sources, and run them.

    python notebooks/build.py [NAME ...] [--no-run] [--check]

A lesson is one Markdown file in ``notebooks/source`` (jupytext's format). From it come two notebooks: the one that
learners open, and the solved one in ``notebooks/solutions``. A code cell with ``exercise="name"`` becomes three cells:
the task, the function to write (the starter, or the first solution), and the check. ``--check`` compares the cells of
the notebooks with what the sources say, and runs nothing.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

from labkit.lessons import exercises, lesson, stored
from labkit.lessons.exercise import Exercise

HERE = Path(__file__).parent
SOURCES = HERE / "source"
SOLUTIONS = HERE / "solutions"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
SOLVED_NOTE = "*This is the solved notebook: every exercise is answered. Yours is in the folder above.*"


def names() -> list[str]:
    """The notebooks that have a source, in order."""
    return sorted(path.stem for path in SOURCES.glob("*.md"))


def build(name: str, *, solved: bool) -> Any:
    """One notebook, not run yet."""
    parsed = jupytext.reads((SOURCES / f"{name}.md").read_text(encoding="utf-8"), fmt="md")
    known = {it.name: it for it in own_exercises(name)}
    cells: list[Any] = []
    for cell in parsed.cells:
        wanted = cell.metadata.get("exercise")
        if wanted is not None and wanted not in known:
            raise SystemExit(f"{name}: no exercise {wanted!r}; its lesson has {', '.join(known) or 'none'}")
        cells += [_plain(cell)] if wanted is None else _exercise(known[wanted], solved)
    if solved:
        cells.insert(1, nbformat.v4.new_markdown_cell(SOLVED_NOTE))
        for cell in cells:
            cell.source = one_folder_deeper(cell.source) if cell.cell_type == "markdown" else cell.source
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number:02}"
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


def own_exercises(name: str) -> list[Exercise]:
    """The exercises of a notebook's lesson, in order."""
    module = lesson(name)
    return list(exercises(module).values()) if module else []


def one_folder_deeper(markdown: str) -> str:
    """The same links, seen from notebooks/solutions."""
    return markdown.replace("](../", "](../../")


def _plain(cell: Any) -> Any:
    tags = {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}
    new = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
    return new(cell.source, metadata=tags)


def _exercise(exercise: Exercise, solved: bool) -> list[Any]:
    task = textwrap.dedent(exercise.task).strip()
    help_line = f"Stuck? `lesson.{exercise.name}.hint(1)` to `hint(3)`, then `lesson.{exercise.name}.solution()`."
    code = exercise.solution_source() if solved else exercise.starter_source()
    return [
        nbformat.v4.new_markdown_cell(f"### Exercise {exercise.number}: {exercise.title}\n\n{task}\n\n{help_line}"),
        nbformat.v4.new_code_cell(code.rstrip(), metadata={"exercise": exercise.name}),
        nbformat.v4.new_code_cell(f"lesson.{exercise.name}.check({exercise.name}, device)"),
    ]


def run(notebook: Any) -> float:
    """Run it in place; the seconds it took. An error in a cell that is not tagged as raising ends the run."""
    start = time.perf_counter()
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,  # what is printed comes in pieces that differ from run to run
        extra_arguments=["--IPKernelApp.log_level=40"],  # it warns that it listens on loopback
    )
    client.execute(cwd=str(HERE))
    notebook.metadata.pop("language_info", None)  # the Python version of the machine that ran it
    return time.perf_counter() - start


def path_of(name: str, solved: bool) -> Path:
    return (SOLUTIONS if solved else HERE) / f"{name}.ipynb"


def differences(name: str, solved: bool) -> list[str]:
    """Cells of the stored notebook that are not what the source says."""
    if not path_of(name, solved).exists():
        return ["no such notebook: run notebooks/build.py"]
    stored = nbformat.read(path_of(name, solved), as_version=4)
    wanted = build(name, solved=solved)
    pairs = zip(stored.cells, wanted.cells, strict=False)
    found = [f"cell {n}: {b.source[:60]!r}" for n, (a, b) in enumerate(pairs) if _essence(a) != _essence(b)]
    more = len(stored.cells) - len(wanted.cells)
    return found + ([f"{more:+} cells"] if more else [])


def _essence(cell: Any) -> tuple[str, str, Any]:
    return cell.cell_type, cell.source, dict(cell.metadata)


def wrong_checks(notebook: Any, solved: bool) -> list[str]:
    """Checks that did not say what they should: ``passed`` in the solved notebook, ``not yet`` in the other."""
    return [f"{it.name}: {it.verdict}. {it.says}" for it in stored.checks(notebook) if not it.is_as_wanted(solved)]


def compare(name: str, solved: bool) -> bool:
    """Print whether the stored notebook is as its source; returns that."""
    found = differences(name, solved)
    print(f"{path_of(name, solved).relative_to(HERE)}: {'; '.join(found) or 'as its source'}")
    return not found


def store(name: str, solved: bool, with_outputs: bool) -> bool:
    """Build, run and store a notebook, and print what came of it; returns whether its checks said what they should."""
    notebook, path = build(name, solved=solved), path_of(name, solved)
    seconds = run(notebook) if with_outputs else 0.0
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    wrong = wrong_checks(notebook, solved) if with_outputs else []
    counts = f"{len(stored.checks(notebook))} checks, {stored.compared(notebook)} compared cells"
    told = f"{path.relative_to(HERE)}: {seconds:.1f} s, {path.stat().st_size / 1000:.0f} kB, {counts}"
    print("\n  ".join([told, *wrong]), flush=True)
    return not wrong


def main() -> int:
    """Build, run and store; or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    parser.add_argument("--no-run", action="store_true", help="store the cells without outputs")
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(names())
    if unknown:
        parser.error(f"no source for {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    good = [
        compare(name, solved) if arguments.check else store(name, solved, not arguments.no_run)
        for name in arguments.names or names()
        for solved in ((False, True) if own_exercises(name) else (False,))
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
