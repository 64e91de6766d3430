"""Lesson 03: each plausible wrong answer gets the sentence that helps."""

from __future__ import annotations

import pytest

from labkit.lessons import l03_streams as lesson


def says(exercise, answer):
    result = exercise.check(answer)
    assert not result
    return f"{result.says} yours: {result.yours} expected: {result.expected}"


# -- 3.1 ---------------------------------------------------------------------------------------------------------------


def same_kind_is_same_stream(first, second):
    return first == second or ("default" in (first, second) and "torch" not in (first, second))


def one_way(first, second):
    return first == second == "per_thread" or (first == "default" and second != "torch")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.must_wait.starter, "kind default, B in one of kind torch: B does not wait for A"),
        (lambda first, second: False, "kind default, B in one of kind default: B waits for A"),
        (same_kind_is_same_stream, "kind torch, B in one of kind torch: B does not wait"),
        (one_way, "kind blocking, B in one of kind default: B waits"),
        (lambda first, second: None, "True or False"),
        (lambda first, second: first["default"], "TypeError at line"),
    ],
)
def test_must_wait(answer, sentence):
    assert sentence in says(lesson.must_wait, answer)


def test_the_two_kernels_of_a_wrong_pair_are_shown():
    result = lesson.must_wait.check(lesson.must_wait.starter)
    assert [(span.name, span.start_ns) for span in result.spans] == [("A", 0), ("B", 0)]


# -- 3.2 ---------------------------------------------------------------------------------------------------------------


def reads_at_once(play, work, pageable, pinned):
    play.download(pinned, play.y, play.compute)
    work()
    return play.read(pinned)


def another_stream(play, work, pageable, pinned):
    play.download(pinned, play.y, play.d2h)
    work()
    play.d2h.synchronize()
    return play.read(pinned)


def waits_first(play, work, pageable, pinned):
    play.download(pinned, play.y, play.compute)
    play.compute.synchronize()
    work()
    return play.read(pinned)


def works_first(play, work, pageable, pinned):
    work()
    play.download(pinned, play.y, play.compute)
    play.compute.synchronize()
    return play.read(pinned)


def lazy(play, work, pageable, pinned):
    play.download(pinned, play.y, play.compute)
    play.compute.synchronize()
    return play.read(pinned)


def without_end(play, work, pageable, pinned):
    while True:
        work()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.bring_back.starter, "sits in the download"),
        (reads_at_once, "Missing: after `download` the host waits for compute (`synchronize`) before it reads y_host"),
        (another_stream, "Missing: `download` in the same stream as `double` (compute)"),
        (waits_first, "waits before it works"),
        (works_first, "enqueues the copy afterwards"),
        (lazy, "work() was not called"),
        (without_end, "work() 20,000 times"),
        (lambda play, work, pageable, pinned: 42, "Nothing is copied back"),
        (lambda play, work, pageable, pinned: None, "returned no number"),
    ],
)
def test_bring_back(answer, sentence):
    assert sentence in says(lesson.bring_back, answer)


def polls(play, work, pageable, pinned):
    landed = play.event("landed")
    play.download(pinned, play.y, play.compute)
    landed.record(play.compute)
    work()
    while not landed.query():
        pass
    return play.read(pinned)


def test_who_asks_an_event_needs_no_synchronize():
    assert lesson.bring_back.check(polls)


# -- 3.3 ---------------------------------------------------------------------------------------------------------------


def a_stream_for_each_kind(play, chunks, streams):
    for chunk in chunks:
        play.upload(chunk.x, chunk.x_host, streams[0])
        play.double(chunk.y, chunk.x, streams[1])
        play.download(chunk.y_host, chunk.y, streams[2])
    for stream in streams:
        stream.synchronize()
    return [play.read(chunk.y_host) for chunk in chunks]


def one_by_one(play, chunks, streams):
    results = []
    for chunk, stream in zip(chunks, streams, strict=True):
        play.upload(chunk.x, chunk.x_host, stream)
        play.double(chunk.y, chunk.x, stream)
        play.download(chunk.y_host, chunk.y, stream)
        stream.synchronize()
        results.append(play.read(chunk.y_host))
    return results


def waits_for_the_last_only(play, chunks, streams):
    for chunk, stream in zip(chunks, streams, strict=True):
        play.upload(chunk.x, chunk.x_host, stream)
        play.double(chunk.y, chunk.x, stream)
        play.download(chunk.y_host, chunk.y, stream)
    streams[-1].synchronize()
    return [play.read(chunk.y_host) for chunk in chunks]


def backwards(play, chunks, streams):
    return lesson.pipeline.solutions[0](play, chunks, streams)[::-1]


def two_streams(play, chunks, streams):
    for number, chunk in enumerate(chunks):
        stream = streams[number % 2]
        play.upload(chunk.x, chunk.x_host, stream)
        play.double(chunk.y, chunk.x, stream)
        play.download(chunk.y_host, chunk.y, stream)
    play.device.synchronize()
    return [play.read(chunk.y_host) for chunk in chunks]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.pipeline.starter, "a single stream is a single queue"),
        (a_stream_for_each_kind, "Missing: `double` in the same stream as `upload` (stream 0)"),
        (one_by_one, "waits before it has enqueued everything"),
        (waits_for_the_last_only, "the host waits for stream 0 (`synchronize`) before it reads y_host[0]"),
        (backwards, "the values are wrong. yours: [8.0, 6.0, 4.0, 2.0]"),
        (lambda play, chunks, streams: [2.0, 4.0, 6.0, 8.0], "Not all operations are there"),
        (lambda play, chunks, streams: None, "has to return the four results"),
    ],
)
def test_pipeline(answer, sentence):
    assert sentence in says(lesson.pipeline, answer)


def test_two_streams_pass_and_four_are_faster():
    best, other = lesson.pipeline.score(lesson.pipeline.solutions[0]), lesson.pipeline.score(two_streams)
    serial = lesson.pipeline.measure(lesson.pipeline.starter, "virtual")
    assert best.value == best.best <= other.value < serial


# -- 3.4 ---------------------------------------------------------------------------------------------------------------


def all_at_the_end(moment, streams):
    if moment == "before_read":
        streams.h2d.synchronize()
        streams.compute.synchronize()
        streams.d2h.synchronize()


def own_stream(moment, streams):
    """Each time the stream that is about to be used, in place of the one before it."""
    if moment == "before_compute":
        streams.compute.synchronize()
    if moment == "before_download":
        streams.d2h.synchronize()
    if moment == "before_read":
        streams.d2h.synchronize()


def too_often(moment, streams):
    streams.h2d.synchronize()
    streams.compute.synchronize()
    streams.d2h.synchronize()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lesson.wait_before.starter, "`forward` on compute, which reads inputs_dev[A], wait until `upload`"),
        (all_at_the_end, "`forward` on compute, which reads inputs_dev[A], wait until `upload`"),
        (own_stream, "`forward` on compute, which reads inputs_dev[A], wait until `upload`"),
        (too_often, "yours: 9 waits of the host in a step expected: 3"),
        (lambda moment, streams: streams.upload.synchronize(), "AttributeError at line"),
    ],
)
def test_wait_before(answer, sentence):
    assert sentence in says(lesson.wait_before, answer)


def test_what_is_missing_is_a_wait_of_the_host():
    result = lesson.wait_before.check(lesson.wait_before.starter)
    assert (
        "Missing: after `upload` the host waits for h2d (`synchronize`) before it launches `forward`" in result.expected
    )


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (lesson.bring_back, reads_at_once),
        (lesson.bring_back, another_stream),
        (lesson.pipeline, a_stream_for_each_kind),
        (lesson.pipeline, waits_for_the_last_only),
        (lesson.wait_before, lesson.wait_before.starter),
        (lesson.wait_before, all_at_the_end),
    ],
)
def test_no_answer_speaks_of_events_which_come_later(exercise, answer):
    said = says(exercise, answer)
    assert not [word for word in ("record", "event", "waits on it") if word in said]


def test_host_waits_cost_what_the_streams_gained():
    """The solution is no faster than rung 0; without waits the step is a fifth shorter."""
    waiting = lesson.wait_before.measure(lesson.wait_before.solutions[0], "virtual")
    rushing = lesson.wait_before.measure(lambda moment, streams: None, "virtual")
    assert rushing < 0.85 * waiting
