"""What ``make test`` says of the notebooks when it ends: how many cells' outputs were compared, and the seconds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from labkit.lessons import stored

COMPARED = "compared_cell"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells that nbval compares; under pytest-xdist too, a mark travels with the report."""
    for item in items:
        cell = getattr(item, "cell", None)  # nbval's items have one
        if cell is not None and stored.is_compared(cell):
            item.user_properties.append((COMPARED, True))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [it for kind in terminalreporter.stats.values() for it in kind if isinstance(it, pytest.TestReport)]
    cells = [it for it in reports if ".ipynb::" in it.nodeid]
    if not cells:
        return
    rows = table(cells)
    terminalreporter.write_sep("=", "notebooks: cells whose output was compared")
    for row in rows:
        terminalreporter.write_line(row)


def table(reports: list[pytest.TestReport]) -> list[str]:
    """One line a notebook, and the sum. Seconds are of the kernel's start and all cells."""
    run, compared, seconds = Counter(), Counter(), Counter()
    for report in reports:
        name = report.nodeid.split("::")[0]
        seconds[name] += report.duration
        if report.when == "call":
            run[name] += 1
            compared[name] += report.passed and (COMPARED, True) in report.user_properties
    names = sorted(seconds, key=lambda name: (Path(name).parent.name == "solutions", name))
    rows = [(name, compared[name], run[name], seconds[name]) for name in names]
    total = ("all notebooks", compared.total(), run.total(), sum(seconds.values()))
    return [f"{name:<50}{a:>4} compared of {b:>4} cells run {s:>7.1f} s" for name, a, b, s in [*rows, total]]
