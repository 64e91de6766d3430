from __future__ import annotations

import pytest

from labkit import Engine, ladder
from labkit.errors import EngineClosed, InvalidArgument, InvalidSwitches
from labkit.switches import MECHANISMS, RUNG_NAMES, explain
from labkit.viz.panels.running import AHEAD, REQUESTS, STEPS_KEPT, Running

RIGHT = [number for number in range(7) if explain(ladder(number)).right]


@pytest.mark.parametrize("rung", range(len(RUNG_NAMES)))
def test_every_rung_runs_on_and_on_with_mixed_batches_right_or_wrong_as_explained(rung: int) -> None:
    running = Running(rung)
    running.advance(60)
    assert running.steps == 60
    assert running.finished > 2 * REQUESTS
    assert (running.wrong == 0) == (rung in RIGHT)
    running.close()


def test_it_does_not_grow() -> None:
    running = Running(5)
    running.advance(30)
    early = len(running.trace.spans)
    running.advance(60)
    assert len(running.trace.spans) <= early * 1.3
    assert len(running._engine.core.requests) == REQUESTS
    running.close()


def test_the_numbers_are_those_of_a_run_to_the_end() -> None:
    """In the middle of a run of equal steps, GPU active is what the engine reports there."""
    running = Running(2)
    running.advance(40)
    with Engine.from_pretrained("toy", switches=2, profile="article-8b") as engine:
        run = engine.generate([[1, 2, 3, 4]] * REQUESTS, max_new_tokens=40)
    plans = {span.step: span.start_ns for span in run.trace.spans if span.name == "plan"}
    period = (plans[30] - plans[20]) / 10
    busy = sum(span.busy_ns for span in run.trace.spans if span.lane == "compute" and 20 <= span.step < 30)
    assert running.report().gpu_active == pytest.approx(busy / 10 / period, abs=0.03)
    assert running.tokens_per_s == pytest.approx(REQUESTS * 1e9 / period, rel=0.1)
    running.close()


def test_a_flip_waits_for_a_step_boundary_drains_and_is_marked_on_the_axis() -> None:
    running = Running(5)
    running.advance(20)
    before, last = running.now_ns, max(span.step for span in running.trace.spans)
    running.want(events=False)
    assert running.pending == ("events",)
    assert running.switches == ladder(5) and not running.flips, "nothing happens before the boundary"
    running.advance(1)
    (flip,) = running.flips
    assert running.pending == () and running.switches == ladder(5).with_(events=False)
    assert flip.text == "events off"
    assert before == flip.start_ns < flip.end_ns <= running.now_ns
    spans = running.trace.spans
    assert not [s for s in spans if s.start_ns < flip.end_ns < s.end_ns], "something ran across the flip"
    assert {s.step for s in spans if s.name == "settle"} >= {last}, "the step in flight was settled"
    assert min(s.step for s in spans if s.start_ns >= flip.end_ns) > last
    running.close()


def test_a_flip_there_and_back_is_no_flip() -> None:
    running = Running(5)
    running.want(events=False)
    running.want(events=True)
    running.advance(3)
    assert not running.flips
    running.close()


def test_flips_move_the_numbers_and_the_verdict() -> None:
    running = Running(0)
    running.advance(30)
    slow = running.report().gpu_active
    running.want(streams=True, events=True, lookahead=True, double_buffering=True, carry_over=True)
    running.advance(30)
    assert running.report().gpu_active > slow + 0.15
    assert (running.wrong, running.finished > 0) == (0, True)
    running.want(carry_over=False)
    running.advance(30)
    assert running.wrong > 0
    running.want(carry_over=True)
    running.advance(30)
    assert (running.wrong, running.finished > 0) == (0, True), "requests start over, so a mended engine is right"
    running.close()


def test_a_host_that_never_waits_is_held() -> None:
    running = Running(1)
    for _ in range(30):
        running.advance()
        assert running._rolling.in_flight <= 3 * (AHEAD + 1)
    assert running.held
    running.close()
    careful = Running(2)
    careful.advance(30)
    assert not careful.held
    careful.close()


def test_steps_kept() -> None:
    running = Running(2)
    running.advance(30)
    settled = [span for span in running.trace.spans if span.name == "settle"]
    assert STEPS_KEPT <= len(settled) <= STEPS_KEPT + 1
    running.close()


def test_bad_input_and_use_after_close() -> None:
    running = Running(2)
    with pytest.raises(InvalidSwitches, match="streems"):
        running.want(streems=True)
    with pytest.raises(InvalidArgument, match="steps=0"):
        running.advance(0)
    running.close()
    running.close()
    with pytest.raises(EngineClosed):
        running.advance()


def test_every_mechanism_can_be_flipped_there_and_back() -> None:
    running = Running(0)
    for name in (*MECHANISMS, *MECHANISMS):
        running.want(**{name: not getattr(running.switches, name)})
        running.advance(2)
    assert running.switches == ladder(0)
    assert [flip.text for flip in running.flips][-1] == "cuda_graphs off"
    running.close()
