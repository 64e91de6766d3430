"""A learner's loop is driven by hand, call by call, and never for ever."""

from __future__ import annotations

from labkit.engine.loop import run_async, run_sync
from labkit.lessons.support.loops import LENGTHS, MOST_STEPS, Call, drive
from labkit.trace.events import PHASES


def test_the_engines_own_loop_is_what_it_is_compared_with() -> None:
    mine, engines = drive(run_sync, "virtual", "default_stream")
    assert mine.calls == engines.calls
    assert mine.tokens == engines.tokens
    assert [len(tokens) for tokens in mine.tokens] == list(LENGTHS)
    assert mine.ended
    assert mine.waiting == 0
    assert mine.steps == len(mine.yielded)


def test_calls_are_noted_in_order_with_their_step() -> None:
    mine, _ = drive(run_sync, "virtual", "default_stream")
    assert mine.calls[: len(PHASES)] == [Call(phase, 0) for phase in PHASES]
    assert mine.calls[-1] == Call("plan", -1)
    assert mine.at("settle", 1) < mine.at("plan", 2)
    assert mine.at("settle", 99) == -1
    assert [span.name for span in mine.spans(("plan", 1), ("settle", 1))] == ["plan", "settle"]


def test_plan_finds_nothing_while_a_step_is_in_flight_and_requests_wait() -> None:
    """What makes these four requests a test of the asynchronous loop: its first None is not the end."""
    _, engines = drive(run_async, "virtual", "carry_over")
    assert engines.at("plan", -1) < engines.at("plan", engines.steps - 1)


def test_a_function_that_is_no_generator_is_a_mistake() -> None:
    mine, _ = drive(lambda engine: [], "virtual", "default_stream")
    assert "generator" in mine.mistake


def test_a_phase_that_runs_twice_is_a_mistake() -> None:
    def loop(engine):
        batch, slot = engine.plan(), engine.slots.next()
        while True:
            engine.fill(slot, batch)
            yield []

    mine, _ = drive(loop, "virtual", "default_stream")
    assert mine.mistake == "Step 0 went through fill twice; each phase runs once a step."


def test_a_phase_without_a_batch_is_a_mistake() -> None:
    def loop(engine):
        engine.fill(engine.slots.next(), None)
        yield []

    mine, _ = drive(loop, "virtual", "default_stream")
    assert "the batch from plan()" in mine.mistake


def test_a_loop_that_yields_for_ever_is_stopped() -> None:
    def loop(engine):
        while True:
            yield []

    mine, _ = drive(loop, "virtual", "default_stream")
    assert not mine.ended
    assert len(mine.yielded) == MOST_STEPS


def test_a_loop_that_plans_for_ever_is_stopped() -> None:
    def loop(engine):
        while True:
            engine.plan()
        yield []

    mine, _ = drive(loop, "virtual", "default_stream")
    assert "never ends" in mine.mistake
