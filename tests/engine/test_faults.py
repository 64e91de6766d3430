"""Engine case 19: a step fails. Every caller is told the cause, nothing is lost, and the engine goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
import torch

from labkit.device.virtual import VirtualDevice
from labkit.device.virtual.hardware import Hardware
from labkit.engine.request import Request
from labkit.entry import Engine
from labkit.errors import EngineFault
from labkit.model.api import BatchInputs
from labkit.model.toy import ToyModel
from tests.engine.harness import CONTEXT, ask, build, check_events, expected, play, prompt, run_out, sizes

FAILURES = {"error": RuntimeError("kernel exploded"), "memory": torch.OutOfMemoryError("CUDA out of memory")}
ASKS = [ask(prompt(6, i), 12 + i) for i in range(4)]


class FailingToy(ToyModel):
    """A toy model whose forward pass raises once, at the call that ``fail_at`` names (counted from 1)."""

    def __init__(self, failure: BaseException, fail_at: int) -> None:
        super().__init__(max_model_len=CONTEXT)
        self.failure, self.fail_at, self.calls = failure, fail_at, 0

    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        self.calls += 1
        if self.calls == self.fail_at:
            raise self.failure
        return super().forward(inputs, kv)


@pytest.fixture(params=FAILURES)
def failure(request: pytest.FixtureRequest) -> BaseException:
    return FAILURES[request.param]


@pytest.fixture(params=[("memory", 1), ("error", 2), ("memory", 7)], ids=lambda param: f"{param[0]}-in-step{param[1]}")
def failing(request: pytest.FixtureRequest) -> FailingToy:
    """The first step prefills, the others decode: on the graph rung they are replays, with a step enqueued behind."""
    what, step = request.param
    return FailingToy(FAILURES[what], step)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def step_until_fault(engine: Engine) -> EngineFault:
    with pytest.raises(EngineFault) as caught:
        run_out(engine)
    return caught.value


def assert_works(engine: Engine, block_size: int) -> None:
    """The engine is idle, owns all its blocks, and gives right tokens."""
    run_out(engine)
    assert engine.core.scheduler.pool.free == engine.sizes.num_blocks
    assert play(engine, ASKS).outcomes == expected(ASKS, block_size)


def test_generate_raises_the_cause(block_size: int, right_rung: int, failing: FailingToy) -> None:
    with build(right_rung, sizes(block_size), failing) as engine:
        with pytest.raises(EngineFault, match=f"step failed: {type(failing.failure).__name__}: ") as caught:
            engine.generate([one.prompt for one in ASKS], [one.params for one in ASKS])
        assert failing.failure in causes(caught.value)
        assert_works(engine, block_size)


def test_submitted_requests_end_with_the_error(block_size: int, right_rung: int, failing: FailingToy) -> None:
    with build(right_rung, sizes(block_size, max_rows=3), failing) as engine:
        requests = [engine.submit(one.prompt, one.params) for one in ASKS]  # the fourth waits
        assert failing.failure in causes(step_until_fault(engine))
        assert [request.finish_reason for request in requests] == ["error"] * 4
        assert all(request.error is failing.failure for request in requests)
        events = []
        events += run_out(engine)
        assert sorted(event.request_id for event in events) == [request.id for request in requests]
        assert {(event.token, event.finish_reason) for event in events} == {(None, "error")}
        assert_works(engine, block_size)


def test_what_was_known_before_the_fault_is_right(block_size: int, right_rung: int, failure: BaseException) -> None:
    with build(right_rung, sizes(block_size), FailingToy(failure, 7)) as engine:
        requests: list[Request] = [engine.submit(one.prompt, one.params) for one in ASKS]
        step_until_fault(engine)
    for request, outcome in zip(requests, expected(ASKS, block_size), strict=True):
        known = len(request.output)
        assert known in (5, 6), "a fault surfaces at the host's next wait, which may be for the step before"
        assert tuple(request.output) == outcome.tokens[:known]


def test_every_stream_is_told(block_size: int, right_rung: int, failing: FailingToy) -> None:
    with build(right_rung, sizes(block_size), failing) as engine:
        streams = [engine.stream(one.prompt, one.params) for one in ASKS[:3]]
        for stream in streams:  # the first runs into the fault, the others find it
            with pytest.raises(EngineFault) as caught:
                list(stream)
            assert failing.failure in causes(caught.value)
        assert_works(engine, block_size)


@pytest.mark.parametrize("rung", [5, 6])
def test_steps_in_flight_behind_the_fault_leave_nothing(block_size: int, rung: int, failure: BaseException) -> None:
    """A step is enqueued behind the failed one; a graph is dropped in the middle of its replay."""
    failing = FailingToy(failure, 5)
    with build(rung, sizes(block_size), failing) as engine:
        requests = [engine.submit(one.prompt, one.params) for one in ASKS]
        step_until_fault(engine)
        scheduler = engine.core.scheduler
        assert (scheduler.in_flight, scheduler.pool.free) == (0, engine.sizes.num_blocks)
        assert scheduler.steps - len(requests[0].output) == 2, "one step being settled, one more in flight"
        assert not any(request.pending for request in requests)
        assert_works(engine, block_size)


@pytest.mark.parametrize("phase", ["plan", "fill", "upload", "compute", "download", "settle"])
def test_a_fault_on_the_host_in_any_phase(right_rung: int, phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with build(right_rung, sizes(4)) as engine:
        fault, fail = ValueError(f"{phase} failed"), failing_after(getattr(engine.core, phase), 4)
        with monkeypatch.context() as patch:
            patch.setattr(engine.core, phase, fail(fault))
            with pytest.raises(EngineFault) as caught:
                engine.generate([one.prompt for one in ASKS], max_new_tokens=20)
        assert fault in causes(caught.value)
        assert_works(engine, 4)


def failing_after(phase: Callable[..., object], calls: int) -> Callable[[BaseException], Callable[..., object]]:
    left = [calls]

    def make(fault: BaseException) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            left[0] -= 1
            result = phase(*arguments)
            if not left[0]:
                raise fault
            return result

        return run

    return make


@pytest.mark.parametrize("phase", ["plan", "fill", "upload", "compute", "download", "settle"])
def test_an_interrupt_cancels_its_generate_and_nothing_else(
    right_rung: int, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is no fault: requests of other callers go on, recomputed from the tokens that are known."""
    others, events = ASKS[:2], []
    with build(right_rung, sizes(4)) as engine:
        requests = [engine.submit(one.prompt, one.params) for one in others]
        for _ in range(2):
            events += engine.step()
        with monkeypatch.context() as patch:
            patch.setattr(engine.core, phase, failing_after(getattr(engine.core, phase), 4)(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                engine.generate([prompt(9, 8), prompt(3, 9)], max_new_tokens=20)
        assert engine.core.scheduler.in_flight == 0
        events += run_out(engine)
        assert [request.finish_reason for request in engine.core.requests.values()] == ["length"] * 2 + [
            "cancelled"
        ] * 2
        assert [tuple(request.output) for request in requests] == [one.tokens for one in expected(others, 4)]
        assert_works(engine, 4)
    ends = [event.request_id for event in events if event.finish_reason]
    assert sorted(ends) == sorted({*ends})


def test_a_fault_leaves_a_usable_trace(right_rung: int) -> None:
    """The next run's trace holds that run alone, as a fresh engine's would, with every operation done."""
    traces = []
    for model in (FailingToy(RuntimeError("kernel exploded"), 5), FailingToy(RuntimeError("never"), 0)):
        with Engine(model, switches=right_rung, sizes=sizes(4)) as engine:
            if model.fail_at:
                with pytest.raises(EngineFault):
                    engine.generate([prompt(5)], max_new_tokens=20)
            run = engine.generate([prompt(5)], max_new_tokens=6)
        assert run.trace is not None
        assert all(0 <= span.start_ns <= span.end_ns for span in run.trace.spans)
        assert 0 < run.report().gpu_active <= 1
        traces.append([(span.kind, span.lane, span.phase) for span in run.trace.spans])
    assert traces[0] == traces[1]


def test_events_of_all_requests_after_a_fault(right_rung: int) -> None:
    """One end per request, over the fault: those before it, those it ended, those after it."""
    failing = FailingToy(RuntimeError("kernel exploded"), 6)
    with build(right_rung, sizes(4), failing) as engine:
        requests = [engine.submit(prompt(4, i), max_new_tokens=3 + 5 * i) for i in range(3)]
        events = []
        while engine.busy:
            try:
                events += engine.step()
            except EngineFault:
                requests.append(engine.submit(prompt(4, 9), max_new_tokens=3))
        check_events(requests, events)
        assert [request.finish_reason for request in requests] == ["length", "error", "error", "length"]


@pytest.mark.parametrize("rung", [5, 6])
def test_streams_that_share_a_hardware_queue_recover_too(rung: int) -> None:
    """What the fault dropped must not hold back what comes after it on the same connection."""
    for fail_at in range(2, 7):
        failing = FailingToy(RuntimeError("kernel exploded"), fail_at)
        with build(rung, sizes(4), failing, device=VirtualDevice(hardware=Hardware(connections=1))) as engine:
            step_until_fault_of(engine)
            assert_works(engine, 4)


def step_until_fault_of(engine: Engine) -> None:
    for one in ASKS:
        engine.submit(one.prompt, one.params)
    step_until_fault(engine)
