"""The pieces that judges are made of."""

from __future__ import annotations

import pytest

from labkit.errors import EngineFault
from labkit.lessons.playground import Playground
from labkit.lessons.result import wrong
from labkit.lessons.support.judging import (
    _in_cell,
    host_waits,
    judged,
    number_result,
    ordered,
    race_result,
    unwrapped,
    value_result,
)


def test_a_race_becomes_a_result_with_both_spans_and_the_missing_edge():
    play = Playground()
    play.upload()
    play.double()
    result = race_result(play.trace(), "the host read 0", "42")
    assert (
        "Nothing makes `double` on compute, which reads x, wait until `upload` on h2d, which writes x," in result.says
    )
    assert result.yours == "1 race, the host read 0"
    assert result.expected.startswith("no race, 42. Missing: record after `upload`")
    assert [(span.kind, span.name) for span in result.spans] == [("copy", "upload"), ("kernel", "double")]


def test_a_near_miss_names_the_line_of_the_cell_and_no_place_in_the_engine():
    assert (
        _in_cell("x is recorded too early (cell:5), so it is")
        == "x is recorded too early (line 5 of your cell), so it is"
    )
    assert (
        _in_cell("x is recorded after `y` (core.py:87), but z does not wait")
        == "x is recorded after `y`, but z does not wait"
    )


def test_what_is_missing_can_be_said_in_other_words():
    play = Playground()
    play.upload()
    play.double()
    result = race_result(play.trace(), "", "42", lambda race: f"{race.second.operation} behind {race.first.operation}")
    assert result.expected == "no race, 42. Missing: double behind upload"


def test_two_streams_are_ordered_by_an_event_alone():
    """Two streams have no order between them until an event gives one, asked either way round."""
    for waits in (False, True):
        play = Playground()
        play.double()
        if waits:
            done = play.event("done")
            done.record(play.compute)
            play.d2h.wait_event(done)
        play.download()
        trace = play.trace()
        assert ordered(trace, "double", "download") is ordered(trace, "download", "double") is waits


def test_a_wait_of_the_host_orders_what_is_launched_after_it():
    play = Playground()
    play.upload()
    play.h2d.synchronize()
    play.double()
    assert ordered(play.trace(), "upload", "double")


def test_no_race_is_no_complaint():
    play = Playground()
    play.upload()
    play.h2d.synchronize()
    play.double()
    assert race_result(play.trace(), "", "") is None


@pytest.mark.parametrize(("value", "sentence"), [(None, "`return`"), ("42", "no number"), (True, "no number")])
def test_what_is_no_number_is_refused(value, sentence):
    assert sentence in number_result(value, "42").says


def test_a_number_is_compared():
    assert number_result(42.0, "42") is None
    assert value_result(42.0, 42) is None
    assert (value_result(41.5, 42).yours, value_result(41.5, 42).expected) == ("41.5", "42")


def test_the_first_complaint_is_the_verdict_and_the_rest_is_not_looked_at():
    def complaints():
        yield None
        yield wrong("first", yours=1, expected=2)
        raise AssertionError("looked on")

    assert judged(complaints(), "fine").says == "first"
    assert judged([None, None], "fine").passed


def test_host_waits_are_synchronize_and_blocking_copies():
    play = Playground()
    landing = play.buffer("landing", "pageable")
    play.download(dst=landing)
    play.compute.synchronize()
    assert [span.kind for span in host_waits(play.trace())] == ["copy", "synchronize"]


def test_the_learners_own_exception_comes_out_of_the_engine():
    def fault():
        raise EngineFault("a step failed") from KeyError("h2d")

    with pytest.raises(KeyError, match="h2d"):
        unwrapped(fault)
    assert unwrapped(lambda: 3) == 3
