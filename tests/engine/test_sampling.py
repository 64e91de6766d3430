"""Engine cases 22 and 23: random requests among greedy ones, and log-probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labkit.engine.sampling import SamplingParams
from tests.engine import reference
from tests.engine.harness import RIGHT, Ask, ask, build, check, expected, play, prompt, sizes

MIXED = [
    ask(prompt(4, 0), 14),
    ask(prompt(7, 1), 14, temperature=0.7, seed=11),
    ask(prompt(3, 2), 14, temperature=1.3, top_k=5, seed=12),
    ask(prompt(9, 3), 14, temperature=1.0, top_p=0.4, seed=2**31 - 1),
    ask(prompt(5, 4), 14, temperature=2.0, top_k=40, top_p=0.9, seed=0),
    ask(prompt(5, 4), 14, temperature=2.0, top_k=40, top_p=0.9, seed=1),
]


def test_mixed_sampling_in_one_batch(block_size: int, device: str) -> None:
    """Case 22: the same tokens as alone, whatever else is in the batch."""
    played = check(MIXED, sizes(block_size), device=device)
    for each in played.values():
        assert each.requests[4].output != each.requests[5].output, "another seed draws other tokens"
        assert any(batch.rows == len(MIXED) and batch.random for batch in each.batches)


def test_random_requests_that_join_mid_run(block_size: int) -> None:
    asks = [replace(one, at_step=3 * i % 11) for i, one in enumerate(MIXED)]
    check(asks, sizes(block_size))
    check(asks, sizes(block_size, max_rows=3, token_budget=7))


def test_random_requests_survive_preemption(block_size: int) -> None:
    asks = [replace(one, params=replace(one.params, max_new_tokens=2 * block_size)) for one in MIXED]
    played = check(asks, sizes(block_size, max_rows=4, num_blocks=5))
    assert all(each.preemptions for each in played.values())


def test_one_seed_gives_the_same_tokens_on_every_run(right_rung: int) -> None:
    runs = []
    for _ in range(2):
        with build(right_rung, sizes(4)) as engine:
            runs.append(engine.generate([prompt(5)] * 2, max_new_tokens=10, temperature=1.0, seed=5).tokens)
    assert runs[0] == runs[1]
    assert runs[0][0] == runs[0][1], "same prompt, same seed"


WITH_LOGPROBS = [
    ask(prompt(4, 0), 10, logprobs=True),
    ask(prompt(6, 1), 12, logprobs=True, temperature=1.2, top_k=9, top_p=0.8, seed=4),
    ask(prompt(9, 2), 8),
    ask(prompt(40, 3), 9, logprobs=True, at_step=4),
]


def assert_logprobs(one: Ask, tokens: list[int], logprobs: list[float]) -> None:
    """As many as tokens, and those of the unmodified distribution of an unbatched forward pass."""
    assert len(logprobs) == len(tokens) == one.params.max_new_tokens
    context = list(one.prompt)
    for token, logprob in zip(tokens, logprobs, strict=True):
        assert logprob == pytest.approx(reference.logprobs(context)[token], abs=1e-5)
        context.append(token)


@pytest.mark.parametrize("blocks", [None, 4], ids=["roomy", "preempted"])
def test_logprobs(block_size: int, blocks: int | None, device: str) -> None:
    """Case 23, and that a request that did not ask gets none."""
    changes = {"num_blocks": blocks * 16 // block_size, "max_rows": 3} if blocks else {}
    for rung in RIGHT:
        with build(rung, sizes(block_size, **changes), device=device) as engine:
            played = play(engine, WITH_LOGPROBS)
        assert played.outcomes == expected(WITH_LOGPROBS, block_size)
        for one, request in zip(WITH_LOGPROBS, played.requests, strict=True):
            mine = [event.logprob for event in played.events if event.request_id == request.id]
            if one.params.logprobs:
                assert_logprobs(one, request.output, request.logprobs)
                assert mine == request.logprobs
            else:
                assert request.logprobs == []
                assert mine == [None] * len(request.output)


def test_logprobs_of_generate_and_of_a_stream(right_rung: int) -> None:
    one = WITH_LOGPROBS[0]
    with build(right_rung, sizes(4)) as engine:
        run = engine.generate([one.prompt, prompt(3)], [one.params, SamplingParams(max_new_tokens=4)])
        events = list(engine.stream(one.prompt, one.params))
    assert_logprobs(one, run.tokens[0], run.logprobs[0])
    assert run.logprobs[1] == []
    assert [event.logprob for event in events] == run.logprobs[0]


def test_a_tiny_temperature_and_a_tiny_top_p_are_greedy(block_size: int) -> None:
    greedy = expected([ask(prompt(5), 8)], block_size)[0]
    asks = [
        ask(prompt(5), 8, temperature=1e-30),
        ask(prompt(5), 8, temperature=1e-300),
        ask(prompt(5), 8, temperature=5.0, top_p=1e-300),
        ask(prompt(5), 8, temperature=5.0, top_k=1),
    ]
    for each in check(asks, sizes(block_size)).values():
        assert {tuple(request.output) for request in each.requests} == {greedy.tokens}


def test_a_huge_temperature_is_uniform_and_not_greedy() -> None:
    with build(5, sizes(4)) as engine:
        run = engine.generate(
            [[1]] * 64, [SamplingParams(max_new_tokens=4, temperature=1e38, seed=seed) for seed in range(64)]
        )
    tokens = np.array(run.tokens).ravel()
    assert len(set(tokens.tolist())) > 128, "256 draws of 256 tokens: 162 different ones on average"
