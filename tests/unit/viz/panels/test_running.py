from __future__ import annotations

import pytest
import torch

from labkit import Engine, Switches, ladder
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


class LikeCuda(Running):
    """A real GPU's clock goes on between two calls: here it does because the test lets it."""

    def _build(self, switches: Switches) -> Engine:
        asked, self.device = self.device, "virtual"
        try:
            return super()._build(switches)
        finally:
            self.device = asked


@pytest.mark.parametrize("rung", [0, 5, 6])
def test_on_a_device_whose_clock_goes_on_a_call_ends_idle_and_what_passes_between_is_cut_out(rung: int) -> None:
    running = LikeCuda(rung, device="cuda")
    for _ in range(6):
        running.advance(4)
        assert running._rolling.in_flight == 0
        stood = running.now_ns
        running._engine.device.sleep_until(running._engine.device.now_ns() + 10**9)
    spans = running.trace.spans
    assert running.now_ns == stood < 10**9
    assert all(0 <= span.start_ns <= span.end_ns <= stood for span in spans)
    assert (running.wrong, running.finished > 0) == (0, True)
    running.want(cuda_graphs=rung != 6)
    running.advance(4)
    assert running.flips[0].start_ns == stood
    running.close()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_on_a_real_gpu_it_runs_flips_and_is_right() -> None:
    running = Running(0, device="cuda")
    for rung in (0, 2, 5, 6, 2):
        running.want(**{name: getattr(ladder(rung), name) for name in MECHANISMS})
        for _ in range(5):
            running.advance(8)
        assert (running.wrong, running.finished > 0) == (0, True)
        assert 0 < running.report().gpu_active <= 1
    assert len(running.flips) == 4
    running.close()
