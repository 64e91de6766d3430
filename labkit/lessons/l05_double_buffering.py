"""Lesson 05: look-ahead, what it overwrites, and a second set of buffers."""

from __future__ import annotations

from labkit.lessons.exercise import Exercise
from labkit.lessons.support.pinned_feed import judge_guard, judge_two_pinned, waiting_us
from labkit.lessons.support.slots import (
    BUFFERS,
    judge_before_fill,
    judge_free_slot,
    races_of,
    run_sharing,
    slow_copies,
    slow_host,
)

__all__ = [
    "BUFFERS",
    "before_fill",
    "free_slot",
    "guard",
    "races_of",
    "run_sharing",
    "slow_copies",
    "slow_host",
    "two_pinned",
]


def _start_guard(play):
    # 5.1: let the host wait before it fills the buffer again
    for value in (1, 2, 3, 4):
        play.fill(value)
        play.send()
        play.forward()


def _wait_for_the_upload(play):
    sent = play.event("sent")
    for value in (1, 2, 3, 4):
        sent.synchronize()
        play.fill(value)
        play.send()
        sent.record(play.compute)
        play.forward()


def _fresh_events(play):
    sent = None
    for step, value in enumerate((1, 2, 3, 4)):
        if sent is not None:
            sent.synchronize()
        play.fill(value)
        play.send()
        sent = play.event(f"sent {step}")
        sent.record(play.compute)
        play.forward()


guard = Exercise(
    number="5.1",
    name="guard",
    title="The pinned buffer under a pending copy",
    task="""
    Four steps: `play.fill(value)` writes a value into the pinned buffer, `play.send()` enqueues its upload on
    `play.compute`, `play.forward()` enqueues a kernel of 40 us that reads it. Each upload waits for the forward pass
    before it, so the host comes back to the buffer too early. Add an event and one wait of the host, so that the steps
    read 1, 2, 3, 4. The host must not wait for the forward pass that follows the upload.
    """,
    starter=_start_guard,
    solutions=(_wait_for_the_upload, _fresh_events),
    hints=(
        "Which operation reads the pinned buffer, and until when? Only that one has to be over before the next `fill`.",
        "An event marks what is in the stream when it is recorded. Recorded behind `send` it stands for the upload, "
        "recorded behind `forward` for the kernel too.",
        "`sent = play.event('sent')` before the loop, `sent.record(play.compute)` behind `send`, and "
        "`sent.synchronize()` before `fill`: the first time nothing is recorded yet, and it returns at once.",
    ),
    judge=judge_guard,
    measure=waiting_us,
    unit="us of host waiting",
)


def _start_two(play):
    # 5.2: buffers 0 and 1 in turn; let the host wait as little as possible
    for value in (1, 2, 3, 4):
        play.fill(value, 0)
        play.send(0)
        play.forward()


def _in_turn(play):
    sent = [play.event("sent 0"), play.event("sent 1")]
    for step, value in enumerate((1, 2, 3, 4)):
        buffer = step % 2
        sent[buffer].synchronize()
        play.fill(value, buffer)
        play.send(buffer)
        sent[buffer].record(play.compute)
        play.forward()


two_pinned = Exercise(
    number="5.2",
    name="two_pinned",
    title="Two pinned buffers in turn",
    task="""
    The same four steps, and two pinned buffers: `play.fill(value, buffer)` and `play.send(buffer)` take 0 or 1. Use
    them in turn, so that the host never waits for the upload that it has just enqueued. The steps must read 1, 2, 3, 4.
    """,
    starter=_start_two,
    solutions=(_in_turn,),
    hints=(
        "With two buffers, the upload that must be over before a buffer is filled again is not the last one but the "
        "one before it.",
        "One event cannot stand for two uploads: recording it again forgets the first. Each buffer needs its own.",
        "`sent = [play.event('sent 0'), play.event('sent 1')]` and `buffer = step % 2`; then "
        "`sent[buffer].synchronize()`, fill, send, `sent[buffer].record(play.compute)`, forward.",
    ),
    judge=judge_two_pinned,
    measure=waiting_us,
    unit="us of host waiting",
)


def _start_slot(slots, in_flight):
    # 5.3: return the slot that the next step may fill
    return slots[0]


def _not_in_flight(slots, in_flight):
    return next(slot for slot in slots if slot not in in_flight)


def _the_other(slots, in_flight):
    return slots[0] if not in_flight else in_flight[-1].previous


free_slot = Exercise(
    number="5.3",
    name="free_slot",
    title="Whose turn is it?",
    task="""
    The engine asks before every step which slot to use. `slots` are all it has, here two; `in_flight` lists those whose
    step has been enqueued and not settled. Return a slot that may be filled. Rung 4 runs with your answer.
    """,
    starter=_start_slot,
    solutions=(_not_in_flight, _the_other),
    hints=(
        "A slot may be filled when nothing in flight reads or writes any of its buffers.",
        "`in_flight` holds one slot when the host is one step ahead, and none before the first step.",
        "`next(slot for slot in slots if slot not in in_flight)`",
    ),
    judge=judge_free_slot,
)


def _start_before_fill(slot):
    # 5.4: called before every fill of slot; slot.previous is the other one, whose step is in flight
    pass


def _previous_upload(slot):
    slot.previous.h2d_done.synchronize()


before_fill = Exercise(
    number="5.4",
    name="before_fill",
    title="One pinned buffer in the engine",
    task="""
    An engine with two slots that share one pinned input buffer, `inputs_host`; everything else exists twice. Your
    function is called before the host fills a slot. Let the host wait for exactly what is needed: a slot has the events
    `h2d_done`, `compute_done` and `d2h_done`, recorded behind its upload, its kernels and its download, and
    `slot.previous` is the other slot.
    """,
    starter=_start_before_fill,
    solutions=(_previous_upload,),
    hints=(
        "Who reads the shared buffer last before this fill? The upload of the step before.",
        "That upload belongs to the other slot. The event of the slot to be filled was recorded two steps ago.",
        "`slot.previous.h2d_done.synchronize()`",
    ),
    judge=judge_before_fill,
)
