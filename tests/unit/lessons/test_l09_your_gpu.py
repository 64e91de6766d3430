"""Lesson 09: its exercises answered in other right ways, and its pictures' sources."""

from __future__ import annotations

from labkit.lessons import l09_your_gpu as lesson


def test_a_median_of_rounds_is_a_right_way_to_measure_a_launch():
    def rounds(bench):
        took = []
        for _ in range(5):
            bench.wait()
            start = bench.now_ns()
            for _ in range(20):
                bench.launch()
            took.append((bench.now_ns() - start) / 20)
        return sorted(took)[2]

    assert lesson.launch_cost.check(rounds)


def test_any_two_copies_give_the_link():
    def middle(sizes, times):
        per_byte = (times[5] - times[2]) / (sizes[5] - sizes[2])
        return [times[2] - sizes[2] * per_byte, 1 / per_byte]

    assert lesson.link.check(middle)


def test_smoothing_over_the_slower_one_is_not_close_enough():
    def root(row):
        return (row.busy_ns**2 + sum(row.host_ns.values()) ** 2) ** 0.5

    assert not lesson.ahead_step.check(root).passed


def test_the_starters_are_plausible_and_wrong():
    says = [it.check(it.starter).says for it in (lesson.launch_cost, lesson.link, lesson.ahead_step)]
    assert "Something else is in it" in says[0]
    assert "The bandwidth is off" in says[1]
    assert "the GPU waits for it" in says[2]


def test_what_the_notebook_uses_is_there():
    assert all(hasattr(lesson, name) for name in lesson.__all__)
