"""Which bars a trace has, and which of them are drawn."""

import pytest

from labkit.analysis.idle import idle_gaps
from labkit.errors import InvalidArgument
from labkit.trace.events import Span, Trace
from labkit.viz.bars import IDLE, LAUNCH, WAIT, select
from tests.unit.synthetic import async_trace, sync_trace


def kinds(trace: Trace, **more) -> dict[str, int]:
    counts: dict[str, int] = {}
    for bar in select(trace, more.get("steps"), more.get("window"), more.get("max_bars", 4000)).bars:
        counts[bar.kind] = counts.get(bar.kind, 0) + 1
    return counts


def test_a_synchronous_step_has_six_phases_three_operations_and_two_host_waits():
    trace = sync_trace(3)
    phases = dict.fromkeys(["plan", "fill", "upload", "compute", "download", "settle"], 3)
    operations = {"H2D copy": 3, "kernel": 3, "D2H copy": 3}
    # A step launches three operations; the launches of its two blocking copies are the host's waits.
    assert kinds(trace) == phases | operations | {WAIT: 6, LAUNCH: 3, IDLE: len(idle_gaps(trace))}


def test_launches_are_on_the_cpu_lane_where_the_host_spent_their_time():
    trace = async_trace(2)
    launches = [bar for bar in select(trace, None, None, 4000).bars if bar.kind == LAUNCH]
    assert [(bar.lane, bar.name, bar.start_ns) for bar in launches] == [
        ("CPU", span.name, span.start_ns) for span in trace.of_kind("launch")
    ]


def test_a_blocking_copy_is_waited_for_from_its_issue_to_its_end():
    trace = Trace((Span(0, "copy", "c", "H2D", 5, 9, issued_ns=2, blocking=True),))
    wait = next(bar for bar in select(trace, None, None, 9).bars if bar.kind == WAIT)
    assert (wait.lane, wait.start_ns, wait.end_ns) == ("CPU", 2, 9)


def test_an_operation_says_which_event_and_operation_it_waited_for():
    bars = select(async_trace(2), None, None, 4000).bars
    kernel = next(bar for bar in bars if bar.kind == "kernel")
    assert kernel.detail == "event h2d_done A, after copy 'inputs'"
    assert next(bar for bar in bars if bar.kind == WAIT).detail.startswith("event d2h_done A")


def test_a_range_of_steps_shows_everything_that_runs_meanwhile():
    trace = async_trace(8)
    selection = select(trace, (3, 4), None, 4000)
    assert (selection.start_ns, selection.end_ns) == (
        min(span.start_ns for span in trace.step(3)),
        max(span.end_ns for span in trace.step(4)),
    )
    assert {bar.step for bar in selection.bars if bar.kind != IDLE} == {2, 3, 4, 5}
    assert not selection.reduced
    assert all(bar.start_ns < selection.end_ns and bar.end_ns > selection.start_ns for bar in selection.bars)


def test_a_window_is_taken_as_given():
    selection = select(sync_trace(3), None, (10_000, 25_000), 4000)
    assert (selection.start_ns, selection.end_ns) == (10_000, 25_000)
    assert [bar.kind for bar in selection.bars] == ["plan", IDLE, "fill"]


def test_too_many_bars_show_the_steps_in_the_middle():
    selection = select(async_trace(100), None, None, 200)
    assert selection.reduced
    assert selection.steps == (46, 53)
    assert 0 < len(selection.bars) <= 200 < selection.total


@pytest.mark.parametrize("most", [1, 7, 30])
def test_there_are_never_more_than_asked_for(most):
    selection = select(async_trace(20), None, None, most)
    assert len(selection.bars) == most or selection.steps != (-1, -1)
    assert len(selection.bars) <= most


def test_without_steps_the_bars_in_the_middle_are_shown():
    spans = tuple(Span(n, "kernel", "k", "compute", 10 * n, 10 * n + 10) for n in range(50))
    selection = select(Trace(spans), None, None, 10)
    assert [bar.start_ns for bar in selection.bars] == [10 * n for n in range(20, 30)]
    assert (selection.start_ns, selection.end_ns, selection.total) == (200, 300, 50)


@pytest.mark.parametrize("steps", [-1, 3, (0, 3), (2, 1), (0,), "1", (0, 1, 2), 1.5])
def test_steps_that_the_trace_does_not_have_are_refused(steps):
    with pytest.raises(InvalidArgument, match=r"steps=.*the steps are 0 to 2"):
        select(sync_trace(3), steps, None, 4000)


@pytest.mark.parametrize("window", [(5, 5), (9, 2), (0, "9"), (10**9, 10**9 + 5), (-9, 0), 7])
def test_a_window_outside_the_run_is_refused(window):
    with pytest.raises(InvalidArgument, match="window="):
        select(sync_trace(3), None, window, 4000)


def test_steps_and_window_exclude_each_other():
    with pytest.raises(InvalidArgument, match="not both"):
        select(sync_trace(3), 1, (0, 10), 4000)


@pytest.mark.parametrize("most", [0, -1, 2.0, True])
def test_max_bars_is_a_positive_integer(most):
    with pytest.raises(InvalidArgument, match="max_bars"):
        select(Trace(()), None, None, most)
