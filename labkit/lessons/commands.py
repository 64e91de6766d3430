"""``labkit start`` and ``labkit export``."""

from __future__ import annotations

import argparse
import importlib
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labkit.errors import InvalidArgument
from labkit.lessons import stored
from labkit.lessons.kit import start
from labkit.lessons.shipped import lesson_names, notebook_path


def add_commands(commands: Any) -> None:
    """Add both to the subparsers of the command line."""
    begin = commands.add_parser(
        "start", help="copy the lessons into a folder; what you changed there is never overwritten"
    )
    begin.add_argument("folder", metavar="DIR")
    begin.add_argument("--solutions", action="store_true", help="the solved notebooks too")
    begin.set_defaults(command=_start)
    export = commands.add_parser("export", help="write lessons as one HTML file that works offline, plots drawn")
    export.add_argument("lessons", nargs="*", metavar="NAME|PATH", help="a lesson, or a notebook you ran; all lessons")
    export.add_argument("-o", "--out", required=True, metavar="FILE", help="a name that ends in .html")
    export.add_argument("--solutions", action="store_true", help="of a lesson, the solved notebook")
    export.set_defaults(command=_export)


def _start(arguments: argparse.Namespace) -> int:
    print(start(arguments.folder, solutions=arguments.solutions))
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from labkit.viz.lesson_page import save_lesson

    if not arguments.out.endswith((".html", ".htm")):
        raise InvalidArgument("--out", arguments.out, "a name that ends in .html")
    paths = [_path(name, arguments.solutions) for name in arguments.lessons or lesson_names()]
    notebooks = [(path.stem, _read(path)) for path in paths]
    try:
        save_lesson(notebooks, arguments.out)
    except OSError as error:
        raise InvalidArgument("--out", arguments.out, f"cannot be written: {error.strerror}") from None
    size = Path(arguments.out).stat().st_size
    print(f"{arguments.out}: {', '.join(path.stem for path in paths)}, {size / 1e6:.1f} MB, works offline")
    return 0


def _path(name: str, solved: bool) -> Path:
    path = Path(name)
    return path if path.suffix == ".ipynb" else notebook_path(name, solved=solved)


def _read(path: Path) -> stored.Notebook:
    try:
        notebook = stored.read(path)
        stored.code_cells(notebook)
        if find_spec("nbformat"):  # without it the page cannot be made either, and says so
            with warnings.catch_warnings(action="ignore"):  # of cells without ids: none is needed here
                importlib.import_module("nbformat").validate(notebook)
    except OSError as error:
        raise InvalidArgument("notebook", str(path), error.strerror or "a file that can be read") from None
    except Exception:  # of json, of nbformat, of jsonschema: all say that it is no notebook
        raise InvalidArgument("notebook", str(path), "a Jupyter notebook of format 4") from None
    return notebook
