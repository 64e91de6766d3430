"""The compute lane's gaps: where they are cut, and why."""

from itertools import pairwise

import pytest

from labkit.analysis.idle import COPY, CPU, DRAINED, EVENT, LAUNCH, Gap, idle_gaps
from labkit.trace.events import Edge, Span, Trace
from tests.unit.synthetic import US, async_trace, sync_trace


def kernel(number: int, start: int, end: int, issued: int, stream: str = "compute", **more) -> Span:
    return Span(number, "kernel", f"k{number}", "compute", start, end, issued_ns=issued, stream=stream, **more)


def copy(number: int, start: int, end: int, stream: str) -> Span:
    return Span(number, "copy", f"c{number}", "H2D", start, end, stream=stream)


def pieces(trace: Trace) -> list[tuple[int, int, str]]:
    return [(gap.start_ns, gap.end_ns, gap.reason) for gap in idle_gaps(trace)]


def test_a_gap_is_cut_where_the_operation_was_issued():
    trace = Trace((kernel(0, 0, 10, 0), kernel(1, 50, 60, 40)))
    assert pieces(trace) == [(10, 40, CPU), (40, 50, LAUNCH)]


def test_an_operation_issued_before_the_gap_was_not_waiting_for_the_cpu():
    trace = Trace((kernel(0, 0, 10, 0), kernel(1, 12, 20, 5)))
    assert pieces(trace) == [(10, 12, LAUNCH)]


def test_an_event_edge_is_named_and_ends_where_the_operation_waited_for_ends():
    trace = Trace(
        (kernel(0, 0, 10, 0), copy(1, 5, 30, "h2d"), kernel(2, 33, 40, 8)), (Edge(1, 2, "event", "h2d_done"),)
    )
    held, launch = idle_gaps(trace)
    assert (held.start_ns, held.end_ns, held.reason, held.cause) == (10, 30, EVENT, 1)
    assert "h2d_done" in held.detail
    assert "c1" in held.detail
    assert (launch.start_ns, launch.end_ns, launch.reason, launch.ended_by) == (30, 33, LAUNCH, 2)


def test_an_edge_between_record_and_wait_calls_leads_to_the_operations():
    record = Span(2, "record", "e", "CPU", 6, 7, stream="h2d", event="e", record=1)
    wait = Span(3, "wait", "e", "CPU", 7, 8, stream="compute", event="e", record=1)
    spans = (kernel(0, 0, 10, 0), copy(1, 5, 30, "h2d"), record, wait, kernel(4, 30, 40, 8), kernel(5, 40, 50, 9))
    trace = Trace(spans, (Edge(2, 3, "event", "e"),))
    assert [(gap.reason, gap.cause, gap.ended_by) for gap in idle_gaps(trace)] == [(EVENT, 1, 4)]


def test_a_copy_before_it_in_the_same_stream_is_a_copy_wait():
    trace = Trace((kernel(0, 0, 10, 0, "s"), copy(1, 10, 25, "s"), kernel(2, 26, 40, 9, "s")))
    assert pieces(trace) == [(10, 25, COPY), (25, 26, LAUNCH)]


def test_after_the_last_operation_the_lane_is_drained():
    settle = Span(1, "phase", "settle", "CPU", 10, 30)
    assert pieces(Trace((kernel(0, 0, 10, 0), settle))) == [(10, 30, DRAINED)]


def test_the_cpu_piece_names_the_phases_it_was_in():
    phases = (Span(1, "phase", "settle", "CPU", 8, 20), Span(2, "phase", "plan", "CPU", 20, 40))
    gap = idle_gaps(Trace((kernel(0, 0, 10, 0), *phases, kernel(3, 40, 50, 40))))[0]
    assert gap == Gap(10, 40, CPU, "the CPU was in settle, plan", 3, -1, -1)


def test_streams_that_overlap_leave_no_gap():
    assert pieces(Trace((kernel(0, 0, 10, 0, "a"), kernel(1, 5, 20, 0, "b"), kernel(2, 20, 30, 0, "a")))) == []


def test_no_operation_at_all_is_one_drained_gap_and_an_empty_trace_has_none():
    assert pieces(Trace((Span(0, "phase", "plan", "CPU", 5, 9),))) == [(5, 9, DRAINED)]
    assert idle_gaps(Trace(())) == []


@pytest.mark.parametrize(
    "trace", [sync_trace(), async_trace(), async_trace(kernel_ns=20 * US)], ids=["sync", "async", "short"]
)
def test_the_pieces_and_the_operations_tile_the_window(trace):
    tiles = [(gap.start_ns, gap.end_ns) for gap in idle_gaps(trace)]
    tiles += [(span.start_ns, span.end_ns) for span in trace.lane("compute")]
    tiles.sort()
    assert tiles[0][0] == trace.start_ns
    assert tiles[-1][1] == trace.end_ns
    assert all(end == start for (_, end), (start, _) in pairwise(tiles))


def test_the_synchronous_run_idles_for_the_cpu_and_the_asynchronous_one_hardly():
    def share(trace: Trace) -> float:
        return sum(gap.duration_ns for gap in idle_gaps(trace) if gap.reason == CPU) / trace.duration_ns

    assert share(sync_trace(8)) > 0.4
    assert share(async_trace(8)) < 0.1
