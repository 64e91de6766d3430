"""The table of the device semantics: every rule, and how its contract tests went, on each device that is here.

    python benchmarks/semantics_on_gpu.py [--only cuda] [--json FILE]

Runs ``pytest tests/devices/test_*.py``. A rule passed if all its tests passed; a skip gives its reason, and a reason
that begins with DIVERGES says what a real GPU does otherwise (to be written into docs/semantics.md).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RULES = range(1, 69)
_TEST = re.compile(r"test_rule_(\d\d)_(\w+)(?:\[(.*)\])?$")


class Collector:
    """A pytest plugin that keeps the outcome of every test of a rule, by device."""

    def __init__(self) -> None:
        self.outcomes: dict[tuple[int, str], list[tuple[str, str, str]]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: Any) -> None:
        match = _TEST.search(report.nodeid)
        if match is None or (report.when != "call" and report.outcome == "passed"):
            return
        device = "cuda" if (match[3] or "").startswith("cuda") else "virtual"
        reason = report.longrepr[2].removeprefix("Skipped: ") if report.skipped else ""
        if report.failed:
            reason = str(report.longrepr).strip().splitlines()[-1]
        self.outcomes[int(match[1]), device].append((report.outcome, match[2], reason))


def summary(outcomes: list[tuple[str, str, str]]) -> str:
    """One word for a rule on one device, and the reasons for what did not pass."""
    if not outcomes:
        return "-"
    kinds = {outcome for outcome, _, _ in outcomes}
    reasons = "; ".join(dict.fromkeys(reason for outcome, _, reason in outcomes if outcome != "passed"))
    diverges = "DIVERGES" in reasons
    word = "FAILED" if "failed" in kinds else "diverges" if diverges else "passed" if "passed" in kinds else "skipped"
    return f"{word} ({sum(o == 'passed' for o, _, _ in outcomes)} of {len(outcomes)})" + (
        f": {reasons}" if reasons else ""
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("virtual", "cuda"), help="run the tests of one device")
    parser.add_argument("--json", type=Path, help="write every outcome here too")
    arguments = parser.parse_args()
    options = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-W", "ignore"]
    options += ["-k", arguments.only] if arguments.only else []
    options += ["--timeout=60"] if importlib.util.find_spec("pytest_timeout") else []
    collector = Collector()
    code = pytest.main([*options, str(ROOT / "tests" / "devices")], [collector])
    devices = sorted({device for _, device in collector.outcomes}, reverse=True)
    if arguments.json:
        data = {f"{rule} {device}": found for (rule, device), found in sorted(collector.outcomes.items())}
        arguments.json.write_text(json.dumps(data, indent=1))
    for rule in RULES:
        cells = [f"{device}: {summary(collector.outcomes[rule, device])}" for device in devices]
        print(f"{rule:3}  " + "   ".join(cells))
    for device in devices:
        words = [summary(collector.outcomes[rule, device]).split(" ")[0] for rule in RULES]
        print(f"{device}: " + ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words)))
    return int(code)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
