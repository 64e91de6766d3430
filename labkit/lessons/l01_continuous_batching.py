"""Lesson 01: the KV cache, ragged batches, chunked prefill, and batches whose members come and go."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from labkit.lessons.exercise import Exercise
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.batching import (
    LENGTHS,
    PACKED,
    PROMPTS,
    at_once,
    in_waves,
    long_prompt_arrives,
    open_engine,
    packed_steps,
)
from labkit.lessons.support.schedules import Served, serve
from labkit.lessons.support.sharing import judge_share

__all__ = ["admit", "at_once", "blocks_needed", "in_waves", "long_prompt_arrives", "pack", "packed_steps", "share"]

# -- 1.1 ---------------------------------------------------------------------------------------------------------------


def _start_blocks(prompt_tokens, new_tokens, block_size):
    # 1.1: how many KV blocks the request holds when its last token is sampled
    return (prompt_tokens + new_tokens) // block_size


def _blocks(prompt_tokens, new_tokens, block_size):
    stored = prompt_tokens + new_tokens - 1
    return -(-stored // block_size)


def _blocks_by_filling(prompt_tokens, new_tokens, block_size):
    blocks = 0
    while blocks * block_size < prompt_tokens + new_tokens - 1:
        blocks += 1
    return blocks


BLOCK_CASES = ((5, 4, 4), (5, 5, 4), (8, 1, 4), (1, 1, 4), (30, 20, 16))


def _judge_blocks(answer: Callable[[int, int, int], int], device: str) -> Result:
    for prompt_tokens, new_tokens, block_size in BLOCK_CASES:
        with open_engine(device, block_size=block_size) as engine:
            run = engine.generate([[1] * prompt_tokens], max_new_tokens=new_tokens)
        held = max(len(row.blocks) for step in run.steps for row in step.rows)
        mine = answer(prompt_tokens, new_tokens, block_size)
        if mine != held:
            return wrong(
                _why_blocks(mine, prompt_tokens + new_tokens, block_size),
                yours=f"{mine!r} blocks",
                expected=f"{held} blocks of {block_size}, for {prompt_tokens} prompt tokens and {new_tokens} new ones",
            )
    return right(f"The engine's requests held exactly as many blocks, in {len(BLOCK_CASES)} cases.")


def _why_blocks(mine: Any, tokens: int, size: int) -> str:
    if mine == -(-tokens // size):
        return "One token too many: the last token is sampled and never computed, so its K and V are never stored."
    if mine in (tokens // size, (tokens - 1) // size):
        return "A block that is only partly filled is a block too: round up."
    return "Count the tokens whose K and V are stored, and round up to whole blocks."


blocks_needed = Exercise(
    number="1.1",
    name="blocks_needed",
    title="How many blocks?",
    task="""
    Write `blocks_needed(prompt_tokens, new_tokens, block_size)`: how many KV blocks a request holds at the end,
    when its last new token has just been sampled. The check compares with what the engine gave to real requests.
    """,
    starter=_start_blocks,
    solutions=(_blocks, _blocks_by_filling),
    hints=(
        "K and V of a token are stored when the token goes *through* the model. Which tokens never do?",
        "The last new token comes out of the model and never goes in: `prompt_tokens + new_tokens - 1` are stored.",
        "Round up: `-(-stored // block_size)`.",
    ),
    judge=_judge_blocks,
)


# -- 1.2 ---------------------------------------------------------------------------------------------------------------


def _start_pack(starts, counts):
    # 1.2: the three arrays that let one row of tokens stand for a batch of requests
    positions = [position for count in counts for position in range(count)]
    cu_seqlens_q = [sum(counts[:row]) for row in range(len(counts))]
    output_index = cu_seqlens_q
    return positions, cu_seqlens_q, output_index


def _pack(starts, counts):
    positions = [start + place for start, count in zip(starts, counts, strict=True) for place in range(count)]
    cu_seqlens_q = [sum(counts[:row]) for row in range(len(counts) + 1)]
    output_index = [end - 1 for end in cu_seqlens_q[1:]]
    return positions, cu_seqlens_q, output_index


def _judge_pack(answer: Callable[[Any, Any], Any], device: str) -> Result:
    steps = packed_steps(device)
    for number, step in enumerate(steps):
        made = answer(list(step.starts), list(step.counts))
        if not isinstance(made, tuple | list) or len(made) != len(PACKED):
            return wrong("pack has to return three lists.", yours=repr(made), expected=", ".join(PACKED))
        for name, mine in zip(PACKED, made, strict=True):
            expected = getattr(step, name)
            if list(mine) != expected:
                says = (
                    f"Step {number} has starts {step.starts} and counts {step.counts}. {_why_packed(name, step, mine)}"
                )
                return wrong(says, yours=f"{name} {list(mine)}", expected=f"{name} {expected}")
    return right(f"The engine wrote the same arrays in all {len(steps)} steps.")


def _why_packed(name: str, step: SimpleNamespace, mine: Any) -> str:
    if name == "positions":
        if list(mine) == [position for count in step.counts for position in range(count)]:
            return "A row goes on where its request stands: its first position is its start, not 0."
        return "Each row has the positions from its start on, as many as it has tokens."
    if name == "cu_seqlens_q":
        return "Row i has the tokens from entry i to entry i + 1: one entry more than rows, and the first is 0."
    return "A row's next token is sampled behind its last token: at the end of the row, minus one."


pack = Exercise(
    number="1.2",
    name="pack",
    title="Pack a ragged batch",
    task="""
    Write `pack(starts, counts)`. Row i of the batch has `counts[i]` tokens, the first of them at position `starts[i]`
    of its request. All tokens lie behind each other in one array. Return three lists:

    - `positions`: the position of every token in its request,
    - `cu_seqlens_q`: where each row begins in the array, and at the end where the last one ends (rows + 1 entries),
    - `output_index`: where in the array each row's last token is.

    The check compares with what a real engine wrote into its buffers, step by step.
    """,
    starter=_start_pack,
    solutions=(_pack,),
    hints=(
        "Take a decode row first: it has one token, at position `starts[i]`. What are the three entries for it?",
        "`cu_seqlens_q` are cumulative sums of `counts` with a 0 in front; `output_index` follows from it.",
        "A row's positions are `start + place` for `place` in `range(count)`; `cu_seqlens_q` is `sum(counts[:row])` "
        "for `row` in `range(len(counts) + 1)`; `output_index` is `end - 1` for each `end` in `cu_seqlens_q[1:]`.",
    ),
    judge=_judge_pack,
)


# -- 1.3 ---------------------------------------------------------------------------------------------------------------


def _start_share(needs, budget):
    # 1.3: how many tokens of each request are in this step, none above its need, all together within the budget
    return needs


def _share(needs, budget):
    counts = [1 if need == 1 else 0 for need in needs]
    left = budget - sum(counts)
    for row, need in enumerate(needs):
        if need > 1:
            counts[row] = min(need, left)
            left -= counts[row]
    return counts


share = Exercise(
    number="1.3",
    name="share",
    title="Share the token budget",
    task="""
    Write `share(needs, budget)`. `needs[i]` is how many tokens of request i are not computed yet: 1 where it decodes,
    more while its prompt is not through. Return how many tokens of each are in this step. Nobody gets more than it
    needs, all of them together get at most `budget`, whoever decodes is never held up by a prompt, and no budget is
    left while somebody needs it.

    The check puts your rule into the engine's scheduler. Its first request is a prompt of 90 tokens; the budget is 16.
    """,
    starter=_start_share,
    solutions=(_share,),
    hints=(
        "Two passes: first those that need one token, then the prompts.",
        "Keep what is left of the budget after the first pass; each prompt gets `min(need, left)`, and `left` shrinks.",
        "`counts = [1 if need == 1 else 0 for need in needs]`, `left = budget - sum(counts)`, then a loop over the "
        "rows with `need > 1`.",
    ),
    judge=judge_share,
)


# -- 1.4 ---------------------------------------------------------------------------------------------------------------


def _start_admit(running, waiting, rows):
    # 1.4: how many of the waiting requests enter before the next step
    return min(waiting, rows) if running == 0 else 0


def _admit(running, waiting, rows):
    return min(waiting, rows - running)


class _Admitted:
    """A learner's rule, and the first thing that is wrong with what it says."""

    def __init__(self, answer: Callable[[int, int, int], Any]) -> None:
        self.answer, self.mistake = answer, ""

    def __call__(self, running: int, waiting: int, rows: int) -> int:
        count = self.answer(running, waiting, rows)
        most = min(waiting, rows - running)
        where = f"{running} of {rows} rows are taken and {waiting} requests wait"
        if type(count) is not int:
            self.mistake = self.mistake or f"admit has to return a whole number; it returned {count!r}."
        elif count > most:
            self.mistake = self.mistake or f"You let in {count}, where {where}: there is room for {most}."
        elif count < most:
            self.mistake = self.mistake or f"You let in {count}, where {where}: {most} of them could enter."
        return count if type(count) is int and 0 <= count <= most else most


def _judge_admit(answer: Callable[[int, int, int], Any], device: str) -> Result:
    admitted = _Admitted(answer)
    with open_engine(device) as engine:
        served = serve(engine, PROMPTS, LENGTHS, admitted)
    continuous = at_once(device)
    if admitted.mistake:
        return wrong(admitted.mistake, yours=_use(served), expected=_use(continuous))
    return right(f"{_use(served)}, as many as the engine's own scheduler: {len(continuous.steps)}.")


def _use(served: Served) -> str:
    return f"{len(served.steps)} steps, {served.empty} empty places in their batches"


def _empty_places(answer: Callable[[int, int, int], int], device: str) -> float:
    with open_engine(device) as engine:
        return float(serve(engine, PROMPTS, LENGTHS, answer).empty)


admit = Exercise(
    number="1.4",
    name="admit",
    title="Let them in",
    task="""
    `admit(running, waiting, rows)` is asked before every step: `running` requests are in the batch, `waiting` wait, and
    a batch has `rows` rows. Return how many of the waiting ones enter. The starter is static batching; make it
    continuous.
    """,
    starter=_start_admit,
    solutions=(_admit,),
    hints=(
        "When does the starter let nobody in, although there is room?",
        "There is room for `rows - running`, whether the batch is empty or not.",
        "There may be fewer requests than room: `min(waiting, rows - running)`.",
    ),
    judge=_judge_admit,
    measure=_empty_places,
    unit="empty places",
)
