"""The small runs of lesson 01 are what its text says they are."""

from __future__ import annotations

from labkit.lessons.support.batching import (
    LENGTHS,
    PACKED,
    ROWS,
    at_once,
    in_waves,
    long_prompt_arrives,
    open_engine,
    packed_steps,
)


def test_waves_take_as_long_as_their_longest_requests() -> None:
    waves = [LENGTHS[first : first + ROWS] for first in range(0, len(LENGTHS), ROWS)]
    assert len(in_waves("virtual").steps) == sum(map(max, waves))


def test_at_once_fills_every_row_until_nobody_waits() -> None:
    served = at_once("virtual")
    entered = [{row.request for row in step.rows} for step in served.steps]
    last_entry = max(n for n, rows in enumerate(entered) if n == 0 or rows - entered[n - 1])
    assert all(len(step.rows) == ROWS for step in served.steps[: last_entry + 1])
    assert served.tokens == in_waves("virtual").tokens


def test_a_long_prompt_is_cut_by_the_budget() -> None:
    for budget, chunks in ((1024, 1), (256, 4)):
        served = long_prompt_arrives("virtual", budget)
        assert sum(row.count > 1 for step in served.steps for row in step.rows) == chunks
        assert max(step.tokens for step in served.steps) <= budget


def test_packed_steps_hold_decodes_chunks_and_whole_prompts() -> None:
    steps = packed_steps("virtual")
    assert any(1 in step.counts and max(step.counts) > 1 for step in steps)
    assert any(start and count > 1 for step in steps for start, count in zip(step.starts, step.counts, strict=True))
    for step in steps:
        tokens, rows = sum(step.counts), len(step.counts)
        assert [len(getattr(step, name)) for name in PACKED] == [tokens, rows + 1, rows]


def test_sizes_may_be_chosen() -> None:
    with open_engine("virtual", block_size=4) as engine:
        assert (engine.sizes.block_size, engine.sizes.max_rows) == (4, ROWS)
