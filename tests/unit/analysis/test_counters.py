"""Counters along a run, against sums made another way."""

import pytest

from labkit.analysis.counters import active_ns, flights, steps_in_flight, token_rates
from labkit.analysis.occupancy import report
from labkit.trace.events import Span, Trace
from tests.unit.analysis.test_blame import random_trace
from tests.unit.synthetic import US, async_trace, sync_trace


def edges_of(trace: Trace, bins: int) -> list[int]:
    return [trace.start_ns + trace.duration_ns * place // bins for place in range(bins + 1)]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("bins", [1, 7, 150])
def test_active_time_per_bin_sums_to_the_busy_time_of_the_report(seed, bins):
    trace = random_trace(seed)
    assert sum(active_ns(trace, edges_of(trace, bins))) == pytest.approx(report(trace).busy_ns, rel=1e-9, abs=1e-6)


def test_active_time_of_a_part_is_that_part_s():
    trace = Trace(tuple(Span(n, "kernel", "k", "compute", n * 100, n * 100 + 50, busy_ns=25) for n in range(4)))
    assert active_ns(trace, [0, 50, 100, 225]) == [25, 0, 37.5]
    assert active_ns(trace, [60, 90]) == [0]


def test_a_synchronous_engine_has_one_step_in_flight_and_an_asynchronous_one_two():
    assert max(count for _, count in steps_in_flight(sync_trace(4))) == 1
    assert max(count for _, count in steps_in_flight(async_trace(6))) == 2


def test_the_count_changes_where_a_plan_or_a_settle_ends():
    trace = sync_trace(2)
    plans = [span.end_ns for span in trace.spans if span.name == "plan"]
    settles = [span.end_ns for span in trace.spans if span.name == "settle"]
    expected = [(0, 0), (plans[0], 1), (settles[0], 0), (plans[1], 1), (settles[1], 0)]
    assert steps_in_flight(trace) == expected


def test_every_step_comes_down_again():
    for trace in (sync_trace(3), async_trace(5), random_trace(3), Trace(())):
        assert steps_in_flight(trace)[-1][1] == 0


def test_a_plan_that_found_nothing_is_no_flight():
    spans = (Span(0, "phase", "plan", "CPU", 0, 5, step=0), Span(1, "phase", "plan", "CPU", 5, 9, step=1))
    settled = Span(2, "phase", "settle", "CPU", 9, 20, step=0)
    assert flights(Trace((*spans, settled))) == {0: (5, 20)}


def test_a_token_rate_is_tokens_over_the_time_since_the_step_before():
    assert token_rates([(10 * US, 8), (14 * US, 2)], 0) == [(10 * US, 8e5), (14 * US, 5e5)]
    assert token_rates([(5, 3)], 5) == [(5, 0.0)]
