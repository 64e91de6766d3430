"""Run every notebook, unsolved and solved, on the real device, and say what differs from the stored virtual outputs.

    python benchmarks/notebooks_on_gpu.py [NAME ...] [--device cuda] [--jobs 1] [--details] [--save FOLDER]

In each notebook the line ``device = "virtual"`` becomes ``device = "cuda"``; then it is run from top to bottom, checks
included. In a solved notebook every check has to pass; in an unsolved one every check has to say ``not yet``, and
nothing else may fail. The exit status says whether that held. That outputs differ is no failure: times do.

Needs nbclient, ipykernel, plotly, ipywidgets and anywidget, not JupyterLab. With ``--jobs`` above 1 notebooks share the
GPU, so their times are noise.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
sys.path.insert(0, str(ROOT))

from labkit.lessons import stored  # noqa: E402

WIDTH = 100  # characters of a line in --details
QUIET = ["--IPKernelApp.log_level=40"]  # a kernel warns that it listens on loopback


@dataclass
class Ran:
    """One notebook that was run."""

    path: Path
    seconds: float
    device_lines: int
    faults: list[str] = field(default_factory=list)
    passed: int = 0
    checks: int = 0
    compared: int = 0
    texts: int = 0
    figures: int = 0
    details: list[str] = field(default_factory=list)
    slowest: float = 0.0

    @property
    def name(self) -> str:
        return self.path.relative_to(NOTEBOOKS).with_suffix("").as_posix()


def for_device(notebook: Any, device: str) -> int:
    """Put the device into the notebook; the number of lines that were replaced."""
    line, found = stored.DEVICE_LINE, 0
    for cell in stored.code_cells(notebook):
        lines = cell.source.split("\n")
        found += lines.count(line)
        cell.source = "\n".join(f'device = "{device}"' if it == line else it for it in lines)
    return found


async def execute(path: Path, device: str, timeout: int) -> tuple[Any, Ran]:
    """Run one notebook to its end, errors or not."""
    notebook = nbformat.read(path, as_version=4)
    ran = Ran(path, 0.0, for_device(notebook, device))
    client = NotebookClient(
        notebook, timeout=timeout, allow_errors=True, store_widget_state=False, extra_arguments=QUIET
    )
    start = time.perf_counter()
    try:
        await client.async_execute(cwd=str(NOTEBOOKS))
    except (CellTimeoutError, CellExecutionError, DeadKernelError, RuntimeError) as error:
        ran.faults.append(f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
    ran.seconds = time.perf_counter() - start
    return notebook, ran


def judge(notebook: Any, before: stored.Notebook, ran: Ran) -> None:
    """Errors, checks, and what differs from the stored outputs."""
    solved = ran.path.parent.name == "solutions"
    answers = stored.checks(notebook)
    ran.checks, ran.passed = len(answers), sum(it.verdict == "passed" for it in answers)
    wanted = "passed" if solved else "not yet"
    ran.faults += [
        f"check of {it.name}: {it.verdict or 'nothing'}. {it.says}" for it in answers if it.verdict != wanted
    ]
    for number, (new, old) in enumerate(zip(stored.code_cells(notebook), stored.code_cells(before), strict=True)):
        ran.slowest = max(ran.slowest, seconds_of(new))
        ran.faults += [f"cell {number}: {it}" for it in errors(new)]
        if stored.is_compared(old):
            compare(number, new, old, ran)


def errors(cell: Any) -> list[str]:
    expected = stored.RAISES in stored.tags(cell)
    raised = [it for it in cell["outputs"] if it["output_type"] == "error"]
    if expected and not raised:
        return ["is tagged as raising, and nothing was raised"]
    return [] if expected else [f"{it['ename']}: {it['evalue']}" for it in raised]


def compare(number: int, new: Any, old: stored.Cell, ran: Ran) -> None:
    ran.compared += 1
    here, there = list(stored.texts(new)), list(stored.texts(old))
    if stored.figures(new) != stored.figures(old):
        ran.figures += 1
    elif here != there:
        ran.texts += 1
    else:
        return
    pair = first_difference("\n".join(there), "\n".join(here))
    first = stored.source(new).strip().split("\n")[0]
    ran.details += [f"cell {number}: {first[:WIDTH]}"]
    ran.details += [f"  virtual: {pair[0]}", f"  device:  {pair[1]}"] if pair else ["  another figure"]


def first_difference(old: str, new: str) -> tuple[str, str] | None:
    """The first line that differs, of both. Blank lines are only where one output ends and the next begins."""
    a, b = ([line for line in text.split("\n") if line.strip()] for text in (old, new))
    longest = max(len(a), len(b))
    pairs = zip(a + [""] * (longest - len(a)), b + [""] * (longest - len(b)), strict=True)
    return next(((x[:WIDTH].strip(), y[:WIDTH].strip()) for x, y in pairs if x != y), None)


def seconds_of(cell: Any) -> float:
    """Of one cell, by the times that the kernel reported."""
    times = cell["metadata"].get("execution", {})
    if "shell.execute_reply" not in times or "iopub.execute_input" not in times:
        return 0.0
    start, end = (datetime.fromisoformat(times[key]) for key in ("iopub.execute_input", "shell.execute_reply"))
    return (end - start).total_seconds()


async def run_all(paths: list[Path], arguments: argparse.Namespace) -> list[Ran]:
    turn = asyncio.Semaphore(arguments.jobs)

    async def one(path: Path) -> Ran:
        async with turn:
            notebook, ran = await execute(path, arguments.device, arguments.timeout)
        judge(notebook, stored.read(path), ran)
        print(row(ran), flush=True)
        if arguments.save:
            target = arguments.save / path.relative_to(NOTEBOOKS)
            target.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, target)
        return ran

    return list(await asyncio.gather(*map(one, paths)))


HEAD = (
    f"{'notebook':<36}{'s':>7}{'slowest cell':>14}{'errors':>8}{'passed':>9}{'not yet':>9}"
    f"{'compared':>10}{'texts differ':>14}{'figures differ':>16}"
)


def row(ran: Ran) -> str:
    return (
        f"{ran.name:<36}{ran.seconds:>7.1f}{ran.slowest:>14.1f}{len(ran.faults):>8}{ran.passed:>9}"
        f"{ran.checks - ran.passed:>9}{ran.compared:>10}{ran.texts:>14}{ran.figures:>16}"
        + ("" if ran.device_lines else "   (virtual: no device line)")
    )


def paths_of(names: list[str]) -> list[Path]:
    found = sorted(path for folder in (NOTEBOOKS, NOTEBOOKS / "solutions") for path in folder.glob("*.ipynb"))
    return [path for path in found if not names or path.stem in names]


def machine(device: str) -> str:
    import torch

    gpu = torch.cuda.get_device_name() if device == "cuda" and torch.cuda.is_available() else "no GPU used"
    return f"{gpu}, torch {torch.__version__}, Python {sys.version.split()[0]}, {time.strftime('%Y-%m-%d')}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    parser.add_argument("--device", default="cuda", choices=["cuda", "virtual"])
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time")
    parser.add_argument("--timeout", type=int, default=120, help="seconds of a cell")
    parser.add_argument("--details", action="store_true", help="of each output that differs, the first line that does")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="store the notebooks as they were run")
    arguments = parser.parse_args()
    paths = paths_of(arguments.names)
    missing = set(arguments.names) - {path.stem for path in paths}
    if missing or arguments.jobs < 1:
        parser.error(f"no notebook {', '.join(sorted(missing))}" if missing else "--jobs is at least 1")
    # A kernel starts in notebooks/ and has to find labkit where it is not installed.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    print(f"device {arguments.device}: {machine(arguments.device)}\n{HEAD}", flush=True)
    start = time.perf_counter()
    ran = asyncio.run(run_all(paths, arguments))
    wrong = [it for it in ran if it.faults]
    print(f"\n{len(ran) - len(wrong)} of {len(ran)} notebooks ran as they should, {time.perf_counter() - start:.0f} s")
    for it in wrong:
        print("\n".join([f"\n{it.name}:", *(f"  {fault}" for fault in it.faults)]))
    if arguments.details:
        for it in ran:
            print("\n".join([f"\n{it.name}: what differs", *(f"  {line}" for line in it.details or ["nothing"])]))
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
