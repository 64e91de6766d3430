"""The worlds of 7.1 and 7.2."""

from __future__ import annotations

from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.captures import Answer, Branches, GraphPlay, _virtual_first


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


def test_an_answer_that_fails_on_the_virtual_gpu_never_reaches_a_real_one() -> None:
    seen: list[str] = []

    def judge(answer: Answer, device: str) -> Result:
        seen.append(device)
        return right("good") if answer() else wrong("bad", yours="", expected="")

    assert not _virtual_first(judge, lambda: False, "cuda")
    assert seen == ["virtual"]
    assert _virtual_first(judge, lambda: True, "cuda")
    assert seen == ["virtual", "virtual", "cuda"]
    assert _virtual_first(judge, lambda: True, "virtual")
    assert seen == ["virtual", "virtual", "cuda", "virtual"]
