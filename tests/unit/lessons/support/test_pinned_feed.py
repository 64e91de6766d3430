"""The world of 5.1 and 5.2, and what their scores count."""

from __future__ import annotations

import pytest

from labkit.errors import InvalidArgument
from labkit.lessons.l05_double_buffering import guard, two_pinned
from labkit.lessons.support.pinned_feed import Feed


def test_a_refilled_buffer_arrives_refilled() -> None:
    play = Feed("virtual")
    play.forward()
    play.fill(1)
    play.send()
    play.fill(2)
    play.forward()
    play.trace()
    assert play.values() == [0, 2]


def test_there_are_two_pinned_buffers() -> None:
    for call in (lambda play: play.fill(1, 2), lambda play: play.send(-1)):
        with pytest.raises(InvalidArgument, match="buffer="):
            call(Feed("virtual"))


def test_two_buffers_wait_less_than_one() -> None:
    one, two = guard.score(guard.solutions[0]), two_pinned.score(two_pinned.solutions[0])
    assert one.value is not None
    assert two.value is not None
    assert two.value < one.value / 2
