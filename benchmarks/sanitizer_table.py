"""The bug corpus, by the race checker and by PyTorch's own CUDA sanitizer on the same traces.

    python benchmarks/sanitizer_table.py

The sanitizer's event handler runs without a GPU; it is told what torch would tell it (``tests/devices/csan.py``).
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from labkit.analysis.races import check
from tests.devices.corpus import BUGS, Bug
from tests.devices.csan import sanitizer_errors
from tests.devices.program import Virtual


def found(bug: Bug, fixed: bool) -> tuple[str, str]:
    """What both report."""
    dev = Virtual()
    bug.run(dev, fixed)
    trace = dev.trace()
    report, errors = check(trace), sanitizer_errors(trace)
    ours = [race.kind for race in report.races] + [notice.kind for notice in report.notices]
    return ", ".join(dict.fromkeys(ours)) or "clean", f"{errors} errors" if errors else "nothing"


def main() -> None:
    widths = (36, 54, 44, 19, 22)
    head = ("bug", "source", "checker, before", "sanitizer, before", "both, after the fix")
    rows = []
    for bug in BUGS:
        (ours, theirs), after = found(bug, fixed=False), found(bug, fixed=True)
        rows.append((bug.name, bug.source, ours, theirs, ", ".join(after)))
    for row in (head, *rows):
        print("".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    named, seen = sum(row[2] != "clean" for row in rows), sum(row[3] != "nothing" for row in rows)
    clean = sum(row[4] == "clean, nothing" for row in rows)
    print(
        f"\n{len(rows)} bugs: the checker names {named}, PyTorch's sanitizer sees {seen}; clean after the fix: {clean}."
    )


if __name__ == "__main__":
    main()
