"""The engine cases on a real GPU: every test of tests/engine that takes a device, case by case.

    python benchmarks/gpu_cases.py [--device cuda] [--files test_shapes.py,...]

Runs pytest on the same tests that run on the virtual GPU everywhere. Status 1 if one failed, or if none ran.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FILES = (  # cases 8 to 12, 13, 21, 24, 3, 22 and 23, 14
    "test_shapes.py",
    "test_graphs.py",
    "test_host_waits.py",
    "test_outside_use.py",
    "test_lifetime.py",
    "test_sampling.py",
    "test_memory_pressure.py",
)


class Collector:
    """A pytest plugin that keeps outcome, seconds and reason of every test of one device."""

    def __init__(self, device: str) -> None:
        self.device, self.found = device, defaultdict[str, list[tuple[str, float, str]]](list)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if self.device not in report.nodeid or (report.when != "call" and report.outcome == "passed"):
            return
        name = report.nodeid.rpartition("/")[2].partition("[")[0]
        reason = str(report.longrepr).strip().splitlines()[-1] if report.longrepr else ""
        self.found[name].append((report.outcome, report.duration, reason))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "virtual"])
    parser.add_argument("--files", default=",".join(FILES))
    arguments = parser.parse_args(argv)
    options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-W", "ignore", "-k", arguments.device]
    options += ["--timeout=120"] if importlib.util.find_spec("pytest_timeout") else []
    collector = Collector(arguments.device)
    paths = [str(ROOT / "tests" / "engine" / name) for name in arguments.files.split(",")]
    code = pytest.main([*options, *paths], [collector])
    for name, outcomes in collector.found.items():
        passed, seconds = sum(outcome == "passed" for outcome, _, _ in outcomes), sum(s for _, s, _ in outcomes)
        reasons = "; ".join(dict.fromkeys(reason for outcome, _, reason in outcomes if outcome != "passed"))
        print(f"{name:<90} {passed} of {len(outcomes)} passed, {seconds:5.1f} s  {reasons}")
    ran = sum(outcome != "skipped" for outcomes in collector.found.values() for outcome, _, _ in outcomes)
    print(f"{ran} tests ran on {arguments.device}")
    return 1 if code or not ran else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
