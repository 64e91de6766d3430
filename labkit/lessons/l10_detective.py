"""Lesson 10: ten broken engines. The parts, the cases and the judge are in ``support``; the answers are here."""

from __future__ import annotations

from functools import partial
from typing import Any

from labkit.lessons.exercise import Answer, Exercise
from labkit.lessons.result import Result
from labkit.lessons.support.cases import Case, case, right_engine
from labkit.lessons.support.defects import DEFECTS, WORKED
from labkit.lessons.support.detective import judge, waits
from labkit.lessons.support.parts import Parts, PartsTable

__all__ = ["Case", "Parts", "case", "mend", "parts", "right_engine"]

parts = PartsTable()


def mend(repair: Answer, device: str = "virtual") -> Result:
    """Try a repair of the worked case."""
    return judge(0, repair, device).of("10.0", WORKED.title)


def _start(parts):
    # the broken part, replaced: parts.NAME = your function
    pass


def _wait_before_reading(parts):
    parts.before_read = lambda streams, slot: slot.d2h_done.synchronize()


def _record_after_the_kernels(parts):
    parts.computed = lambda streams, slot: slot.compute_done.record(streams.compute)


def _wait_for_these_kernels(parts):
    parts.before_download = lambda streams, slot: streams.d2h.wait_event(slot.compute_done)


def _a_buffer_for_each_slot(parts):
    parts.buffer_owner = lambda what, slot: slot


def _wait_for_the_last_upload(parts):
    parts.before_fill = lambda streams, slot: slot.previous.h2d_done.synchronize()


def _the_row_that_sampled(parts):
    parts.carry_row = lambda request, row: request.row


def _the_whole_key(parts):
    parts.graph_key = lambda slot, rows, random, logprobs: (slot, rows, random, logprobs)


def _into_the_trash(parts):
    def padding_place(sizes, row):
        return sizes.trash_block * sizes.block_size + row % sizes.block_size

    parts.padding_place = padding_place


def _the_stream_waits(parts):
    parts.before_download = lambda streams, slot: streams.d2h.wait_event(slot.compute_done)


def _an_event_for_each_slot(parts):
    parts.event_owner = lambda what, slot: slot


def _pinned(parts):
    parts.host_place = lambda what: "pinned"


def _exercise(number: int, task: str, hints: tuple[str, str, str], *solutions: Answer) -> Exercise:
    return Exercise(
        number=f"10.{number}",
        name=f"case_{number}",
        title=DEFECTS[number - 1].title,
        task=task,
        starter=_start,
        solutions=solutions,
        hints=hints,
        judge=_judge(number),
        measure=partial(_waits, number),
        unit="host waits",
    )


def _judge(number: int) -> Any:
    return lambda answer, device: judge(number, answer, device)


def _waits(number: int, answer: Answer, device: str) -> float:
    return waits(number, answer, device)


case_1 = _exercise(
    1,
    """
    Replace the broken part. Each hook gets the three streams (`streams.h2d`, `streams.compute`, `streams.d2h`) and the
    slot with its events (`slot.h2d_done`, `slot.compute_done`, `slot.d2h_done`).
    """,
    (
        "Begin with the first race of the report: one of its two sides is the host.",
        "Compare `mystery.waits(12)` with `lesson.right_engine(device).waits(12)`: which line is missing?",
        "`before_read` is called before the host reads. An event's `synchronize()` makes the host wait for its latest "
        "record.",
    ),
    _wait_before_reading,
)

case_2 = _exercise(
    2,
    """
    The tokens are damaged as if a wait were missing, and `mystery.waits(12)` lists all waits of a right engine. Replace
    the part that makes one of them worthless.
    """,
    (
        "Read the near miss of the first race: it names the event that looks as if it gave the order.",
        "A record captures what its stream holds at that moment. When was `compute_done` recorded: before or after the "
        "kernels were enqueued?",
        "The part that is called after the kernels have been enqueued is `computed`, and it records nothing. Record "
        "`slot.compute_done` on `streams.compute` there: the latest record counts.",
    ),
    _record_after_the_kernels,
)

case_3 = _exercise(
    3,
    """
    Compare the wrong tokens with those of case 2, and then the waits. Replace the broken part.
    """,
    (
        "The damage is that of case 2, to the token. What differs is in `mystery.waits(12)`: look at the slots' names.",
        "In step 12, slot A, the download waits for an event of slot B. Which step recorded that, and had it ended "
        "long before?",
        "The part is `before_download`; the event that belongs to this step's kernels is `slot.compute_done`.",
    ),
    _wait_for_these_kernels,
)

case_4 = _exercise(
    4,
    """
    Right tokens are no proof. Find out what could happen on a machine with a slower link, and replace the part that
    allows it. There is more than one right repair; what does each of them cost?
    """,
    (
        "The race report has one entry, and names a buffer with a slot in its name. Which slots use that buffer?",
        "Both slots fill and upload `inputs_host[A]`. Either each slot gets a buffer of its own, or the host waits "
        "until the last upload from this buffer is done.",
        "A buffer of its own: `buffer_owner(what, slot)` returns whose buffer a slot uses. A wait: `before_fill`, and "
        "the last upload was that of the other slot, `slot.previous`.",
    ),
    _a_buffer_for_each_slot,
    _wait_for_the_last_upload,
)

case_5 = _exercise(
    5,
    """
    No race, and wrong tokens: everything happens in order, with the wrong data. Find the first step that computes
    something wrong, and what changed in the batch there. Then replace the broken part.
    """,
    (
        "Which requests are right to the end, and what do they have in common? Look at the row each of them has.",
        "When a request ends, the rows behind it move up. The pending token of a request that has moved lies in the "
        "row it had in the step before.",
        "The part is `carry_row(request, row)`. `row` is the row of the step being planned; `request` remembers the "
        "row that sampled its pending token.",
    ),
    _the_row_that_sampled,
)

case_6 = _exercise(
    6,
    """
    Replace the part that makes random requests answer as greedy ones do. Do not break what is right.
    """,
    (
        "The first tokens of the random requests are right. Those steps had a prefill chunk in them: how were their "
        "kernels launched, and how are those of the wrong tokens?",
        "A graph freezes host scalars, and whether the sampler draws is one. A replay is found by its key: what does "
        "the key have to say so that a random batch finds a graph of its own?",
        "The part is `graph_key(slot, rows, random, logprobs)`: every one of its arguments is baked into a capture.",
    ),
    _the_whole_key,
)

case_7 = _exercise(
    7,
    """
    No race, no wrong row, no wrong graph: something writes into the cache of a request. Replace the part that does.
    """,
    (
        "Which rows of a batch compute something that nobody reads? They have a place to write to all the same.",
        "A graph of 4 rows replayed for 3 requests computes a fourth row: padding. Where does it write its K and V? In "
        "this engine: where the row's last owner wrote, two steps before, whose cache is still in use.",
        "The part is `padding_place(sizes, row)`. The pool has one block more than can be handed out: "
        "`sizes.trash_block`, of `sizes.block_size` places.",
    ),
    _into_the_trash,
)

case_8 = _exercise(
    8,
    """
    Right and slow. Mind the difference between a wait that is not needed and a wait in the wrong place.
    """,
    (
        "In the timeline the CPU lane has a long bar where it should have a short one. In which phase?",
        "`mystery.waits(12)`: the host waits twice. If you leave the wrong one out, is everything still ordered?",
        "The part is `before_download`. The wait is needed, by the D2H stream: `streams.d2h.wait_event(...)` returns "
        "at once, and the stream waits.",
    ),
    _the_stream_waits,
)

case_9 = _exercise(
    9,
    """
    One host wait a step, in the right phase, for the right event. What does that event answer for?
    """,
    (
        "In `mystery.waits(12)`, compare the step with the step in which what it waits for was recorded.",
        "Settling step 12 the host waits for a record of step 13: the event was recorded again in between. How many "
        "`d2h_done` events does this engine have?",
        "The part is `event_owner(what, slot)`: it returns whose event a slot uses.",
    ),
    _an_event_for_each_slot,
)

case_10 = _exercise(
    10,
    """
    No wait in the code is to blame. Which call waits without saying so?
    """,
    (
        "Find the longest host phase in the timeline, and the call in it that takes so long.",
        "A copy with `non_blocking=True` returns at once only if the host's side of it is pinned.",
        "The part is `host_place(what)`: where the host's buffers lie.",
    ),
    _pinned,
)
