import pytest

from labkit.analysis.conflicts import find_conflicts
from labkit.analysis.near_misses import NearMisses
from tests.unit.analysis.programs import Program


def near(program: Program) -> tuple[str, ...]:
    (conflict,) = find_conflicts(program.trace)
    return NearMisses(program.trace).of(conflict)


def test_recorded_too_early():
    program = Program().record("e", "s1").kernel("a", "s1", w="x").wait("s2", "e").kernel("b", "s2", r="x")
    assert near(program) == ("e is recorded too early, before `a` is submitted (line.py:0)",)


def test_waited_before_recorded_18():
    program = Program().wait("s2", "e").kernel("a", "s1", w="x").record("e", "s1").kernel("b", "s2", r="x")
    assert near(program) == ("e is recorded after `a` only when s2 has already waited (line.py:0)",)


def test_waited_before_the_record_of_this_time():
    program = Program().record("e", "s1").wait("s2", "e").kernel("a", "s1", w="x").record("e", "s1")
    assert near(program.kernel("b", "s2", r="x")) == (
        "e is recorded after `a` only when s2 has already waited (line.py:1)",
    )


def test_overwritten_by_a_later_record_19():
    program = Program().kernel("a", "s1", w="x").record("e", "s1").record("e", "s3").wait("s2", "e")
    (sentence,) = near(program.kernel("b", "s2", r="x"))
    assert sentence == "e is recorded again on s3 (line.py:2) before s2 waits: its record on s1 is lost"


def test_captured_only_51():
    program = Program(captured_events=["e"]).kernel("a", "s1", w="x").wait("s2", "e").kernel("b", "s2", r="x")
    assert near(program) == ("e is recorded only inside a capture, where it is an edge of the graph and no marker",)


def test_an_event_of_a_capture_that_is_recorded_outside_too_is_judged_by_that():
    program = Program(captured_events=["e"]).record("e", "s1").kernel("a", "s1", w="x").wait("s2", "e")
    assert near(program.kernel("b", "s2", r="x")) == ("e is recorded too early, before `a` is submitted (line.py:0)",)


def test_recorded_and_never_waited_for():
    program = Program().d2h("down", "s", "x", "h").record("e", "s").record("late", "s").read("h")
    assert near(program) == ("e is recorded after `down` (line.py:1), but the host does not wait for it",)


@pytest.mark.parametrize("other", [("e", "s3"), ("f", "s3")])
def test_an_event_of_another_stream_is_no_near_miss(other):
    program = Program().record(*other).kernel("a", "s1", w="x").wait("s2", other[0]).kernel("b", "s2", r="x")
    assert near(program) == ()


def test_the_wait_of_another_stream_or_a_false_query_is_no_wait():
    program = Program().d2h("down", "s", "x", "h").record("e", "s").wait("t", "e").query("e", False).read("h")
    assert near(program) == ("e is recorded after `down` (line.py:1), but the host does not wait for it",)


def test_the_slots_of_an_event_are_named_once():
    program = Program()
    for slot in "AB":
        program.kernel("a", "s1", w=f"x[{slot}]").record(f"e[{slot}]", "s1").kernel("b", "s2", r=f"x[{slot}]")
    assert near(program) == ("e[A] is recorded after `a` (line.py:1), but s2 does not wait for it",)
