"""Engine cases 8 to 12: block edges, chunks, skipped rows, batch order, graph keys and padding."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from labkit.engine.request import Request
from labkit.entry import Engine
from labkit.model.api import BatchInputs
from labkit.model.toy import ToyModel
from tests.engine.harness import CONTEXT, RIGHT, ask, build, check, expected, play, prompt, sizes


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_prompt_of_whole_blocks_twice(block_size: int, blocks: int) -> None:
    """Case 8, and two prompts that share all but the last token."""
    same = prompt(blocks * block_size)
    other = (*same[:-1], 255 - same[-1])
    together = [ask(same, 6), ask(same, 6), ask(other, 6)]
    check(together, sizes(block_size))
    check([replace(one, at_step=4 * i) for i, one in enumerate(together)], sizes(block_size))


@pytest.mark.parametrize("step", [None, -1, 0, 1], ids=["one", "block-1", "block", "block+1"])
def test_chunked_prefill(block_size: int, step: int | None) -> None:
    """Case 9: prompts cut into chunks of every size around the block's."""
    chunk = 1 if step is None else block_size + step
    played = check([ask(prompt(2 * block_size + 3), 5)], sizes(block_size, max_rows=1, token_budget=chunk))
    for each in played.values():
        chunks = [batch.counts[0] for batch in each.batches if batch.starts[0] < 2 * block_size + 3]
        assert max(chunks) == chunk
        assert sum(chunks) == 2 * block_size + 3
        assert len(chunks) == -(-(2 * block_size + 3) // chunk)


@pytest.mark.parametrize("step", [None, -1, 0, 1], ids=["one", "block-1", "block", "block+1"])
def test_chunks_in_a_batch_with_decodes(block_size: int, step: int | None, device: str) -> None:
    chunk = 1 if step is None else block_size + step
    asks = [ask(prompt(2, 1), 50), ask(prompt(1, 2), 50), ask(prompt(2 * block_size + 3), 5, at_step=6)]
    played = check(asks, sizes(block_size, max_rows=3, token_budget=chunk + 2), device=device)
    for each in played.values():
        mixed = [batch for batch in each.batches if batch.rows == 3 and not batch.samples[2]]
        assert mixed[0].counts == [1, 1, chunk]
        assert len(mixed) >= (2 * block_size + 2) // chunk


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_a_token_budget_below_the_row_count(block_size: int, budget: int) -> None:
    asks = [ask(prompt(1 + i, i), 5 + i) for i in range(5)]
    for each in check(asks, sizes(block_size, max_rows=5, token_budget=budget)).values():
        assert max(batch.tokens for batch in each.batches) == budget


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_rows_skipped_for_a_step_are_resumed(block_size: int, budget: int) -> None:
    """Case 10: a budget that shrinks while five rows decode; when a skipped row resumes, its token is known."""

    def shrink(engine: Engine) -> None:
        scheduler = engine.core.scheduler
        if scheduler.steps > 3:
            scheduler.sizes = replace(scheduler.sizes, token_budget=budget)

    asks = [ask(prompt(1 + i, i), 9) for i in range(5)]
    for rung in RIGHT:
        with build(rung, sizes(block_size, max_rows=5)) as engine:
            played = play(engine, asks, each_step=shrink)
        assert played.outcomes == expected(asks, block_size)
        steps = [[batch.step for batch in played.batches if request in batch.requests] for request in played.requests]
        skipped = [max(after - before for before, after in pairwise(one)) - 1 for one in steps]
        assert max(skipped) == -(-5 // budget) - 1, "every row has its turn"


def permuted(seed: int) -> object:
    """An ``arrange`` that puts the decode rows in another order every step."""
    draw = random.Random(seed)

    def arrange(decodes: list[Request]) -> list[Request]:
        return draw.sample(decodes, len(decodes))

    return arrange


@pytest.mark.parametrize("seed", range(3))
def test_batch_order_changes_from_step_to_step(block_size: int, seed: int) -> None:
    """Case 11: a row's place in the batch is nobody's business but the carry-over's."""

    def prepare(engine: Engine) -> None:
        engine.core.scheduler.arrange = permuted(seed)  # type: ignore[method-assign, assignment]

    asks = [ask(prompt(2 + i, i), 12 + i % 3) for i in range(6)]
    for each in check(asks, sizes(block_size), prepare=prepare).values():
        orders = {tuple(request.id for request in batch.requests) for batch in each.batches if batch.rows == 6}
        assert len(orders) > 5


def test_requests_join_and_leave_in_the_same_step(block_size: int, device: str) -> None:
    asks = [ask(prompt(3 + i % 3, i), 2 + i % 4, at_step=i) for i in range(16)]
    for each in check(asks, sizes(block_size, max_rows=3), device=device).values():
        sets = [{request.id for request in batch.requests} for batch in each.batches]
        assert any(before - after and after - before for before, after in pairwise(sets))


class BoundedToy(ToyModel):
    """A toy that bakes the context bound into its launches, as attention kernels do: it sees no block beyond it."""

    def context_bucket(self, context: int, limit: int) -> int:
        return min(limit, 1 << (context - 1).bit_length())

    def forward(self, inputs: BatchInputs, kv: Sequence[torch.Tensor]) -> torch.Tensor:
        columns = -(-inputs.shape.context // kv[0].shape[1])
        return super().forward(replace(inputs, block_table=inputs.block_table[:, :columns]), kv)


def test_one_padded_size_with_different_contexts(block_size: int, device: str) -> None:
    """Case 12: a graph's key holds everything that its capture baked in."""
    model = BoundedToy(max_model_len=CONTEXT)
    asks = [ask(prompt(2), 90), ask(prompt(5, 1), 30, at_step=20), ask(prompt(70, 2), 20, at_step=60)]
    check(asks, sizes(block_size, max_rows=2), model, device=device)
    with build(6, sizes(block_size, max_rows=2), model, device=device) as engine:
        assert {key.context for key in engine.core.launcher.graphs} == {1, 2, 4, 8, 16, 32, 64, 128, CONTEXT}


def cache_after(rung: int, block_size: int, device: str) -> tuple[list[torch.Tensor], list[torch.Tensor], int]:
    """The cache's blocks and its trash block after batches of 7 rows down to 1, and the steps that were padded."""
    asks = [ask(prompt(3, i), 4 + i) for i in range(7)]
    with build(rung, sizes(block_size), device=device) as engine:
        for buffer in engine.core.kv:
            buffer.tensor.zero_()
        engine.device.synchronize()
        played = play(engine, asks)
        padded = sum(engine.sizes.pad(batch.rows) > batch.rows for batch in played.batches)
        kv = [buffer.tensor.clone() for buffer in engine.core.kv]
    assert played.outcomes == expected(asks, block_size)
    return [tensor[:-1] for tensor in kv], [tensor[-1] for tensor in kv], padded


def test_padding_rows_write_to_the_trash_block_alone(block_size: int, device: str) -> None:
    blocks, trash, padded = cache_after(6, block_size, device)
    eager_blocks, eager_trash, _ = cache_after(5, block_size, device)
    assert padded > 5
    assert all(torch.equal(mine, eager) for mine, eager in zip(blocks, eager_blocks, strict=True))
    assert not any(torch.equal(mine, eager) for mine, eager in zip(trash, eager_trash, strict=True))


def test_padding_changes_no_result_at_any_row_count(block_size: int, device: str) -> None:
    capacities = sizes(block_size, max_rows=11)
    for rung in RIGHT:
        with build(rung, capacities, device=device) as engine:
            for rows in range(1, 12):
                asks = [ask(prompt(3, i), 4) for i in range(rows)]
                assert play(engine, asks).outcomes == expected(asks, block_size)
