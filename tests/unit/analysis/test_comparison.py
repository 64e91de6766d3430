"""Two runs step by step: a step ends when its tokens are known, and the steps sum to the run."""

import pytest

from labkit.analysis.comparison import compare_runs, step_begin, step_ends
from labkit.trace.events import Span, Trace
from tests.unit.synthetic import US, async_trace, sync_trace


def test_a_step_ends_with_its_settle_phase():
    trace = sync_trace(3)
    ends = step_ends(trace)
    settles = {span.step: span.end_ns for span in trace.spans if span.name == "settle"}
    assert ends == settles
    assert list(ends) == [0, 1, 2]


def test_without_phases_a_step_ends_with_its_last_span():
    spans = (Span(0, "kernel", "k", "compute", 0, 5, step=4), Span(1, "copy", "c", "D2H", 5, 9, step=4))
    assert step_ends(Trace(spans)) == {4: 9}
    assert step_ends(Trace(())) == {}


@pytest.mark.parametrize(("a", "b"), [(sync_trace(5), async_trace(5)), (async_trace(4), async_trace(4, 10 * US))])
def test_the_steps_sum_to_the_end_of_the_last_one(a, b):
    steps = compare_runs(a, b).steps
    assert sum(step.a_ns for step in steps) == list(step_ends(a).values())[-1] - a.start_ns
    assert sum(step.b_ns for step in steps) == list(step_ends(b).values())[-1] - b.start_ns
    assert all(step.difference_ns == step.b_ns - step.a_ns for step in steps)


def test_the_asynchronous_run_gains_in_every_step():
    result = compare_runs(sync_trace(6), async_trace(6))
    assert [step.difference_ns < 0 for step in result.steps] == [True] * 6
    assert result.change < 0 < 1 < result.speedup
    assert result.speedup == pytest.approx(1 / (1 + result.change))


def test_a_run_compared_with_itself_has_no_difference():
    result = compare_runs(async_trace(3), async_trace(3))
    assert (result.change, result.speedup) == (0, 1)
    assert [step.difference_ns for step in result.steps] == [0, 0, 0]


def test_steps_are_counted_from_the_first_of_each_run():
    def run(first):
        return Trace(tuple(Span(n, "kernel", "k", "compute", n * 10, n * 10 + 10, step=first + n) for n in range(3)))

    assert [step.step for step in compare_runs(run(0), run(7)).steps] == [0, 1, 2]


def test_only_steps_of_both_runs_are_compared_and_an_empty_run_is_no_error():
    assert len(compare_runs(sync_trace(2), sync_trace(5)).steps) == 2
    empty = compare_runs(Trace(()), sync_trace(2))
    assert (empty.steps, empty.change) == ((), 0)
    assert compare_runs(sync_trace(2), Trace(())).speedup == 0


def test_a_step_begins_on_the_gpu_where_it_has_something_there():
    trace = sync_trace(2)
    assert step_begin(trace, 1) == next(span.start_ns for span in trace.step(1) if span.kind == "kernel")
    assert step_begin(Trace((Span(0, "phase", "plan", "CPU", 3, 5, step=0),)), 0) == 3
