"""The programs in which answers are tried do what their docstrings say."""

from __future__ import annotations

import pytest

from labkit.analysis.races import check
from labkit.errors import InvalidArgument
from labkit.lessons.support.event_programs import (
    MOST_CALLS,
    Diamond,
    EndlessLoop,
    Polling,
    TwoSteps,
    limited,
    short_program,
    starts,
)


@pytest.mark.parametrize(
    ("program", "last_start"),
    [
        ("A30 record wait A40 B10", 30),  # rule 15
        ("A30 wait B10", 0),  # 16
        ("A30 record wait A40 record B10", 30),  # 17
        ("wait A30 record B10", 0),  # 18
        ("A30 record A40 record wait B10", 70),  # 19
        ("A30 record B10 wait B10", 30),  # 20
    ],
)
def test_a_short_program_keeps_the_rules_of_events(program, last_start):
    assert starts(short_program(program), "B")[-1] == last_start


def test_the_host_of_a_short_program():
    assert short_program("A30 record A40 host5 sync").now_us == 30
    assert short_program("A30 record A40 record host50 sync").now_us == 70


@pytest.mark.parametrize("word", ["C30", "A", "host", "synchronize", "A30x"])
def test_an_unknown_word_is_named(word):
    with pytest.raises(InvalidArgument, match=word):
        short_program(f"A30 {word}")


def test_two_steps_are_ordered_on_the_device_and_not_for_the_host():
    play = TwoSteps("virtual")
    for step in play.steps:
        play.run(step)
    play.d2h.synchronize()
    assert [play.read(step.y_host) for step in play.steps] == [42, 100]
    assert not check(play.trace()).races


def test_polling_counts_the_hosts_work():
    play = Polling("virtual")
    before = play.device.now_ns()
    play.work()
    assert (play.pieces, play.device.now_ns() - before) == (1, 10_000)


def test_the_two_kernels_of_the_diamond_run_side_by_side():
    play = Diamond("virtual")
    play.double()
    play.triple()
    double, triple = play.trace().of_kind("kernel")
    assert triple.start_ns < double.end_ns


def test_a_trace_names_the_line_of_the_answer_and_none_of_the_program():
    play = TwoSteps("virtual")
    play.run(play.steps[0])
    sources = {span.source.partition(":")[0] for span in play.trace().of_kind("copy", "kernel", "wait")}
    assert sources == {"test_event_programs.py"}


def test_a_loop_without_end_ends():
    call = limited(lambda: None, "query()")
    for _ in range(MOST_CALLS):
        call()
    with pytest.raises(EndlessLoop, match="query"):
        call()
