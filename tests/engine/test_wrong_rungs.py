"""Rungs that are wrong by design: the same wrong tokens on every run, never an exception; and all 64 combinations."""

from __future__ import annotations

from itertools import product

import pytest

from labkit.entry import Engine
from labkit.errors import UnsafeSwitches
from labkit.switches import MECHANISMS, Switches, explain
from tests.engine.harness import MODEL, Ask, Outcome, ask, check_events, expected, play, prompt, sizes

WRONG = (1, 3, 4)
COMBINATIONS = [Switches(**dict(zip(MECHANISMS, on, strict=True))) for on in product((False, True), repeat=6)]

WORKLOADS: dict[str, tuple[list[Ask], dict[str, int]]] = {
    "decodes": ([ask(prompt(5 + i, i), 14) for i in range(4)], {}),
    "chunks": ([ask(prompt(30 + 7 * i, i), 10) for i in range(3)], {"token_budget": 9}),
    "ends": ([ask(prompt(5 + i, i), 16, eos_token_ids=tuple(range(0, 256, 9))) for i in range(6)], {"max_rows": 3}),
    "pressure": ([ask(prompt(14, i), 24) for i in range(4)], {"max_rows": 4, "pool_tokens": 64}),
    "random": ([ask(prompt(5, i), 12, temperature=1.0, top_k=9 * i, top_p=0.9, seed=i) for i in range(4)], {}),
    "logprobs": ([ask(prompt(5 + i, i), 12, logprobs=True) for i in range(3)], {}),
    "arrivals": ([ask(prompt(3, i), 8, at_step=3 * i) for i in range(5)], {"max_rows": 2}),
}


def run(switches: Switches | int, asks: list[Ask], block_size: int, **changes: int) -> list[Outcome]:
    if "pool_tokens" in changes:
        changes["num_blocks"] = changes.pop("pool_tokens") // block_size
    capacities = sizes(block_size, **changes)
    with Engine(MODEL, switches=switches, sizes=capacities, trace=False, unsafe=True) as engine:
        played = play(engine, asks)
    check_events(played.requests, played.events)
    assert all(request.finish_reason in ("length", "eos") for request in played.requests)
    assert all(0 <= token < MODEL.vocab_size for request in played.requests for token in request.output)
    return played.outcomes


@pytest.mark.parametrize("rung", WRONG, ids=lambda rung: f"rung{rung}")
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_wrong_rung_is_wrong_the_same_way_every_time(block_size: int, rung: int, workload: str) -> None:
    asks, changes = WORKLOADS[workload]
    first = run(rung, asks, block_size, **changes)
    assert first == run(rung, asks, block_size, **changes)
    assert first != expected(asks, block_size)


@pytest.mark.parametrize("switches", COMBINATIONS, ids=lambda switches: "+".join(switches.on) or "none")
def test_every_combination_runs_and_does_what_explain_says(switches: Switches) -> None:
    """``right`` is exact for any workload in which some request needs more than one step."""
    asks = [ask(prompt(3 + 4 * i, i), 6) for i in range(3)]
    assert (run(switches, asks, 4, max_rows=3) == expected(asks, 4)) == explain(switches).right


@pytest.mark.parametrize("switches", [s for s in COMBINATIONS if not explain(s).right], ids=lambda s: "+".join(s.on))
def test_a_wrong_combination_is_built_only_when_asked_for(switches: Switches) -> None:
    with pytest.raises(UnsafeSwitches, match="Pass unsafe=True"):
        Engine(MODEL, switches=switches, sizes=sizes(4))


def test_a_wrong_rung_leaves_the_engine_usable(block_size: int) -> None:
    """Wrong tokens, but the same requests, blocks and counts as on a right rung."""
    asks, _ = WORKLOADS["decodes"]
    for rung in WRONG:
        with Engine(MODEL, switches=rung, sizes=sizes(block_size), trace=False, unsafe=True) as engine:
            for _ in range(2):
                played = play(engine, asks)
                assert [len(request.output) for request in played.requests] == [
                    one.params.max_new_tokens for one in asks
                ]
