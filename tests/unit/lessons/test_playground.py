"""The small world of the exercises: what it does with the right events, and without."""

from __future__ import annotations

import pytest

from labkit.analysis.races import check
from labkit.lessons.playground import Playground


def in_order(play: Playground, value: float = 21) -> float:
    up, done, down = (play.event(name) for name in ("up", "done", "down"))
    play.write(value)
    play.upload()
    up.record(play.h2d)
    play.compute.wait_event(up)
    play.double()
    done.record(play.compute)
    play.d2h.wait_event(done)
    play.download()
    down.record(play.d2h)
    down.synchronize()
    return play.read()


def test_with_three_edges_the_host_reads_twice_what_it_wrote():
    play = Playground()
    assert in_order(play) == 42
    trace = play.trace()
    assert not check(trace).races
    assert [span.name for span in trace.of_kind("kernel")] == ["double"]


def test_without_them_there_are_races_and_a_wrong_number():
    play = Playground()
    play.write(21)
    play.upload()
    play.double()
    play.download()
    assert play.read() == 0
    assert len(check(play.trace()).races) >= 3


def test_the_set_up_is_no_part_of_the_trace_and_each_trace_is_new():
    play = Playground()
    assert not play.trace().spans
    play.write(1)
    assert len(play.trace().spans) == 1
    assert not play.trace().spans


def test_the_same_program_gives_the_same_trace():
    def spans() -> list[tuple[str, int, int]]:
        play = Playground()
        in_order(play)
        return [(span.name, span.start_ns, span.end_ns) for span in play.trace().spans]

    assert spans() == spans()


def test_other_buffers_streams_and_kernels():
    play = Playground()
    x, y = play.buffer("second_x", "device", 8), play.buffer("second_y", "pageable", 8)
    host = play.buffer("second_host", "pinned", 8)
    play.write(3, host)
    play.upload(x, host, play.compute)
    play.launch("triple", lambda: x.tensor.mul_(3), play.compute, [x], [x], us=100)
    play.download(y, x, play.compute)
    trace = play.trace()
    assert play.read(y) == 9
    (triple,) = trace.of_kind("kernel")
    assert triple.end_ns - triple.start_ns == 100_000
    assert {span.lane for span in trace.spans} >= {"CPU", "compute"}


def test_pinned_copies_return_at_once_and_pageable_ones_do_not_matter_to_the_value():
    play = Playground()
    pageable = play.buffer("pageable", "pageable")
    play.write(7, pageable)
    play.upload(src=pageable, stream=play.compute)
    play.double()
    play.download(stream=play.compute)
    play.compute.synchronize()
    assert play.read() == 14


def test_an_unknown_profile_is_named():
    with pytest.raises(ValueError, match="no-such"):
        Playground(profile="no-such")
