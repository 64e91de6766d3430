"""Lesson 08: every plausible wrong answer gets the sentence that says what is wrong with it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from labkit.lessons import l08_full_async as lesson


def every_step(trace):
    return [step for step, *_ in lesson.in_flight(trace)]


def every_step_but_the_first(trace):
    return every_step(trace)[1:]


def beside_the_hosts_compute(trace):
    phases = list(trace.of_kind("phase"))
    plans, others = ([span for span in phases if span.name == name] for name in ("plan", "compute"))
    return [
        p.step for p in plans for o in others if o.step < p.step and o.start_ns < p.end_ns and p.start_ns < o.end_ns
    ]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (every_step, "In the asynchronous run step 0 was not planned"),
        (every_step_but_the_first, "In the synchronous run step 1 was not planned"),
        (beside_the_hosts_compute, "In the asynchronous run step 1 was planned"),
        (lambda trace: every_step_but_the_first(trace) if len(every_step(trace)) and overlaps(trace) else [], "slower"),
        (lambda trace: None, "Return a list"),
    ],
)
def test_overlapped_names_the_run_and_the_step(answer, says) -> None:
    result = lesson.overlapped.check(answer)
    assert not result.passed
    assert says in result.says


def overlaps(trace):
    return bool(lesson.overlapped.solutions[0](trace))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda host, gpu: (host + gpu) / gpu, "host 12 ms, GPU 4 ms: the host is the slower one"),
        (lambda host, gpu: (host + gpu) / host, "host 3 ms, GPU 9 ms: the GPU is the slower one"),
        (lambda host, gpu: max(host, gpu) / (host + gpu), "turn it over"),
        (lambda host, gpu: 2, "equal halves"),
        (lambda host, gpu: 1.5, "the longer of the two"),
        (lambda host, gpu: float("nan"), "the longer of the two"),
        (lambda host, gpu: None, "the longer of the two"),
    ],
)
def test_speedup_names_the_case_and_the_slip(answer, says) -> None:
    result = lesson.speedup.check(answer)
    assert not result.passed
    assert says in result.says


def test_a_better_loop_has_the_better_score() -> None:
    score = lesson.look_ahead.score(lesson.look_ahead.solutions[0])
    assert score.value == score.best
    assert lesson.look_ahead.score(lesson.look_ahead.starter).value is None


def test_steps_in_flight_are_told_from_the_trace() -> None:
    rows = lesson.in_flight(lesson.run("virtual").trace)
    assert [row[0] for row in rows] == list(range(6))
    for _, planned, begun, done, settled in rows:
        assert planned < begun < done < settled
    assert all(later[1] < earlier[3] for earlier, later in pairwise(rows))
