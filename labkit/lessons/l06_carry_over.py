"""Lesson 06: a token that the host does not know yet, and the end that it does not foresee."""

from __future__ import annotations

import torch

from labkit.lessons.exercise import Exercise
from labkit.lessons.support.carry_kernel import judge_carry_in_time, judge_replace_placeholders, waits_of
from labkit.lessons.support.carry_rows import judge_carry_rows, judge_deliver


def _start_replace(token_ids, carry_from, previous):
    # 6.1: change token_ids in place; nothing is returned
    pass


def _replace_where(token_ids, carry_from, previous):
    fetched = previous[carry_from.clamp(min=0).long()]
    token_ids.copy_(torch.where(carry_from >= 0, fetched, token_ids))


def _replace_arithmetic(token_ids, carry_from, previous):
    keep = (carry_from < 0).int()
    token_ids.mul_(keep).add_(previous[carry_from.clamp(min=0).long()] * (1 - keep))


replace_placeholders = Exercise(
    number="6.1",
    name="replace_placeholders",
    title="The carry-over kernel",
    task="""
    Write the launch that runs before every forward pass. `token_ids` [D] holds the input tokens of the D rows that
    decode, placeholders among them; `carry_from` [D] the row of the previous step to fetch from, or -1; `previous` [R]
    the tokens that the previous step sampled. All three are int32 tensors on the device. Put the right tokens into
    `token_ids`, in place, and let the host wait for nothing.
    """,
    starter=_start_replace,
    solutions=(_replace_where, _replace_arithmetic),
    hints=(
        "First fetch a token for every row, also for those that keep theirs: what these fetch is thrown away. Then "
        "choose, row by row, between the fetched token and the one that is there.",
        "`previous[carry_from.clamp(min=0).long()]` fetches for all rows. `torch.where(mask, a, b)` chooses without "
        "asking the host; `token_ids[mask] = ...` does not: how many rows a mask selects is known on the device alone.",
        "`token_ids = ...` only gives a name to a new tensor. `token_ids.copy_(...)` writes into the buffer that the "
        "model reads. The mask is `carry_from >= 0`: row 0 is a row.",
    ),
    judge=judge_replace_placeholders,
)


def _start_in_time(play):
    # 6.2: step 1 uses slot A, step 2 slot B. Two lines are missing before the last one.
    play.send("A")
    play.compute.wait_event(play.sent["A"])
    play.forward("A")
    play.send("B")
    play.forward("B")


def _carry_on_compute(play):
    play.send("A")
    play.compute.wait_event(play.sent["A"])
    play.forward("A")
    play.send("B")
    play.compute.wait_event(play.sent["B"])
    play.carry(play.compute)
    play.forward("B")


def _carry_on_h2d(play):
    play.send("A")
    play.compute.wait_event(play.sent["A"])
    play.forward("A")
    sampled, carried = play.event("sampled"), play.event("carried")
    sampled.record(play.compute)
    play.send("B")
    play.h2d.wait_event(sampled)
    play.carry(play.h2d)
    carried.record(play.h2d)
    play.compute.wait_event(carried)
    play.forward("B")


carry_in_time = Exercise(
    number="6.2",
    name="carry_in_time",
    title="On which stream, and after what?",
    task="""
    Two steps on the three streams of a `Playground`. `play.send(slot)` uploads a slot's input token on `play.h2d` and
    records `play.sent[slot]`; `play.forward(slot)` runs on `play.compute` and makes the slot's output, input + 1. The
    host knows the token of step 1, which is 5, and writes the placeholder 0 for step 2. `play.carry(stream)` copies the
    output of slot A over the input of slot B, on the stream you give. Put it in the right place and order it, with as
    few waits as you can. Step 2 must compute 7.
    """,
    starter=_start_in_time,
    solutions=(_carry_on_compute, _carry_on_h2d),
    hints=(
        'The carry-over reads what `forward("A")` writes, and overwrites what `send("B")` writes. Which of the two is '
        "on another stream than the reader of the result?",
        'On `play.compute` the carry-over comes after `forward("A")` and before `forward("B")` without any event: one '
        "stream runs in order. Only the upload is on another stream.",
        '`play.compute.wait_event(play.sent["B"])`, then `play.carry(play.compute)`, then `play.forward("B")`.',
    ),
    judge=judge_carry_in_time,
    measure=waits_of,
    unit="waits",
)


def _start_rows(batch, before):
    # 6.3: a list with one number for each request in batch
    return [row for row, request in enumerate(batch)]


def _look_up(batch, before):
    rows = {request: row for row, (request, sampled) in enumerate(before) if sampled}
    return [rows.get(request, -1) for request in batch]


def _search(batch, before):
    return [before.index((request, True)) if (request, True) in before else -1 for request in batch]


carry_rows = Exercise(
    number="6.3",
    name="carry_rows",
    title="Where does a row's token come from?",
    task="""
    Compute `carry_from` for a step. `batch` lists the request numbers of the rows that decode, in order. `before` lists
    the rows of the step that is still in flight as pairs `(request, sampled)`: `sampled` is False for a chunk that does
    not reach the end of its prompt. `before` is empty when no step is in flight. Return a list: for each request of
    `batch` the row of `before` that samples its token, or -1 where the host knows the token. The engine that runs your
    answer reverses its rows, has too few KV blocks, and splits prompts into chunks.
    """,
    starter=_start_rows,
    solutions=(_look_up, _search),
    hints=(
        "A request can be in another row than before: one above it may have ended, or the scheduler may have another "
        "order. Look for the request, not for the row.",
        "A request that is not in `before` got its last token in an earlier step, which the host has settled: -1.",
        "`rows = {request: row for row, (request, sampled) in enumerate(before) if sampled}`, then `rows.get(request, "
        "-1)`.",
    ),
    judge=judge_carry_rows,
)


def _start_deliver(request, token):
    # 6.4: True where the token belongs to the request's output
    return True


def _until_finished(request, token):
    return not request.finished


def _by_the_last_token(request, token):
    ended = request.output and request.output[-1] in request.eos_token_ids
    return not ended and request.generated < request.params.max_new_tokens


deliver = Exercise(
    number="6.4",
    name="deliver",
    title="The overrun row",
    task="""
    `settle` calls your function for every row that sampled a token. Say whether the token belongs to the output of
    `request`, as of now: `request.output` are its tokens so far, `request.eos_token_ids` those that end it,
    `request.finished` whether it has ended. An end-of-sequence token is part of the output.
    """,
    starter=_start_deliver,
    solutions=(_until_finished, _by_the_last_token),
    hints=(
        "When the host learns that a request has ended, one more step with a row of it is on its way. Whose token is "
        "that?",
        "The token that ends a request is delivered, and ends it. The next one that comes for this request is not.",
        "By then `request.finished` is True.",
    ),
    judge=judge_deliver,
)
