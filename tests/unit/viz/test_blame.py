"""The picture of the idle time: rows end to end, together all of it."""

import plotly.graph_objects as go
import pytest

from labkit.analysis.blame import blame as parts_of
from labkit.analysis.occupancy import report
from labkit.analysis.units import share_text, time_text
from labkit.trace.events import Span, Trace
from labkit.viz import blame, table_of
from tests.unit.synthetic import async_trace, sync_trace


@pytest.mark.parametrize("trace", [sync_trace(), async_trace()], ids=["sync", "async"])
def test_the_bars_lie_end_to_end_and_cover_all_of_the_idle_time(trace):
    at = 0.0
    for bar in blame(trace).data:
        assert bar.base[0] == pytest.approx(at, abs=1e-9)
        at += bar.x[0]
    assert at == pytest.approx(100, abs=1e-9)


def test_a_row_is_a_reason_with_the_report_s_number():
    trace = sync_trace()
    numbers, axis = report(trace), blame(trace).layout.yaxis
    expected = {
        f"<b>{reason}</b><br>{time_text(ns)}, {share_text(ns / numbers.idle_ns)}" for reason, ns in numbers.idle.items()
    }
    assert set(axis.ticktext) == expected
    assert len(axis.tickvals) == len(expected)


def test_every_cause_is_written_below_its_row():
    trace = sync_trace()
    written = " ".join(note.text for note in blame(trace).layout.annotations)
    for part in parts_of(trace):
        assert f"{part.cause} {share_text(part.ns / report(trace).idle_ns)}" in written


def test_the_table_is_the_twin_of_the_figure():
    trace = sync_trace()
    rows = table_of(blame(trace))
    assert sum(row["share_percent"] for row in rows) == pytest.approx(100)
    assert sum(row["idle_us"] for row in rows) == pytest.approx(report(trace).idle_ns / 1000)
    assert [row["share_percent"] for row in rows] == [bar.x[0] for bar in blame(trace).data]
    assert rows[0]["ended_by"] == "forward"


def test_the_sentence_names_the_largest_part():
    assert "waiting for the CPU (settle)" in blame(sync_trace()).layout.meta["summary"]


def test_it_is_plain_and_needs_no_legend():
    figure = blame(sync_trace())
    assert type(figure) is go.Figure
    assert all(bar.showlegend is False for bar in figure.data)
    assert figure.to_json() == blame(sync_trace()).to_json()


def test_a_trace_without_idle_time_says_so():
    busy = Trace((Span(0, "kernel", "k", "compute", 0, 10, busy_ns=10),))
    assert blame(busy).layout.meta["summary"] == "The compute lane was never idle."
    assert "empty" in blame(Trace(())).layout.meta["summary"]
    assert table_of(blame(busy)) == []
