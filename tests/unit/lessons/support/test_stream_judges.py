"""What the judges of lesson 03 look at besides races: order of calls and counts, and no times."""

from __future__ import annotations

import pytest

from labkit.lessons import l03_streams as lesson
from labkit.lessons.playground import Playground
from labkit.lessons.support.stream_judges import HOST_MOMENTS, host_order


@pytest.mark.parametrize("profile", ["zero", "h200-8b"])
def test_a_verdict_does_not_depend_on_how_long_things_take(monkeypatch, profile):
    plain = Playground.__init__
    monkeypatch.setattr(Playground, "__init__", lambda self, device: plain(self, device, profile))
    for exercise in (lesson.bring_back, lesson.pipeline):
        assert not exercise.check(exercise.starter)
        assert exercise.check(exercise.solutions[0])


def test_only_the_hosts_moments_are_asked_for():
    asked = []
    order = host_order(lambda moment, streams: asked.append(moment))
    for moment in ("uploaded", *HOST_MOMENTS, "downloaded"):
        order(moment, None, None)
    assert tuple(asked) == HOST_MOMENTS
