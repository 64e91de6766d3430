"""The engine's scheduler with a learner's rule in it: who gets how much of a step's token budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.engine.batch import Batch
from labkit.engine.request import State
from labkit.engine.scheduler import Scheduler
from labkit.entry import Engine
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.schedules import MOST_STEPS, Served, taken
from labkit.sizes import Sizes


class ShareMistake(Exception):
    """A share of the token budget that no step can be made of: the sentence for the learner, and what was shared."""

    def __init__(self, says: str, needs: list[int], counts: Any) -> None:
        super().__init__(says)
        self.yours = f"needs {needs}, counts {counts}"


class SharingScheduler(Scheduler):
    """The engine's scheduler with a rule of someone else's: ``share(needs, budget)`` gives the tokens of each request.

    Every waiting request that has a row left enters before the rule is asked. ``shared`` keeps (needs, counts).
    """

    def __init__(self, sizes: Sizes, share: Callable[[list[int], int], Any]) -> None:
        super().__init__(sizes)
        self.share = share
        self.shared: list[tuple[list[int], list[int]]] = []

    def plan(self, now_ns: int) -> Batch | None:
        while self.waiting and self._seats:
            self._seat(self.waiting.popleft())
        able = [r for r in self.running if r.state is State.RUNNING and r.total > r.computed and r.total < r.limit]
        if not able:
            return None
        needs = [request.total - request.computed for request in able]
        counts = _checked(self.share(list(needs), self.sizes.token_budget), needs, self.sizes.token_budget)
        self.shared.append((needs, counts))
        chosen = [(request, count) for request, count in zip(able, counts, strict=True) if count]
        for request, count in chosen:
            self._reserve(request, request.computed + count)
            request.last_step = self.steps
        return self._batch([r for r, count in chosen if count == 1], [one for one in chosen if one[1] > 1])


def _checked(counts: Any, needs: list[int], budget: int) -> list[int]:
    says = _says(counts, needs, budget)
    if says:
        raise ShareMistake(says, needs, counts)
    return list(counts)


def _says(counts: Any, needs: list[int], budget: int) -> str:
    """Why no step can be made of these counts, or nothing."""
    if not isinstance(counts, list | tuple) or not all(type(count) is int for count in counts):
        return "share has to return a list of whole numbers."
    if len(counts) != len(needs):
        return f"There were {len(needs)} requests, and share returned {len(counts)} numbers."
    for row, (count, need) in enumerate(zip(counts, needs, strict=True)):
        if not 0 <= count <= need:
            return f"Request {row} needs {need} tokens computed, and got {count}."
    if sum(counts) > budget:
        return f"The step has {sum(counts)} tokens, and the budget is {budget}."
    return "" if any(counts) else "The step is empty: nobody got a token, and it will be so for ever."


# -- the check ---------------------------------------------------------------------------------------------------------

SHARED_PROMPTS = [[1] * 90, [2, 3], [4] * 25, [5]]  # the longest first, so that serving in order would starve the rest
BUDGET = 16


def judge_share(answer: Callable[[list[int], int], Any], device: str) -> Result:
    sizes = Sizes(max_rows=len(SHARED_PROMPTS), token_budget=BUDGET, num_blocks=64, max_model_len=128)
    with Engine.from_pretrained("toy", switches=0, device=device, sizes=sizes) as engine:
        expected = engine.generate(SHARED_PROMPTS, max_new_tokens=6)
    with Engine.from_pretrained("toy", switches=0, device=device, sizes=sizes) as engine:
        scheduler = engine.core.scheduler = SharingScheduler(sizes, answer)
        engine.core._filler.scheduler = scheduler
        try:
            served = _run_shared(engine)
        except ShareMistake as mistake:
            return wrong(
                str(mistake), yours=mistake.yours, expected=f"at most {BUDGET} tokens in a step, and at least one"
            )
    result = _judge_shares(scheduler.shared)
    if result is not None:
        return result
    if served.tokens != expected.tokens:
        return wrong("The tokens are wrong.", yours=served.tokens, expected=expected.tokens)
    chunks = sum(
        need > count > 0 for needs, counts in scheduler.shared for need, count in zip(needs, counts, strict=True)
    )
    return right(f"{len(scheduler.shared)} steps; {chunks} times a prompt was cut; nobody who decodes stood still.")


def _run_shared(engine: Engine) -> Served:
    requests = [engine.submit(prompt, max_new_tokens=6) for prompt in SHARED_PROMPTS]
    for _ in range(MOST_STEPS):
        if not engine.busy:
            break
        for batch in iter(engine.core.plan, None):
            slot = engine.core.slots.next()
            for phase in ("fill", "upload", "compute", "download", "settle"):
                getattr(engine.core, phase)(slot, batch)
    return taken(engine, requests)


def _judge_shares(shared: list[tuple[list[int], list[int]]]) -> Result | None:
    """The first step in which somebody who decodes stood still, or in which room was left."""
    for step, (needs, counts) in enumerate(shared):
        held_up = [row for row, (need, count) in enumerate(zip(needs, counts, strict=True)) if need == 1 and not count]
        if held_up:
            says = f"In step {step} request {held_up[0]} needed one token and got none: its reader waits for a prompt."
            return wrong(says, yours=f"needs {needs}, counts {counts}", expected="one token for each need of 1")
        room = min(BUDGET, sum(needs)) - sum(counts)
        if room:
            says = f"In step {step} {room} tokens of the budget were left, and a prompt could have used them."
            return wrong(
                says, yours=f"needs {needs}, counts {counts}", expected="the whole budget, while somebody needs it"
            )
    return None
