"""The judges of measurements: near is near, and each slip has its sentence."""

from __future__ import annotations

import pytest

from labkit.lessons.support.measuring import judge_launch, judge_link, judge_step, near, number


@pytest.mark.parametrize(("value", "wanted"), [(1, 1.0), (2.5, 2.5), (True, None), ("1", None), (None, None)])
def test_only_a_number_is_a_number(value, wanted):
    assert number(value) == wanted


@pytest.mark.parametrize(("value", "close"), [(102, True), (98, True), (103, False), (0, False), (-100, False)])
def test_near_is_within_two_percent(value, close):
    assert near(value, 100) is close


def launches(count, turn):
    def answer(bench):
        start = bench.now_ns()
        for _ in range(count):
            bench.launch()
        return turn(bench, bench.now_ns() - start)

    return answer


def after_waiting(bench):
    start = bench.now_ns()
    for _ in range(50):
        bench.launch()
    bench.wait()
    return (bench.now_ns() - start) / 50


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (launches(1, lambda bench, took: took), "Launch at least 20 times"),
        (launches(100, lambda bench, took: took), "all launches together"),
        (launches(100, lambda bench, took: took / 100_000), "in microseconds"),
        (launches(100, lambda bench, took: took / 200), "Less than a launch costs"),
        (after_waiting, "Something else is in it"),
        (lambda bench: 9_700, "Launch at least 20 times"),
        (lambda bench: 0, "Nothing was launched"),
        (lambda bench: None, "Is there a `return`?"),
    ],
)
def test_launch_slips(answer, says):
    result = judge_launch(answer, "virtual")
    assert not result.passed
    assert says in result.says


def test_a_mean_over_launches_passes_and_is_told_for_the_device():
    result = judge_launch(launches(40, lambda bench, took: took / 40), "virtual")
    assert result.passed
    assert "On virtual (h200-8b): " in result.says


def slope(sizes, times):
    return (times[-1] - times[0]) / (sizes[-1] - sizes[0])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda s, t: (1 / slope(s, t), t[0] - s[0] * slope(s, t)), "the wrong way round"),
        (lambda s, t: (t[0] - s[0] * slope(s, t), slope(s, t)), "ns per byte"),
        (lambda s, t: (t[0] - s[0] * slope(s, t), s[-1] / t[-1]), "The bandwidth is off."),
        (lambda s, t: (t[3], 1 / slope(s, t)), "The bandwidth is right. The latency"),
        (lambda s, t: 1 / slope(s, t), "Two numbers are asked for"),
        (lambda s, t: (None, 1), "Two numbers are asked for"),
    ],
)
def test_link_slips(answer, says):
    result = judge_link(answer, "virtual")
    assert not result.passed
    assert says in result.says


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda row: row.ns, "one after the other"),
        (lambda row: row.busy_ns, "the GPU waits for it"),
        (lambda row: sum(row.host_ns.values()), "disappears behind them"),
        (lambda row: max(row.busy_ns, sum(row.host_ns.values())) / 1e6, "in ms"),
        (lambda row: row.ns + row.busy_ns, "Longer than the synchronous step"),
        (lambda row: row.ns / 10, "not what this machine measures"),
        (lambda row: None, "Is there a `return`?"),
    ],
)
def test_step_slips(answer, says):
    result = judge_step(answer, "virtual")
    assert not result.passed
    assert says in result.says
