"""Lesson 04: each plausible wrong answer gets the sentence that helps."""

from __future__ import annotations

import pytest

from labkit.lessons import l04_events as lesson
from labkit.lessons.support.ordered_engine import MOMENTS


def says(exercise, answer):
    result = exercise.check(answer)
    assert not result
    return f"{result.says} yours: {result.yours} expected: {result.expected}"


# -- 4.1 ---------------------------------------------------------------------------------------------------------------


def wait_first(play):
    uploaded, doubled, downloaded = play.event("uploaded"), play.event("doubled"), play.event("downloaded")
    play.write(21)
    play.compute.wait_event(uploaded)
    play.upload()
    uploaded.record(play.h2d)
    play.double()
    doubled.record(play.compute)
    play.d2h.wait_event(doubled)
    play.download()
    downloaded.record(play.d2h)
    downloaded.synchronize()
    return play.read()


def wrong_stream(play):
    uploaded, doubled, downloaded = play.event("uploaded"), play.event("doubled"), play.event("downloaded")
    play.write(21)
    play.upload()
    uploaded.record(play.compute)
    play.compute.wait_event(uploaded)
    play.double()
    doubled.record(play.compute)
    play.d2h.wait_event(doubled)
    play.download()
    downloaded.record(play.d2h)
    downloaded.synchronize()
    return play.read()


def host_everywhere(play):
    play.write(21)
    play.upload()
    play.h2d.synchronize()
    play.double()
    play.compute.synchronize()
    play.download()
    play.d2h.synchronize()
    return play.read()


def no_return(play):
    lesson.three_edges.solutions[0](play)


def made_up(play):
    lesson.three_edges.solutions[0](play)
    return 43


def never_read(play):
    play.write(21)
    return 42


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (wait_first, "Nearly: uploaded is recorded after `upload` only when compute has already waited"),
        (wrong_stream, "which writes x,"),
        (host_everywhere, "yours: 3 waits of the host expected: 1"),
        (no_return, "Is there a `return`"),
        (made_up, "Everything is ordered, and the value is wrong. yours: 43"),
        (never_read, "never reads y_host"),
    ],
)
def test_three_edges(answer, sentence):
    assert sentence in says(lesson.three_edges, answer)


def test_a_race_of_three_edges_names_the_edge_and_shows_both_spans():
    result = lesson.three_edges.check(lesson.three_edges.starter)
    assert "Missing: record after `upload` on h2d; compute waits on it" in result.expected
    assert [span.name for span in result.spans] == ["upload", "double"]


# -- 4.2 ---------------------------------------------------------------------------------------------------------------


def one_at_a_time(play, first, second):
    done = play.event("done")
    play.run(first)
    done.record(play.d2h)
    done.synchronize()
    one = play.read(first.y_host)
    play.run(second)
    done.record(play.d2h)
    done.synchronize()
    return one, play.read(second.y_host)


def whole_stream(play, first, second):
    play.run(first)
    play.run(second)
    play.d2h.synchronize()
    return play.read(first.y_host), play.read(second.y_host)


def too_soon(play, first, second):
    first_done = play.event("first_done")
    play.run(first)
    first_done.record(play.d2h)
    play.run(second)
    first_done.synchronize()
    return play.read(first.y_host), play.read(second.y_host)


def exchanged(play, first, second):
    return tuple(reversed(lesson.two_in_flight.solutions[0](play, first, second)))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.two_in_flight.starter, "`done` was recorded again"),
        (one_at_a_time, "waits before the second step is enqueued"),
        (whole_stream, "`host waits for d2h` waits for all that is in it by then"),
        (too_soon, "which reads y_host_1"),
        (exchanged, "the values are wrong. yours: (100.0, 42.0)"),
        (lambda play, first, second: (None, "100"), "has to return both results"),
        (lambda play, first, second: None, "has to return both results"),
        (lambda play, first, second: (42, 100), "The host never reads y_host"),
    ],
)
def test_two_in_flight(answer, sentence):
    assert sentence in says(lesson.two_in_flight, answer)


# -- 4.3 ---------------------------------------------------------------------------------------------------------------


def idle_poll(landed, work, read):
    while not landed.query():
        pass
    return read()


def never_asks(landed, work, read):
    work()
    return read()


def asks_once(landed, work, read):
    if landed.query():
        return read()
    work()
    return None


def without_end(landed, work, read):
    while True:
        work()


def asks_without_end(landed, work, read):
    while landed.query() or True:
        pass


def guesses(landed, work, read):
    for _ in range(10):
        work()
    return read()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.work_while_waiting.starter, "sits in `synchronize`"),
        (idle_poll, "0 pieces of work"),
        (never_asks, "1 race, the host read 0"),
        (asks_once, "returned no number"),
        (without_end, "work() 20,000 times"),
        (asks_without_end, "query() 20,000 times"),
        (guesses, "1 race, the host read 42"),
    ],
)
def test_work_while_waiting(answer, sentence):
    assert sentence in says(lesson.work_while_waiting, answer)


# -- 4.4 ---------------------------------------------------------------------------------------------------------------


def nothing(moment, slot, streams):
    assert moment in MOMENTS


def first_mended(moment, slot, streams):
    if moment == "before_read":
        slot.compute_done.synchronize()
    else:
        lesson.missing_edge.solutions[0](moment, slot, streams)


def second_mended(moment, slot, streams):
    if moment == "before_read":
        slot.d2h_done.synchronize()
    else:
        lesson.missing_edge.starter(moment, slot, streams)


def host_for_each(moment, slot, streams):
    if moment == "before_compute":
        streams.h2d.synchronize()
    if moment == "before_download":
        streams.compute.synchronize()
    if moment == "before_read":
        streams.d2h.synchronize()


def misspelt(moment, slot, streams):
    slot.upload_done.record(streams.h2d)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.missing_edge.starter, "Nearly: compute_done[A] is recorded after `sample` only when d2h has already"),
        (nothing, "7 races, the tokens are wrong"),
        (first_mended, "the host, which reads outputs_host[A], wait until `download`"),
        (second_mended, "`download` on d2h, which reads outputs_dev[A], wait until `sample`"),
        (host_for_each, "yours: 3 waits of the host in a step expected: 1"),
        (misspelt, "AttributeError at line"),
    ],
)
def test_missing_edge(answer, sentence):
    assert sentence in says(lesson.missing_edge, answer)


# -- 4.5 ---------------------------------------------------------------------------------------------------------------


def too_few(play):
    landed = play.event("landed")
    play.write(21)
    play.upload()
    play.double()
    play.triple()
    play.add()
    play.download()
    landed.record(play.d2h)
    landed.synchronize()
    return play.read()


def host_for_the_upload(play):
    """Five waits as well, and none redundant, but two are the host's."""
    loaded, tripled, added, landed = (play.event(name) for name in ("loaded", "tripled", "added", "landed"))
    play.write(21)
    play.upload()
    loaded.record(play.h2d)
    loaded.synchronize()
    play.double()
    play.triple()
    tripled.record(play.side)
    play.compute.wait_event(tripled)
    play.add()
    added.record(play.compute)
    play.d2h.wait_event(added)
    play.download()
    landed.record(play.d2h)
    landed.synchronize()
    return play.read()


def in_turn(play):
    """The other one of the two that replace each other: side waits for the first kernel."""
    loaded, doubled, tripled, added, landed = (
        play.event(name) for name in ("loaded", "doubled", "tripled", "added", "landed")
    )
    play.write(21)
    play.upload()
    loaded.record(play.h2d)
    play.compute.wait_event(loaded)
    play.double()
    doubled.record(play.compute)
    play.side.wait_event(doubled)
    play.triple()
    tripled.record(play.side)
    play.compute.wait_event(tripled)
    play.add()
    added.record(play.compute)
    play.d2h.wait_event(added)
    play.download()
    landed.record(play.d2h)
    landed.synchronize()
    return play.read()


def without_the_kernels(play):
    play.write(52.5)
    play.upload(stream=play.compute)
    play.double()
    play.download(stream=play.compute)
    play.compute.synchronize()
    return play.read()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.fewest_waits.starter, "host_waits_loaded or compute_waits_loaded has to stay"),
        (too_few, "the host read 0"),
        (host_for_the_upload, "2 waits of the host"),
        (in_turn, "your waits order `double` and `triple`, so the two cannot run at the same time"),
        (without_the_kernels, "Not all kernels are there. yours: double"),
        (lambda play: None, "returned no number"),
    ],
)
def test_fewest_waits(answer, sentence):
    assert sentence in says(lesson.fewest_waits, answer)


def test_the_kernels_in_turn_are_shown_with_the_wait_between_them():
    shown = [(span.kind, span.name) for span in lesson.fewest_waits.check(in_turn).spans]
    assert shown == [("kernel", "double"), ("wait", "side waits for doubled"), ("kernel", "triple")]


def with_a_record_too_many(play):
    """The five waits of the solution, and the record that is left of a sixth."""
    play.event("doubled").record(play.compute)
    return lesson.fewest_waits.solutions[0](play)


def test_a_record_for_which_nobody_waits_passes_and_costs_its_call():
    best, other = (
        lesson.fewest_waits.score(answer) for answer in (lesson.fewest_waits.solutions[0], with_a_record_too_many)
    )
    assert best.value == best.best < other.value
