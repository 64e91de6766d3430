"""What the judges look at besides races: on a real GPU too, so counts and order, and no times."""

from __future__ import annotations

from labkit.lessons import l04_events as lesson
from labkit.lessons.playground import Playground
from labkit.lessons.support import event_judges
from labkit.lessons.support.event_programs import Diamond


def test_a_verdict_does_not_depend_on_how_long_things_take(monkeypatch):
    """With every cost zero the values may come out right by luck; the verdicts are the same."""
    plain = Playground.__init__

    def free(self, device="virtual", profile="zero"):
        plain(self, device, "zero")

    monkeypatch.setattr(Playground, "__init__", free)
    for exercise in (lesson.three_edges, lesson.two_in_flight, lesson.fewest_waits):
        assert not exercise.check(exercise.starter)
        assert exercise.check(exercise.solutions[0])


def test_waits_are_counted_by_call():
    play = Diamond("virtual")
    lesson.fewest_waits.starter(play)
    assert event_judges.count_waits(play.trace()) == 8


def test_polling_is_no_wait_of_the_host():
    assert event_judges.work_while_waiting(lesson.work_while_waiting.solutions[0], "virtual").passed
