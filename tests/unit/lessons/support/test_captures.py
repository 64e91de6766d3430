"""The worlds of 7.1 and 7.2."""

from __future__ import annotations

from labkit.lessons.support.captures import Branches, GraphPlay


def test_a_capture_runs_nothing_and_a_replay_does() -> None:
    play = GraphPlay("virtual")
    play.set_input(4)
    graph = play.capture(play.double)
    assert play.result() == 0
    play.replay(graph)
    assert play.result() == 8


def test_branches_compute_what_they_say() -> None:
    play = Branches("virtual")
    for kernel in (play.a, play.left, play.right, play.last):
        kernel(play.compute)
    play.trace()
    assert [float(buffer.tensor[-1]) for buffer in (play.p, play.q, play.r, play.s)] == [3, 4, 6, 10]
