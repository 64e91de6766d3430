"""A trace answers for its spans: lanes, kinds, steps, windows, and the edges that stay inside a window."""

from labkit.trace.events import DEVICE_KINDS, HOST_WAIT_KINDS, KINDS, PHASES, Edge, Span, Trace


def span(number, start, end, **fields):
    return Span(id=number, start_ns=start, end_ns=end, **{"kind": "kernel", "name": "k", "lane": "compute", **fields})


TRACE = Trace(
    spans=(
        span(0, 0, 10, kind="phase", name="plan", lane="CPU", step=0),
        span(1, 10, 30, step=0),
        span(2, 30, 50, step=1),
        span(3, 50, 55, kind="synchronize", lane="CPU", step=1),
    ),
    edges=(Edge(1, 2, "event"), Edge(2, 3, "host")),
    meta={"source": "virtual"},
)


def test_times_and_steps():
    assert (TRACE.start_ns, TRACE.end_ns, TRACE.duration_ns) == (0, 55, 55)
    assert TRACE.steps == 2
    assert [s.id for s in TRACE.step(1)] == [2, 3]
    assert TRACE.spans[1].duration_ns == 20


def test_lanes_and_kinds():
    assert [s.id for s in TRACE.lane("compute")] == [1, 2]
    assert [s.id for s in TRACE.of_kind("phase", "synchronize")] == [0, 3]
    assert DEVICE_KINDS < KINDS
    assert HOST_WAIT_KINDS < KINDS
    assert set(PHASES).isdisjoint(KINDS)


def test_a_window_keeps_whole_spans_and_the_edges_between_them():
    window = TRACE.window(15, 50)
    assert [s.id for s in window.spans] == [1, 2]
    assert window.edges == (Edge(1, 2, "event"),)
    assert window.meta == TRACE.meta


def test_an_empty_trace_has_no_duration():
    assert (Trace(()).duration_ns, Trace(()).steps, len(Trace(()))) == (0, 0, 0)
