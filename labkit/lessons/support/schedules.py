"""Who is in the next step: the engine's own scheduler run by itself, or an engine fed by a rule.

A request here has a prompt of one token, so it is in as many steps as it generates tokens, and time can be counted in
steps.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labkit.engine.request import Request
from labkit.engine.sampling import SamplingParams
from labkit.engine.scheduler import Scheduler
from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.sizes import Sizes
from labkit.steplog import StepRecord
from labkit.trace.events import Trace

POLICIES = ("static", "dynamic", "continuous")
MOST_STEPS = 400


def output_lengths(count: int, cap: int, mean: float = 128, seed: int = 1) -> list[int]:
    """Tokens that each request generates: exponential with this mean, at least 1, cut at ``cap``; the same for every
    cap where they are below it."""
    draw = random.Random(seed).random
    return [min(cap, max(1, math.ceil(-mean * math.log(1 - draw())))) for _ in range(count)]


@dataclass(frozen=True)
class Replay:
    """What a schedule came to.

    steps   how many were run
    used    rows of all steps together: one for every token
    rows    how many rows a step could have had
    waits   of each request: steps from its arrival until its first token was there
    """

    steps: int
    used: int
    rows: int
    waits: tuple[int, ...]

    @property
    def slot_use(self) -> float:
        """Share of the places in all batches that held a request."""
        return self.used / (self.rows * self.steps)

    @property
    def mean_wait(self) -> float:
        return sum(self.waits) / len(self.waits)


def replay(lengths: Sequence[int], rows: int, policy: str, arrivals: Sequence[int] = ()) -> Replay:
    """Run the engine's scheduler without a model, and count.

    Args:
        lengths: tokens that each request generates.
        rows: of a full batch.
        policy: ``static`` waits for a full batch and runs it to its end; ``dynamic`` takes whoever is there, and runs
            them to their end; ``continuous`` is what the engine does.
        arrivals: of each request, in steps, ascending; all at 0 by default.

    Raises:
        InvalidArgument: there is no such policy.
    """
    if policy not in POLICIES:
        raise InvalidArgument("policy", policy, f"one of {', '.join(POLICIES)}")
    scheduler = Scheduler(_sizes(lengths, rows))
    coming = deque(_requests(lengths, arrivals or [0] * len(lengths)))
    waits: dict[int, int] = {}
    clock = steps = used = 0
    while coming or scheduler.running or scheduler.waiting:
        for _ in range(_admitted(policy, coming, scheduler, clock)):
            scheduler.submit(coming.popleft())
        batch = scheduler.plan(clock)
        clock += 1
        if batch is None:
            continue
        steps, used = steps + 1, used + batch.rows
        for request in batch.requests:
            waits.setdefault(request.id, clock - request.arrival_ns)
        scheduler.settle(batch, [0] * batch.rows, None)
    return Replay(steps, used, rows, tuple(waits[number] for number in range(len(lengths))))


def _admitted(policy: str, coming: deque[Request], scheduler: Scheduler, clock: int) -> int:
    """How many of the requests to come enter the scheduler now."""
    here = sum(request.arrival_ns <= clock for request in coming)
    rows = scheduler.sizes.max_rows
    if policy == "continuous":
        return here
    if scheduler.running or scheduler.waiting:
        return 0
    if policy == "static" and here < min(rows, len(coming)):
        return 0
    return min(here, rows)


def _requests(lengths: Sequence[int], arrivals: Sequence[int]) -> list[Request]:
    return [
        Request(number, [1], SamplingParams(max_new_tokens=length), frozenset(), arrival)
        for number, (length, arrival) in enumerate(zip(lengths, arrivals, strict=True))
    ]


def _sizes(lengths: Sequence[int], rows: int) -> Sizes:
    longest = max(lengths) + 1
    return Sizes(max_rows=rows, token_budget=rows, max_model_len=longest, num_blocks=rows * -(-longest // 16))


# -- on an engine ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Served:
    """What an engine did, for ``labkit.viz.batch_view`` and ``timeline``. ``rows`` is the most that a step can have."""

    steps: tuple[StepRecord, ...]
    trace: Trace
    tokens: list[list[int]]
    rows: int

    @property
    def used(self) -> int:
        """Rows of all steps together."""
        return sum(len(step.rows) for step in self.steps)

    @property
    def empty(self) -> int:
        """Places in all batches that held no request."""
        return self.rows * len(self.steps) - self.used

    @property
    def slot_use(self) -> float:
        return self.used / (self.rows * len(self.steps))


def taken(engine: Engine, requests: Sequence[Request]) -> Served:
    """What an engine did since the last time."""
    steps = engine.take_steps()
    return Served(steps, engine.take_trace(), [request.output for request in requests], engine.sizes.max_rows)


def serve(
    engine: Engine, prompts: Sequence[Sequence[int]], lengths: Sequence[int], admit: Callable[[int, int, int], int]
) -> Served:
    """Serve requests; before each step ``admit(running, waiting, rows)`` says how many of those that wait enter.

    At most ``MOST_STEPS`` steps are run; requests that have not ended then are missing tokens.
    """
    coming = deque(zip(prompts, lengths, strict=True))
    requests: list[Request] = []
    for _ in range(MOST_STEPS):
        running = sum(not request.finished for request in requests)
        if not coming and not running:
            break
        for _ in range(admit(running, len(coming), engine.sizes.max_rows)):
            prompt, length = coming.popleft()
            requests.append(engine.submit(prompt, max_new_tokens=length))
        engine.step()
    return taken(engine, requests)
