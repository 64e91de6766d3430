from __future__ import annotations

from dataclasses import replace

import pytest

from labkit import ladder
from labkit.analysis.units import time_text
from labkit.engine.core import EngineCore
from labkit.errors import InvalidArgument
from labkit.run import Run
from labkit.trace.events import DEVICE_KINDS, PHASES, Trace
from labkit.viz.panels.board import Board, Setup
from labkit.viz.panels.walk import EXECUTION, ISSUE, Walk


def run_of(rung: int) -> Run:
    return Board(Setup(switches=ladder(rung), batch=2)).outcome.run


@pytest.fixture
def walk() -> Walk:
    return Walk(run_of(5))


def names(walk: Walk, count: int) -> list[tuple[str, str, int]]:
    return [(span.lane, span.name, span.step) for span in walk.moments[:count]]


def test_in_issue_order_an_operation_follows_its_phase(walk: Walk) -> None:
    assert names(walk, 10) == [
        ("CPU", "plan", 0),
        ("CPU", "fill", 0),
        ("CPU", "upload", 0),
        ("H2D", "upload", 0),
        ("CPU", "compute", 0),
        ("compute", "forward", 0),
        ("compute", "sample", 0),
        ("CPU", "download", 0),
        ("D2H", "download", 0),
        ("CPU", "plan", 1),
    ]


def test_both_orders_hold_every_phase_and_operation_once(walk: Walk) -> None:
    spans = {span.id for span in walk.trace.spans if span.kind == "phase" or span.kind in DEVICE_KINDS}
    for order in (ISSUE, EXECUTION):
        walk.take_order(order)
        assert sorted(span.id for span in walk.moments) == sorted(spans)


def test_in_execution_order_the_host_is_a_step_ahead(walk: Walk) -> None:
    walk.take_order(EXECUTION)
    starts = [span.start_ns for span in walk.moments]
    assert starts == sorted(starts)
    places = {(span.lane, span.name, span.step): place for place, span in enumerate(walk.moments)}
    assert places["CPU", "fill", 1] < places["D2H", "download", 0]


def test_in_turns_nothing_of_the_next_step_comes_before_the_download() -> None:
    walk = Walk(run_of(2))
    walk.take_order(EXECUTION)
    places = {(span.lane, span.name, span.step): place for place, span in enumerate(walk.moments)}
    assert places["D2H", "download", 0] < places["CPU", "plan", 1]


def test_moving(walk: Walk) -> None:
    assert walk.next() == walk.moments[1]
    assert walk.back() == walk.back() == walk.moments[0]
    assert walk.next_step().step == 1 and walk.place == 9
    assert walk.go(10**6) == walk.moments[-1] == walk.next_step() == walk.next()


def test_changing_the_order_keeps_the_moment(walk: Walk) -> None:
    moment = walk.go(8)
    elsewhere = walk.other_place
    assert walk.take_order(EXECUTION) == moment
    assert (walk.place, walk.other_place) == (elsewhere, 8)
    with pytest.raises(InvalidArgument, match="order='x': issue or execution"):
        walk.take_order("x")


@pytest.mark.parametrize(("rung", "loop"), [(0, "run_sync"), (2, "run_sync"), (5, "run_async"), (6, "run_async")])
def test_the_code_is_that_of_the_loop_and_the_phase(rung: int, loop: str) -> None:
    walk = Walk(run_of(rung))
    seen = set()
    for place in range(len(walk.moments)):
        span = walk.go(place)
        code = walk.loop_code()
        assert loop in code.title
        assert f"engine.{span.phase}(" in code.lines[code.marked]
        assert walk.phase_code().title.endswith(f"EngineCore.{span.phase}")
        assert f"def {span.phase}(" in walk.phase_code().lines[0]
        seen.add(span.phase)
    assert seen == set(PHASES)


def test_a_copy_marks_the_line_that_issued_it(walk: Walk) -> None:
    upload = walk.go(3)
    code = walk.phase_code()
    assert (upload.lane, "self.device.copy(" in code.lines[code.marked]) == ("H2D", True)
    assert walk.issued_by().endswith("self.device.copy(")
    walk.go(5)
    assert walk.phase_code().marked == -1 and "launch.py" in walk.issued_by()
    walk.go(0)
    assert walk.issued_by() == ""


def test_docstrings_are_left_out(walk: Walk) -> None:
    assert '"""' not in "\n".join([*walk.loop_code().lines, *walk.phase_code().lines])
    assert EngineCore.plan.__doc__ not in "\n".join(walk.phase_code().lines)


def test_the_sentence_says_how_long_after_its_issue_an_operation_ran(walk: Walk) -> None:
    walk.go(8)
    span = walk.moment
    assert f"{(span.start_ns - span.issued_ns) / 1e6:.3f} ms after it was issued" in walk.sentence()
    assert "event compute_done[A]" in walk.sentence()
    walk.go(0)
    assert walk.sentence() == f"The host runs plan (step 0): from 0 ns, for {time_text(walk.moment.duration_ns)}."


@pytest.mark.parametrize("trace", [None, Trace(())])
def test_a_run_without_a_trace_is_refused(trace: Trace | None) -> None:
    with pytest.raises(InvalidArgument, match="a run with a trace"):
        Walk(replace(run_of(0), trace=trace))
