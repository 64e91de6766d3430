"""Use that nobody planned for: odd types, calls in calls, streams left alone. Clear errors, nothing lost, no hang."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

import labkit
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import Cancelled, EngineClosed
from tests.engine.harness import ask, build, expected, play, prompt, run_out, sizes

PROMPT = prompt(6)
WANTED = list(expected([ask(PROMPT, 8)], 4)[0].tokens)

SPELLINGS: dict[str, Callable[[], Any]] = {
    "tuple": lambda: PROMPT,
    "range": lambda: range(11, 17),
    "iterator": lambda: iter(PROMPT),
    "array": lambda: np.array(PROMPT),
    "uint8 array": lambda: np.array(PROMPT, np.uint8),
    "numpy integers": lambda: [np.int64(token) for token in PROMPT],
    "tensor": lambda: torch.tensor(PROMPT),
    "int32 tensor": lambda: torch.tensor(PROMPT, dtype=torch.int32),
    "tensor elements": lambda: list(torch.tensor(PROMPT)),
    "bytes": lambda: bytes(PROMPT),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_prompt_may_be_any_sequence_of_integers(spelling: str) -> None:
    given = SPELLINGS[spelling]()
    with build(5, sizes(4)) as engine:
        request = engine.submit(given, max_new_tokens=np.int32(8), temperature=np.float32(0.0), seed=np.int64(3))
        assert all(type(token) is int for token in request.prompt)
        assert (spelling == "range") != (request.prompt == list(PROMPT))
        run_out(engine)
        assert request.output == list(expected([ask(request.prompt, 8)], 4)[0].tokens)


def test_prompts_may_be_a_matrix_or_a_generator() -> None:
    with build(5, sizes(4)) as engine:
        for prompts in (np.array([PROMPT] * 2), torch.tensor([PROMPT] * 2), (PROMPT for _ in range(2))):
            assert engine.generate(prompts, max_new_tokens=8).tokens == [WANTED] * 2  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["naïve ☃ 🦊 \u202e", "\x00", " ", "日本語のプロンプト"])
def test_any_text_is_a_prompt(text: str) -> None:
    with build(6, sizes(4)) as engine:
        run = engine.generate([text], max_new_tokens=5)
    assert run.prompts == [list(text.encode())]
    assert len(run.texts[0]) == 5


def test_params_and_keywords_combine() -> None:
    with build(5, sizes(4)) as engine:
        params = [SamplingParams(max_new_tokens=3), SamplingParams(max_new_tokens=5)]
        assert [len(tokens) for tokens in engine.generate([PROMPT] * 2, params).tokens] == [3, 5]
        run = engine.generate([PROMPT] * 2, params, logprobs=True)
        assert [len(logprobs) for logprobs in run.logprobs] == [3, 5]
        run = engine.generate([PROMPT] * 2, params[0], max_new_tokens=4)
        assert [len(tokens) for tokens in run.tokens] == [4, 4]


def test_the_callers_lists_are_not_kept(right_rung: int) -> None:
    mine = list(PROMPT)
    with build(right_rung, sizes(4)) as engine:
        request = engine.submit(mine, max_new_tokens=8)
        engine.step()
        mine[:] = [0] * 6
        run_out(engine)
    assert request.output == WANTED


def test_generate_inside_a_stream(right_rung: int) -> None:
    with build(right_rung, sizes(4)) as engine:
        seen = []
        for event in engine.stream(PROMPT, max_new_tokens=8):
            seen.append(event.token)
            if len(seen) in (1, 4):
                other = ask(prompt(9, len(seen)), 5)
                run = engine.generate([other.prompt], other.params)
                assert tuple(run.tokens[0]) == expected([other], 4)[0].tokens
    assert seen == WANTED


def test_two_interleaved_streams(right_rung: int) -> None:
    asks = [ask(PROMPT, 8), ask(prompt(9, 1), 12)]
    with build(right_rung, sizes(4)) as engine:
        streams = [engine.stream(one.prompt, one.params) for one in asks]
        seen: list[list[int | None]] = [[], []]
        for turn in range(12):
            for number, stream in enumerate(streams):
                if turn % (number + 1) == 0:
                    seen[number] += [event.token for event in [next(stream, None)] if event]
        seen[1] += [event.token for event in streams[1]]
    assert [tuple(tokens) for tokens in seen] == [one.tokens for one in expected(asks, 4)]


def test_a_stream_events_are_consecutive_and_end_once(right_rung: int) -> None:
    with build(right_rung, sizes(4)) as engine:
        events = list(engine.stream(PROMPT, max_new_tokens=8))
    assert [event.index for event in events] == list(range(8))
    assert [event.finish_reason for event in events] == [""] * 7 + ["length"]


def test_closing_the_engine_under_an_open_stream(right_rung: int) -> None:
    with build(right_rung, sizes(4)) as engine:
        stream = engine.stream(PROMPT, max_new_tokens=50)
        next(stream)
        engine.close()
        with pytest.raises(Cancelled, match="request 0 was cancelled"):
            list(stream)
        with pytest.raises(EngineClosed):
            engine.generate([PROMPT])


@pytest.mark.parametrize("leave", ["close", "break", "forget"])
def test_leaving_a_stream_early_cancels_its_request(right_rung: int, leave: str) -> None:
    with build(right_rung, sizes(4)) as engine:
        stream = engine.stream(PROMPT, max_new_tokens=100)
        first = next(stream)
        request = engine.core.requests[first.request_id]
        if leave == "close":
            stream.close()  # type: ignore[attr-defined]
        elif leave == "break":
            for _ in stream:
                break
        del stream
        gc.collect()
        assert request.finish_reason == "cancelled"
        assert engine.generate([PROMPT], max_new_tokens=8).tokens == [WANTED]
        assert engine.core.scheduler.pool.free == engine.sizes.num_blocks


@pytest.mark.parametrize("start", [True, False], ids=["started", "never started"])
def test_an_exception_in_the_consumer_of_a_stream(right_rung: int, start: bool) -> None:
    def consume(stream: Iterator[Any]) -> None:
        if start:
            next(stream)
        raise LookupError("mine")

    with build(right_rung, sizes(4)) as engine:
        with pytest.raises(LookupError, match="mine"):
            consume(engine.stream(PROMPT, max_new_tokens=100))
        gc.collect()
        assert engine.core.requests[0].finish_reason == "cancelled"
        assert engine.generate([PROMPT], max_new_tokens=8).tokens == [WANTED]


def test_cancel_in_an_event_loop(right_rung: int) -> None:
    """Whoever reaches three tokens is cancelled from the loop over the events that say so."""
    with build(right_rung, sizes(4, max_rows=3)) as engine:
        requests = [engine.submit(prompt(4, i), max_new_tokens=20) for i in range(7)]
        ends = []
        while engine.busy:
            for event in engine.step():
                if event.index == 2 and event.token is not None:
                    assert engine.cancel(event.request_id)
                if event.finish_reason:
                    ends.append(event.request_id)
        assert sorted(ends) == list(range(7))
        assert {(len(request.output), request.finish_reason) for request in requests} == {(3, "cancelled")}


def test_submitting_from_an_event_loop(right_rung: int) -> None:
    with build(right_rung, sizes(4, max_rows=2)) as engine:
        requests = [engine.submit(PROMPT, max_new_tokens=3)]
        while engine.busy:
            for event in engine.step():
                if event.finish_reason and len(requests) < 5:
                    requests.append(engine.submit(PROMPT, max_new_tokens=3))
        assert [request.output for request in requests] == [WANTED[:3]] * 5


def test_a_late_request_does_not_overtake_those_that_have_arrived(right_rung: int) -> None:
    """No arrival time means now, not the beginning of time."""
    with build(right_rung, sizes(4, max_rows=1)) as engine:
        first = [engine.submit(prompt(4, i), max_new_tokens=4, arrival_ns=1000 * i) for i in range(3)]
        for _ in range(2):
            engine.step()
        late = engine.submit(prompt(4, 9), max_new_tokens=4)
        ended = []
        while engine.busy:
            ended += [event.request_id for event in engine.step() if event.finish_reason]
    assert ended == [request.id for request in (*first, late)]


def test_two_engines_side_by_side() -> None:
    with build(5, sizes(4)) as one, build(6, sizes(16)) as other:
        streams = [one.stream(PROMPT, max_new_tokens=8), other.stream(PROMPT, max_new_tokens=8)]
        seen = [(a.token, b.token) for a, b in zip(*streams, strict=True)]
    assert seen == [(token, token) for token in WANTED]


ENGINE_FILES = {str(path) for path in (Path(labkit.__file__).parent / "engine").glob("*.py")}


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line that the engine executes."""

    def __init__(self, line: int) -> None:
        self.left = line

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in ENGINE_FILES:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.trace


def interrupted(engine: Engine, line: int) -> bool:
    """Run a generate and interrupt it; False if it has no line of that number."""
    outer = sys.gettrace()
    sys.settrace(Interrupt(line).trace)
    try:
        engine.generate([prompt(9, 8), prompt(3, 9)], max_new_tokens=3)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    return False


@pytest.mark.parametrize("rung", [0, 6])
def test_an_interrupt_at_any_line_loses_nothing(rung: int) -> None:
    """Ctrl-C where it falls; then the other requests end right, and a new generate is right too."""
    others = [ask(prompt(7, i), 30) for i in range(2)]
    lines = [*range(1, 60, 13), *range(60, 900, 120)]
    hits = 0
    for line in lines:
        with build(rung, sizes(4)) as engine:
            requests = [engine.submit(one.prompt, one.params) for one in others]
            for _ in range(2):
                engine.step()
            hits += interrupted(engine, line)
            run_out(engine)
            wanted = expected(others, 4)
            assert [tuple(request.output) for request in requests] == [one.tokens for one in wanted], f"line {line}"
            assert engine.core.scheduler.pool.free == engine.sizes.num_blocks
            assert play(engine, others).outcomes == wanted
    assert hits > 8
