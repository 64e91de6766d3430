"""Every ns of idle time has a reason and a cause, and together they are the idle time of the report."""

import random

import pytest

from labkit.analysis.blame import CPU, DRAINED, EVENT, IN_OPERATION, OUTSIDE, blame
from labkit.analysis.occupancy import report
from labkit.trace.events import DEVICE_KINDS, PHASES, Edge, Span, Trace
from tests.unit.synthetic import async_trace, sync_trace


def random_trace(seed: int) -> Trace:
    """Spans of every kind anywhere: phases may overlap, streams may run side by side, edges point backwards."""
    draw = random.Random(seed)
    spans, edges = [], []
    for number in range(draw.randrange(1, 60)):
        kind = draw.choice(["phase", "launch", "kernel", "graph", "copy", "synchronize"])
        lane = "CPU" if kind not in DEVICE_KINDS else draw.choice(["H2D", "D2H"]) if kind == "copy" else "compute"
        start = draw.randrange(0, 2_000)
        end = start + draw.randrange(0, 200)
        busy = draw.randrange(0, end - start + 1)
        issued = max(0, start - draw.randrange(0, 90))
        name = draw.choice(PHASES) if kind == "phase" else f"{kind}[{draw.choice('AB')}]"
        spans.append(
            Span(
                number,
                kind,
                name,
                lane,
                start,
                end,
                step=draw.randrange(-1, 9),
                stream=draw.choice("xyz"),
                issued_ns=issued,
                busy_ns=busy,
            )
        )
        if number and draw.random() < 0.5:
            edges.append(Edge(draw.randrange(number), number, draw.choice(["event", "host", "issue"]), "e"))
    return Trace(tuple(spans), tuple(edges))


@pytest.mark.parametrize("seed", range(200))
def test_the_parts_sum_to_the_idle_time_of_the_report(seed):
    trace = random_trace(seed)
    parts, numbers = blame(trace), report(trace)
    assert sum(part.ns for part in parts) == numbers.idle_ns
    for reason, ns in numbers.idle.items():
        assert sum(part.ns for part in parts if part.reason == reason) == ns
    assert all(part.ns > 0 for part in parts)


def test_time_that_waited_for_the_cpu_is_split_by_phase():
    parts = {part.cause: part for part in blame(sync_trace(4)) if part.reason == CPU}
    # Per step the lane waits 20 µs in plan, 10 in fill, and 27 in settle but for the last; the rest is calls.
    assert parts["plan"].ns == 4 * 20_000
    assert parts["fill"].ns == 4 * 10_000
    assert parts["settle"].ns == 3 * 27_000
    assert parts["plan"].ended_by == ("forward",)
    assert OUTSIDE not in parts


def test_a_gap_outside_every_phase_says_so():
    spans = (
        Span(0, "phase", "plan", "CPU", 0, 10),
        Span(1, "kernel", "k", "compute", 30, 40, issued_ns=30, busy_ns=10),
    )
    assert [(part.cause, part.ns) for part in blame(Trace(spans))] == [(OUTSIDE, 20), ("plan", 10)]


def test_other_reasons_are_named_after_what_was_waited_for():
    parts = blame(async_trace(4))
    events = [part for part in parts if part.reason == EVENT]
    assert [(part.cause, part.ended_by) for part in events] == [("inputs", ("forward",))]
    assert [part.cause for part in parts if part.reason == DRAINED] == ["no more work"]


def test_launch_gaps_inside_an_operation_are_a_part_of_their_own():
    parts = blame(sync_trace(4))
    assert [(part.reason, part.ns) for part in parts][-1] == (IN_OPERATION, 4 * 8_000)


def test_a_trace_without_idle_time_has_no_parts():
    assert blame(Trace(())) == ()
    assert blame(Trace((Span(0, "kernel", "k", "compute", 0, 10, busy_ns=10),))) == ()
