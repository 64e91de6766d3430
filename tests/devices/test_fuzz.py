"""Random stream programs on the virtual GPU. ``--fuzz-programs 10000`` for a nightly-sized run; 200 otherwise.

``python -m tests.devices.trace_hash`` prints the hash that must be the same with every Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit.device.costs import Adversary
from tests.devices.program import contract_profile
from tests.devices.stream_programs import Result, Step, draw_program, run, without_queries
from tests.devices.trace_hash import trace_hash

ROOT = Path(__file__).parent.parent.parent


@st.composite
def programs(draw: st.DrawFn, careful: bool = False) -> list[Step]:
    """Programs of up to 30 steps, waits not counted."""

    def integer(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    return draw_program(integer, careful=careful, length=integer(1, 30))


@pytest.fixture
def number_of_programs(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("--fuzz-programs", default=200))


def fuzz(number: int, strategy: st.SearchStrategy[list[Step]], check: object) -> None:
    """Run a check on so many programs, the same ones every time."""
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    config = settings(max_examples=number, derandomize=True, deadline=None, database=None, suppress_health_check=quiet)
    config(given(strategy)(check))()


def check_time(result: Result) -> None:
    """Time never runs back: not the host's, and on no stream."""
    assert result.times == sorted(result.times)
    ends: dict[str, int] = {}
    for span in result.trace.spans:
        assert span.start_ns <= span.end_ns
        if span.kind in ("kernel", "copy", "graph"):
            assert span.start_ns >= max(span.issued_ns, ends.get(span.stream, 0))
            ends[span.stream] = span.end_ns


def test_random_programs_end_and_time_never_runs_back(number_of_programs: int) -> None:
    def check(steps: list[Step]) -> None:
        check_time(run(steps))

    fuzz(number_of_programs, programs(), check)


def test_a_program_without_races_has_the_same_values_under_any_costs(number_of_programs: int) -> None:
    clean = 0

    def check(steps: list[Step]) -> None:
        nonlocal clean
        steps = without_queries(steps)
        first = run(steps)
        if first.races:
            return
        clean += 1
        for seed in (1, 2):
            other = run(steps, Adversary(contract_profile(), seed))
            assert (other.races, other.values) == (0, first.values)
            check_time(other)
        assert run(steps, launch_blocking=True).values == first.values

    fuzz(number_of_programs, programs(), check)
    assert clean > number_of_programs // 20, "too few random programs are free of races to show anything"


def test_a_careful_program_has_no_race_and_the_same_values_under_any_costs(number_of_programs: int) -> None:
    def check(steps: list[Step]) -> None:
        first = run(steps)
        assert first.races == 0
        for seed in (1, 2):
            assert run(steps, Adversary(contract_profile(), seed)).values == first.values
        assert run(steps, launch_blocking=True).values == first.values

    fuzz(number_of_programs, programs(careful=True), check)


def test_the_verdict_is_the_same_under_any_costs(number_of_programs: int) -> None:
    racy = 0

    def check(steps: list[Step]) -> None:
        nonlocal racy
        steps = without_queries(steps)
        races = run(steps).races
        racy += races > 0
        assert {run(steps, Adversary(contract_profile(), seed)).races for seed in (1, 2)} == {races}

    fuzz(number_of_programs, programs(), check)
    assert racy > number_of_programs // 20


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_the_same_program_has_the_same_trace_hash_in_every_process(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-m", "tests.devices.trace_hash"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout.split()[0]) == (0, trace_hash()), result.stderr
