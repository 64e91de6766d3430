"""The counters of a drawn range."""

import pytest

from labkit.analysis.comparison import step_ends
from labkit.analysis.counters import flights
from labkit.analysis.occupancy import report
from labkit.analysis.units import share_text
from labkit.viz.strips import counter_axis, counter_trace, counters
from tests.unit.synthetic import async_trace, sync_trace
from tests.unit.viz.runs import mixed_run


def by_name(trace, start_ns, end_ns, steps=()):
    return {counter.name.split(":")[0]: counter for counter in counters(trace, start_ns, end_ns, steps)}


def test_gpu_active_in_view_is_the_report_s_for_the_whole_run():
    trace = sync_trace()
    counter = by_name(trace, trace.start_ns, trace.end_ns)["GPU active in view"]
    assert counter.name.endswith(share_text(report(trace).gpu_active))
    widths = [end - start for start, end in zip(counter.x, counter.x[1:], strict=False)]
    area = sum(width * share for width, share in zip(widths, counter.y, strict=False)) / 100
    assert area == pytest.approx(report(trace).busy_ns / 1000, rel=1e-3)


def test_a_counter_covers_the_drawn_range_and_nothing_else():
    trace = async_trace(20)
    for counter in counters(trace, 200_000, 700_000):
        assert (counter.x[0], counter.x[-1]) == (200, 700)
        assert counter.x == sorted(counter.x)
        assert len(counter.x) == len(counter.y)


def test_the_count_at_the_left_edge_is_that_of_the_steps_begun_before():
    trace = async_trace(20)
    for at in range(600_000, 900_000, 17_000):
        expected = sum(start <= at < end for start, end in flights(trace).values())
        assert by_name(trace, at, 950_000)["steps in flight"].y[0] == expected > 0


def test_tokens_per_second_add_up_to_the_tokens_of_the_run():
    run = mixed_run(5)
    counter = by_name(run.trace, run.trace.start_ns, run.trace.end_ns, run.steps)["tokens/s"]
    spans = [end - start for start, end in zip(counter.x, counter.x[1:], strict=False)]
    ends = [end / 1000 for end in step_ends(run.trace).values()]
    assert counter.x[1:] == pytest.approx(ends)
    tokens = sum(rate * width / 1e6 for rate, width in zip(counter.y, spans, strict=False))
    assert tokens == pytest.approx(sum(map(len, run.tokens)) + run.stats["overruns"], rel=1e-4)


def test_an_empty_range_has_no_counters():
    assert counters(sync_trace(), 5, 5) == []


def test_a_counter_is_drawn_as_steps_below_its_name():
    trace = sync_trace()
    for counter in counters(trace, trace.start_ns, trace.end_ns):
        line, axis = counter_trace(counter, "y3"), counter_axis(counter, [0, 0.1])
        assert (line.line.shape, line.yaxis, line.fill) == ("hv", "y3", "tozeroy")
        assert axis["range"][1] > 1.5 * max(counter.y)
