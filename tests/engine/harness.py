"""Run requests step by step on any rung, with the engine's promises checked after every step.

``check`` is the comparison of engine-case tests: on each right rung, all requests together give the tokens that each
gives alone in a fresh engine, which are those of ``reference.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch

from labkit.engine.batch import Batch
from labkit.engine.blocks import BlockPool
from labkit.engine.request import Request, State, TokenEvent
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from tests.engine import reference

RIGHT = (0, 2, 5, 6)  # the rungs that must be right: two synchronous, two asynchronous
SYNC, ASYNC = (0, 2), (5, 6)
BLOCK_SIZES = (4, 16)
CONTEXT = 160
MODEL = ToyModel(max_model_len=CONTEXT)


@dataclass(frozen=True)
class Ask:
    """A request to make: when ``at_step`` steps have been settled, for the virtual time ``arrival_ns``."""

    prompt: tuple[int, ...]
    params: SamplingParams
    at_step: int = 0
    arrival_ns: int = 0


@dataclass(frozen=True)
class Outcome:
    tokens: tuple[int, ...]
    reason: str


@dataclass
class Played:
    """What happened: the requests in order of the asks, every step's events, every planned batch."""

    requests: list[Request]
    events: list[TokenEvent] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    overruns: int = 0
    preemptions: int = 0

    @property
    def outcomes(self) -> list[Outcome]:
        return [Outcome(tuple(request.output), request.finish_reason) for request in self.requests]

    @property
    def sampled_rows(self) -> int:
        return sum(sum(batch.samples) for batch in self.batches)


def ask(prompt: Iterable[int], limit: int = 8, *, at_step: int = 0, arrival_ns: int = 0, **sampling: object) -> Ask:
    return Ask(tuple(prompt), SamplingParams(max_new_tokens=limit, **sampling), at_step, arrival_ns)  # type: ignore[arg-type]


def prompt(length: int, salt: int = 0) -> tuple[int, ...]:
    """A made-up prompt; different salts differ from the first token on."""
    return tuple((37 * salt + 101 * place + 11) % 256 for place in range(length))


def sizes(block_size: int, **changes: int) -> Sizes:
    """Small capacities with room for all rows, unless ``changes`` say otherwise."""
    given = {"max_rows": 8, "token_budget": 32, "max_model_len": CONTEXT, "block_size": block_size, **changes}
    given.setdefault("num_blocks", given["max_rows"] * -(-given["max_model_len"] // block_size))
    return Sizes(**given)


def build(rung: int, capacities: Sizes, model: ToyModel = MODEL, **options: object) -> Engine:
    """An engine; with ``device="cuda"`` the model goes there too."""
    if options.get("device") == "cuda":
        model = model.to(torch.device("cuda"))
    return Engine(model, switches=rung, sizes=capacities, **{"trace": False, **options})  # type: ignore[arg-type]


def play(engine: Engine, asks: Sequence[Ask], each_step: Callable[[Engine], None] = lambda engine: None) -> Played:
    """Submit the asks when they are due and step until all is done; every promise is checked on the way."""
    played, todo, steps = Played([]), sorted(range(len(asks)), key=lambda i: asks[i].at_step), 0
    watch = Watch(engine, played)
    requests: dict[int, Request] = {}
    while todo or engine.busy:
        while todo and (asks[todo[0]].at_step <= steps or not engine.busy):
            number = todo.pop(0)
            one = asks[number]
            requests[number] = engine.submit(one.prompt, one.params, arrival_ns=one.arrival_ns)
        played.events += engine.step()
        steps += 1
        assert steps < 10_000, "the engine does not come to an end"
        watch.check_pool()
        each_step(engine)
    played.requests = [requests[number] for number in range(len(asks))]
    scheduler = engine.core.scheduler
    assert (scheduler.pool.free, scheduler.in_flight) == (scheduler.pool.num_blocks, 0), "not idle at the end"
    played.overruns, played.preemptions = scheduler.overruns, scheduler.preemptions
    check_events(played.requests, played.events)
    return played


def run_out(engine: Engine, limit: int = 2000) -> list[TokenEvent]:
    """Step until nothing is left to do; returns the events."""
    events = []
    for _ in range(limit):
        if not engine.busy:
            return events
        events += engine.step()
    raise AssertionError("the engine does not come to an end")


class Watch:
    """Keeps an eye on the blocks: none lost, none in two hands, none handed out under a step in flight."""

    def __init__(self, engine: Engine, played: Played) -> None:
        self.scheduler, self.pool = engine.core.scheduler, engine.core.scheduler.pool
        self._held_for: dict[int, int] = {}  # block -> step that may still write to it
        self._watch_blocks(self.pool)
        self._watch_plans(engine, played)

    def _watch_blocks(self, pool: BlockPool) -> None:
        allocate, release = type(pool).allocate, type(pool).release

        def watched_release(blocks: list[int], after_step: int | None) -> None:
            last = self.scheduler.steps - 1
            self._held_for.update(dict.fromkeys(blocks, last))
            release(pool, blocks, after_step)

        def watched_allocate() -> int:
            block = allocate(pool)
            assert self._held_for.get(block, -1) <= self.scheduler.settled, f"block {block} handed out too early"
            return block

        pool.release, pool.allocate = watched_release, watched_allocate  # type: ignore[method-assign]

    def _watch_plans(self, engine: Engine, played: Played) -> None:
        core, plan = engine.core, type(engine.core).plan

        def watched() -> Batch | None:
            batch = plan(core)
            if batch is not None:
                played.batches.append(batch)
                now_ns = core.device.now_ns()
                assert all(request.arrival_ns <= now_ns for request in batch.requests), "in a step before its arrival"
            return batch

        core.plan = watched  # type: ignore[method-assign]

    def check_pool(self) -> None:
        pool, running = self.pool, self.scheduler.running
        assert pool.free + pool.held + pool.used == pool.num_blocks
        hands = [block for request in running for block in request.blocks]
        assert len(set(hands)) == len(hands) == pool.used
        assert all(request.state is State.RUNNING for request in running)


def check_events(requests: Sequence[Request], events: Sequence[TokenEvent]) -> None:
    """Of each request: its tokens in order without gap or repeat, and exactly one end, which comes last."""
    for request in requests:
        mine = [event for event in events if event.request_id == request.id]
        tokens = [event for event in mine if event.token is not None]
        assert [event.token for event in tokens] == request.output
        assert [event.index for event in tokens] == list(range(len(tokens)))
        assert [bool(event.finish_reason) for event in mine] == [False] * (len(mine) - 1) + [True]
        assert mine[-1].finish_reason == request.finish_reason


@lru_cache(maxsize=4096)
def alone(prompt: tuple[int, ...], params: SamplingParams, eos: tuple[int, ...], block_size: int) -> Outcome:
    """One request in a fresh synchronous engine with room to spare; greedy ones are checked against the reference."""
    model = ToyModel(max_model_len=CONTEXT, eos_token_ids=eos)
    with build(0, sizes(block_size, max_rows=1), model) as engine:
        outcome = play(engine, [Ask(prompt, params)]).outcomes[0]
    if not params.temperature:
        ends = eos if params.eos_token_ids is None else params.eos_token_ids
        assert list(outcome.tokens) == reference.greedy(prompt, params.max_new_tokens, ends)
    return outcome


def expected(asks: Sequence[Ask], block_size: int, model: ToyModel = MODEL) -> list[Outcome]:
    return [alone(one.prompt, one.params, model.eos_token_ids, block_size) for one in asks]


def check(
    asks: Sequence[Ask],
    capacities: Sizes,
    model: ToyModel = MODEL,
    *,
    prepare: Callable[[Engine], None] = lambda engine: None,
    device: str = "virtual",
) -> dict[int, Played]:
    """All right rungs give each request's tokens alone, which is on the virtual GPU. Returns what happened on each."""
    wanted, all_played = expected(asks, capacities.block_size, model), {}
    for rung in RIGHT:
        with build(rung, capacities, model, device=device) as engine:
            prepare(engine)
            all_played[rung] = play(engine, asks)
        assert all_played[rung].outcomes == wanted, f"rung {rung}"
    return all_played
