"""The bug corpus: every bug is reported before its fix, as what it is, and clean after it."""

from __future__ import annotations

import pytest

from labkit.analysis.races import RaceReport, check
from tests.devices.corpus import BUGS, Bug
from tests.devices.csan import sanitizer_errors
from tests.devices.program import Virtual

SEEN_BY_THE_SANITIZER = {
    "weights buffer reused",
    "offload before compute is done",
    "sum before normal_",
    "matmul and its input on two streams",
    "mul after rand",
}


def report(bug: Bug, *, fixed: bool) -> tuple[RaceReport, int]:
    """Our report, and how many errors PyTorch's sanitizer finds in the same run."""
    dev = Virtual()
    bug.run(dev, fixed)
    trace = dev.trace()
    return check(trace), sanitizer_errors(trace)


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_bug_is_reported_before_its_fix(bug: Bug) -> None:
    found, _ = report(bug, fixed=False)
    kinds = {race.kind for race in found.races} | {notice.kind for notice in found.notices}
    assert bug.found_as in kinds


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_bug_is_gone_after_its_fix(bug: Bug) -> None:
    found, errors = report(bug, fixed=True)
    assert found.clean, str(found)
    assert errors == 0


def test_what_pytorchs_own_sanitizer_finds_of_them() -> None:
    assert {bug.name for bug in BUGS if report(bug, fixed=False)[1]} == SEEN_BY_THE_SANITIZER
