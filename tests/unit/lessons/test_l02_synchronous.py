"""Lesson 02: every plausible wrong answer gets the sentence that says what is wrong with it."""

from __future__ import annotations

import pytest

from labkit.engine.loop import run_async
from labkit.lessons import l02_synchronous as lesson
from labkit.lessons.support.loops import WITHOUT

IDLE = lesson.idle_share.solutions[0]


def share_of_lanes(trace):
    return 1 - sum(span.duration_ns for span in trace.spans if span.lane != "CPU") / trace.duration_ns


def share_up_to_the_last_issued(trace):
    busy = sum(span.duration_ns for span in trace.lane("compute"))
    return 1 - busy / (trace.spans[-1].end_ns - trace.spans[0].start_ns)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (share_up_to_the_last_issued, "not the last one to end"),
        (lambda trace: 1 - IDLE(trace), "the share in which the GPU works"),
        (lambda trace: 100 * IDLE(trace), "in percent"),
        (share_of_lanes, "Copies count as work"),
        (lambda trace: IDLE(trace) * trace.duration_ns, "the idle time in ns"),
        (lambda trace: sum(s.duration_ns for s in trace.of_kind("phase")) / trace.duration_ns, "the host is inside"),
        (lambda trace: 0.5, "the length of all gaps"),
        (lambda trace: None, "has to return a number"),
    ],
)
def test_idle_share_names_the_slip(answer, says) -> None:
    result = lesson.idle_share.check(answer)
    assert not result.passed
    assert says in result.says


def whole_phases(gaps, phases):
    shares: dict[str, int] = {}
    for phase in phases:
        shares[phase.name] = shares.get(phase.name, 0) + phase.duration_ns
    return shares


def first_gap_alone(gaps, phases):
    return lesson.idle_by_phase.solutions[0](gaps[:1], phases)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (whole_phases, "count what lies in a gap"),
        (first_gap_alone, "Too little for plan"),
        (lambda gaps, phases: {}, "Too little for plan"),
        (lambda gaps, phases: {"plan": "3 ms"}, "no number"),
        (lambda gaps, phases: None, "Return a dict"),
        (lambda gaps, phases: {"plan": 10**12}, "Too much for plan"),
    ],
)
def test_idle_by_phase_names_the_slip(answer, says) -> None:
    result = lesson.idle_by_phase.check(answer)
    assert not result.passed
    assert says in result.says


def all_phases(engine, *, without=(), order=("fill", "upload", "compute", "download")):
    while (batch := engine.plan()) is not None:
        slot = engine.slots.next()
        for phase in order:
            if phase not in without:
                getattr(engine, phase)(slot, batch)
        yield engine.settle(slot, batch)


@pytest.mark.parametrize("phase", ["fill", "upload", "compute", "download"])
def test_a_missing_phase_is_named_with_what_follows_from_it(phase) -> None:
    result = lesson.in_turns.check(lambda engine: all_phases(engine, without=(phase,)))
    assert f"Step 0 has no {phase}: {WITHOUT[phase]}" == result.says
    assert phase not in result.yours


def never_settled(engine):
    while (batch := engine.plan()) is not None:
        slot = engine.slots.next()
        engine.fill(slot, batch)
        engine.upload(slot, batch)
        engine.compute(slot, batch)
        engine.download(slot, batch)
        yield []


def yields_nothing_known(engine):
    while (batch := engine.plan()) is not None:
        slot = engine.slots.next()
        engine.fill(slot, batch)
        engine.upload(slot, batch)
        engine.compute(slot, batch)
        engine.download(slot, batch)
        engine.settle(slot, batch)
        yield None


def one_step(engine):
    yield next(all_phases(engine))


def plans_for_ever(engine):
    while True:
        engine.plan()
    yield []


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda engine: all_phases(engine, order=("upload", "fill", "compute", "download")), "out of order"),
        (never_settled, "has no settle"),
        (yields_nothing_known, "Yield what settle returns"),
        (one_step, "still had tokens to come"),
        (plans_for_ever, "never ends"),
        (run_async, "looking ahead"),
        (lambda engine: None, "has to be a generator"),
    ],
)
def test_in_turns_names_the_slip(answer, says) -> None:
    result = lesson.in_turns.check(answer)
    assert not result.passed
    assert says in result.says
