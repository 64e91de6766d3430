"""What judges the answers of lesson 06 about rows: where a row's token comes from, and which row is dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from labkit.engine.batch import Batch
from labkit.engine.core import EngineCore
from labkit.engine.request import Request, TokenEvent
from labkit.engine.sampling import SamplingParams
from labkit.engine.scheduler import Scheduler
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.patched import (
    PROMPTS,
    SIZES,
    Refusal,
    counted,
    patched_engine,
    reverse_rows,
    right_tokens,
    run_patched,
)

Answer = Callable[..., Any]
MOST_STEPS = 100


# -- 6.3 -------------------------------------------------------------------------------------------------------------

_CHUNKS = [[9, 8, 7, 6, 5], [2, 2, 3, 4], [3, 2, 3, 4, 4, 4, 4], [4, 2, 3, 4], [5, 3, 1]]
_TIGHT = replace(SIZES, num_blocks=11, token_budget=5)


class _Rows:
    """Observer: replaces ``carries`` of a planned step by the learner's, and notes the first that differs."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.last: Batch | None = None
        self.first_wrong: tuple[str, str, str] | None = None

    def planned(self, batch: Batch, scheduler: Scheduler) -> None:
        flying = self.last if scheduler.in_flight > 1 else None
        before = [] if flying is None else [(r.id, s) for r, s in zip(flying.requests, flying.samples, strict=True)]
        decodes = [request.id for request in batch.requests[: batch.shape.decode_rows]]
        truth, most = batch.carries[: len(decodes)], SIZES.max_rows
        given = _checked_rows(self.answer(list(decodes), list(before)), len(decodes), most) if decodes else []
        if given != truth and self.first_wrong is None:
            self.first_wrong = _row_sentence(batch.step, decodes, before, given, truth)
        batch.carries[: len(decodes)] = given
        self.last = batch


def _checked_rows(given: Any, count: int, most: int) -> list[int]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(row, int) for row in given):
        raise Refusal(wrong("The answer has to be a list of whole numbers.", yours=given, expected="a list"))
    if len(given) != count or not all(-1 <= row < most for row in given):
        raise Refusal(
            wrong(
                "A number for each row of the batch, and each -1 or a row of the step before.",
                yours=given,
                expected=f"{count} numbers from -1 to {most - 1}",
            )
        )
    return list(given)


def _row_sentence(
    step: int, decodes: list[int], before: list[tuple[int, bool]], given: list[int], truth: list[int]
) -> tuple[str, str, str]:
    place = next(place for place, pair in enumerate(zip(given, truth, strict=True)) if pair[0] != pair[1])
    request = decodes[place]
    where = {name: (row, sampled) for row, (name, sampled) in enumerate(before)}.get(request)
    if where is None:
        why = f"request {request} is not in the step in flight, so the host knows its token"
    elif not where[1]:
        why = f"row {where[0]} of the step before is a chunk of request {request}'s prompt that samples nothing"
    else:
        why = f"request {request} was in row {where[0]} of the step before"
    says = f"Step {step}, row {place}: {why}."
    return says, f"{given} for batch {decodes}, before {before}", str(truth)


def judge_carry_rows(answer: Answer, device: str) -> Result:
    """Every step of a run with reversed rows, chunks and too few blocks."""
    rows = _Rows(answer)
    options: dict[str, Any] = {"prompts": _CHUNKS, "sizes": _TIGHT}
    try:
        run = run_patched(device, "carry_over", reverse_rows, observers=(rows,), **options)
    except Refusal as refusal:
        return refusal.result
    expected = run_patched(device, "default_stream", **options)
    if rows.first_wrong:
        says, yours, truth = rows.first_wrong
        return wrong(says, yours=f"{yours}; {right_tokens(run.tokens, expected.tokens)}", expected=truth)
    assert run.tokens == expected.tokens, "the right rows give the right tokens"
    moved = sum(row.carry_from not in (-1, place) for step in run.steps for place, row in enumerate(step.rows))
    return right(f"Every row of {run.stats['steps']} steps is right; {moved} of them fetched from another row's place.")


# -- 6.4 -------------------------------------------------------------------------------------------------------------

_ENDS = SamplingParams(max_new_tokens=12, eos_token_ids=(33,))


class _Settle:
    """In place of ``Scheduler.settle``: asks the learner which tokens to deliver."""

    def __init__(self, scheduler: Scheduler, answer: Answer) -> None:
        self.scheduler, self.answer = scheduler, answer

    def __call__(self, batch: Batch, tokens: list[int], logprobs: list[float] | None) -> list[TokenEvent]:
        scheduler, events = self.scheduler, []
        scheduler.settled = batch.step
        for row, request in enumerate(batch.requests):
            if not batch.samples[row]:
                continue
            request.pending -= 1
            if self._wanted(request, tokens[row]):
                events.append(scheduler._append(request, tokens[row], None))
            else:
                scheduler.overruns += 1
        scheduler.pool.step_ended(batch.step)
        return events

    def _wanted(self, request: Request, token: int) -> bool:
        wanted = self.answer(request, token)
        if not isinstance(wanted, bool) and wanted not in (0, 1):
            raise Refusal(wrong("The answer has to be True or False.", yours=repr(wanted), expected="True or False"))
        if not wanted and not request.finished:
            last = " It is the end-of-sequence token, which belongs to the output." * (token in request.eos_token_ids)
            raise Refusal(
                wrong(
                    f"Token {token} of request {request.id} was dropped, and the request had not ended.{last}",
                    yours=f"dropped after {request.generated} tokens",
                    expected="every token up to the end",
                )
            )
        return bool(wanted)


def judge_deliver(answer: Answer, device: str) -> Result:
    """Tokens as those of rung 0, where two of four requests end by end-of-sequence."""

    def change(core: EngineCore) -> None:
        core.scheduler.settle = _Settle(core.scheduler, answer)  # type: ignore[method-assign]

    expected = run_patched(device, "default_stream", params=_ENDS)
    try:
        with patched_engine(device, "carry_over", change) as engine:
            requests = [engine.submit(prompt, _ENDS) for prompt in PROMPTS]
            for _ in range(MOST_STEPS):
                engine.step()
            outputs, overruns = [request.output for request in requests], engine.core.scheduler.overruns
    except Refusal as refusal:
        return refusal.result
    for number, (mine, theirs) in enumerate(zip(outputs, expected.tokens, strict=True)):
        if mine != theirs:
            more = counted(len(mine) - len(theirs), "token")
            return wrong(
                f"Request {number} ended with token {theirs[-1]} and got {more} more, of the step that was in flight "
                "when the host learnt of the end.",
                yours=mine,
                expected=theirs,
            )
    return right(f"{overruns} overrun rows were dropped, one for each request that ended by end-of-sequence.")
