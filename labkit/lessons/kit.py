"""``labkit start``: a copy of the course for one learner, brought up to date without touching what they wrote.

The copy has no outputs, so that nobody reads a result before predicting it. A list beside it
(``.labkit-course.json``) keeps what each file was when it was copied: a file that is still so is the lab's and is
updated, any other is the learner's and is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from labkit.errors import InvalidArgument
from labkit.lessons import stored
from labkit.lessons.shipped import NOTEBOOKS, SEMANTICS, SOLUTIONS, course_folder

LIST = ".labkit-course.json"


@dataclass
class Started:
    """What became of each file, by its path in the folder.

    copied      was not there
    updated     was there as the lab had copied it, and the lesson has changed since
    same        is as the lesson is
    kept        was changed by its reader, and left alone
    outdated    those of them whose lesson has changed since
    """

    folder: Path
    copied: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = f"{len(self.copied)} copied, {len(self.updated)} updated, {len(self.same)} as they were"
        lines = [f"{self.folder}: {counts}, {len(self.kept)} kept"]
        lines += [f"kept, you changed it: {name}" for name in self.kept if name not in self.outdated]
        lines += [
            f"kept, you changed it: {name} (the lesson has changed too; to get it, rename yours and start again)"
            for name in self.outdated
        ]
        return "\n".join(
            [*lines, f"Open it: cd {self.folder} && jupyter lab, and begin with notebooks/00_start_here.ipynb"]
        )


def start(folder: str | Path, *, solutions: bool = False) -> Started:
    """Copy the lessons into a folder, or bring an earlier copy up to date.

    Args:
        folder: made if it does not exist.
        solutions: the solved notebooks too, with their outputs, in ``notebooks/solutions``.

    Raises:
        InvalidArgument: ``folder`` is a file.
        LabkitError: this installation has no notebooks.
        OSError: the folder cannot be written.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InvalidArgument("DIR", str(folder), "a folder, or a name for a new one")
    target.mkdir(parents=True, exist_ok=True)
    before, done = _read_list(target), Started(target)
    after = dict(before)
    for name, content in _lessons(solutions):
        _put(target / name, name, content, before, done)
        if name not in done.kept:
            after[name] = _digest(content)
    _replace(target / LIST, json.dumps(after, indent=1, sort_keys=True).encode())
    return done


def _lessons(solutions: bool) -> list[tuple[str, bytes]]:
    """Path in the copy and content of each file."""
    source = course_folder()
    lessons = sorted((source / NOTEBOOKS).glob("[0-9][0-9]_*.ipynb"))
    solved = sorted((source / SOLUTIONS).glob("[0-9][0-9]_*.ipynb")) if solutions else []
    return [
        (SEMANTICS, (source / SEMANTICS).read_bytes()),
        *((f"{NOTEBOOKS}/{path.name}", without_outputs(path)) for path in lessons),
        *((f"{SOLUTIONS}/{path.name}", path.read_bytes()) for path in solved),
    ]


def without_outputs(path: Path) -> bytes:
    """The notebook as it is before it was ever run."""
    notebook = stored.read(path)
    for cell in stored.code_cells(notebook):
        cell |= {"outputs": [], "execution_count": None}
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def _put(path: Path, name: str, content: bytes, before: dict[str, str], done: Started) -> None:
    if not path.exists():
        done.copied.append(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
        return
    present = _digest(path.read_bytes())
    if present == _digest(content):
        done.same.append(name)
    elif present == before.get(name):
        done.updated.append(name)
        _replace(path, content)
    else:
        done.kept.append(name)
        if before.get(name) != _digest(content):
            done.outdated.append(name)


def _read_list(target: Path) -> dict[str, str]:
    """Path to digest, of what the lab copied; empty where that is not known, and then whatever differs is kept."""
    try:
        found = json.loads((target / LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(content)
    os.replace(new, path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
