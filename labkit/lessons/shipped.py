"""Where the course lies: in the wheel beside the package's code, in a checkout beside the package."""

from __future__ import annotations

from pathlib import Path

import labkit
from labkit.errors import InvalidArgument, LabkitError

NOTEBOOKS, SOLUTIONS = "notebooks", "notebooks/solutions"
SEMANTICS = "docs/semantics.md"


def course_folder() -> Path:
    """The folder that holds ``notebooks`` and ``docs``.

    Raises:
        LabkitError: this installation has no notebooks.
    """
    package = Path(labkit.__file__).parent
    for folder in (package, package.parent):
        if any((folder / NOTEBOOKS).glob("[0-9][0-9]_*.ipynb")):
            return folder
    raise LabkitError("this installation of labkit has no notebooks: install the wheel again, or use a checkout")


def lesson_names() -> list[str]:
    """The notebooks, in order: ``00_start_here`` first."""
    return sorted(path.stem for path in (course_folder() / NOTEBOOKS).glob("[0-9][0-9]_*.ipynb"))


def notebook_path(name: str, *, solved: bool = False) -> Path:
    """The file of one notebook; an unsolved one where there is nothing to solve.

    Raises:
        InvalidArgument: no such notebook.
    """
    if name not in lesson_names():
        raise InvalidArgument("notebook", name, f"one of {', '.join(lesson_names())}, or a file that ends in .ipynb")
    path = course_folder() / SOLUTIONS / f"{name}.ipynb"
    return path if solved and path.exists() else course_folder() / NOTEBOOKS / f"{name}.ipynb"
