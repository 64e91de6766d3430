"""Lesson 05: each plausible wrong answer gets its own sentence."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from labkit.lessons.l05_double_buffering import before_fill, free_slot, guard, two_pinned

Answer = Callable[..., Any]
VALUES = (1, 2, 3, 4)


def behind_forward(play: Any) -> None:
    sent = play.event("sent")
    for value in VALUES:
        sent.synchronize()
        play.fill(value)
        play.send()
        play.forward()
        sent.record(play.compute)


def whole_stream(play: Any) -> None:
    for value in VALUES:
        play.compute.synchronize()
        play.fill(value)
        play.send()
        play.forward()


def recorded_too_early(play: Any) -> None:
    sent = play.event("sent")
    for value in VALUES:
        play.fill(value)
        sent.record(play.compute)
        play.send()
        play.forward()
        sent.synchronize()


def the_stream_waits(play: Any) -> None:
    sent = play.event("sent")
    for value in VALUES:
        play.compute.wait_event(sent)
        play.fill(value)
        play.send()
        sent.record(play.compute)
        play.forward()


GUARDS: list[tuple[Answer, str]] = [
    (behind_forward, "waits for a forward pass too"),
    (whole_stream, "waits for a forward pass too"),
    (recorded_too_early, "Nothing makes the host, which writes pinned[0]"),
    (the_stream_waits, "the host does not wait for it"),
    (lambda play: None, "the values are not"),
]


@pytest.mark.parametrize(("answer", "says"), GUARDS)
def test_guard(answer: Answer, says: str) -> None:
    result = guard.check(answer)
    assert not result
    assert says in result.says


def test_a_wait_right_behind_the_upload_passes_and_is_told() -> None:
    def at_once(play: Any) -> None:
        for value in VALUES:
            play.fill(value)
            play.send()
            sent = play.event("sent")
            sent.record(play.compute)
            sent.synchronize()
            play.forward()

    result = guard.check(at_once)
    assert result
    assert "right before the next `fill`" in result.says
    assert not any("right before" in guard.check(solution).says for solution in guard.solutions)


def no_wait(play: Any) -> None:
    for step, value in enumerate(VALUES):
        play.fill(value, step % 2)
        play.send(step % 2)
        play.forward()


def one_event(play: Any) -> None:
    sent = play.event("sent")
    for step, value in enumerate(VALUES):
        sent.synchronize()
        play.fill(value, step % 2)
        play.send(step % 2)
        sent.record(play.compute)
        play.forward()


def always_the_same(play: Any) -> None:
    guard.solutions[0](play)


def sends_the_other(play: Any) -> None:
    sent = [play.event("sent 0"), play.event("sent 1")]
    for step, value in enumerate(VALUES):
        sent[1 - step % 2].synchronize()
        play.fill(value, step % 2)
        play.send(1 - step % 2)
        sent[1 - step % 2].record(play.compute)
        play.forward()


TWO: list[tuple[Answer, str]] = [
    (no_wait, "Nothing makes the host, which writes pinned[0]"),
    (one_event, "waits for the upload that it has just enqueued"),
    (always_the_same, "waits for the upload that it has just enqueued"),
    (sends_the_other, "Nothing makes the host, which writes pinned[1]"),
    (lambda play: play.fill(1, 2), "raised InvalidArgument"),
]


@pytest.mark.parametrize(("answer", "says"), TWO)
def test_two_pinned(answer: Answer, says: str) -> None:
    result = two_pinned.check(answer)
    assert not result
    assert says in result.says


def twice_each() -> Answer:
    number = count()
    return lambda slots, in_flight: slots[next(number) // 2 % 2]


SLOTS: list[tuple[Answer, str]] = [
    (lambda slots, in_flight: slots[0], "writes inputs_host[A]"),
    (lambda slots, in_flight: slots[-1], "writes inputs_host[B]"),
    (lambda slots, in_flight: in_flight[0] if in_flight else slots[0], "writes inputs_host[A]"),
    (lambda slots, in_flight: 1, "has to be one of the slots"),
    (lambda slots, in_flight: None, "has to be one of the slots"),
    (lambda slots, in_flight: in_flight[0], "raised IndexError"),
]


@pytest.mark.parametrize(("answer", "says"), SLOTS)
def test_free_slot(answer: Answer, says: str) -> None:
    result = free_slot.check(answer)
    assert not result
    assert says in result.says


def test_free_slot_used_twice_in_a_row() -> None:
    result = free_slot.check(twice_each())
    assert not result
    assert "AABB" in result.yours


FILLS: list[tuple[Answer, str]] = [
    (lambda slot: slot.h2d_done.synchronize(), "the event of the slot that is being filled"),
    (lambda slot: slot.previous.h2d_done.query(), "the host does not wait for it"),
    (lambda slot: slot.previous.d2h_done.synchronize(), "host waits for d2h_done[B]: that is more than the upload"),
    (lambda slot: slot.previous.compute_done.synchronize(), "that is more than the upload"),
    (lambda slot: slot.h2d_done.device.synchronize(), "host waits for the device: that is more"),
    (lambda slot: slot.upload_done.synchronize(), "raised AttributeError"),
]


@pytest.mark.parametrize(("answer", "says"), FILLS)
def test_before_fill(answer: Answer, says: str) -> None:
    result = before_fill.check(answer)
    assert not result
    assert says in result.says


def test_before_fill_by_asking_until_the_answer_is_yes() -> None:
    def poll(slot: Any) -> None:
        while not slot.previous.h2d_done.query():
            pass

    assert before_fill.check(poll)


def test_without_a_wait_the_tokens_are_wrong_where_copies_are_slow() -> None:
    assert "of 48 tokens are right" in before_fill.check(lambda slot: None).yours
    assert "48 of 48" not in before_fill.check(lambda slot: None).yours
