"""The figure as data: lanes, one trace per kind, numbers from the report, and its table twin."""

import json
import subprocess
import sys

import plotly.graph_objects as go
import pytest

from labkit.analysis.occupancy import GPU_ACTIVE, report
from labkit.analysis.units import share_text
from labkit.errors import InvalidArgument
from labkit.trace.events import Span, Trace
from labkit.viz import style, table, timeline
from labkit.viz.bars import select
from tests.unit.synthetic import async_trace, sync_trace


def bars_of(figure: go.Figure) -> dict[str, go.Bar]:
    """The bars by kind, the key to the slots left out."""
    return {trace.name: trace for trace in figure.data if trace.type == "bar" and trace.customdata is not None}


def test_it_is_a_plain_figure_and_the_same_every_time():
    figure = timeline(async_trace(), arrows_for=2)
    assert type(figure) is go.Figure
    assert figure.to_json() == timeline(async_trace(), arrows_for=2).to_json()


def test_the_lanes_are_fixed_from_top_to_bottom():
    axis = timeline(Trace((Span(0, "phase", "plan", "CPU", 0, 9),))).layout.yaxis
    lanes = sorted(zip(axis.tickvals, axis.ticktext, strict=True), reverse=True)
    assert [text for _, text in lanes] == ["<b>CPU</b>", "<b>H2D</b>", "<b>compute</b>", "<b>D2H</b>"]


def test_there_is_one_trace_per_kind_and_the_bars_are_the_spans_in_microseconds():
    trace = async_trace()
    drawn = bars_of(timeline(trace))
    assert len(drawn) == len({bar.kind for bar in select(trace, None, None, 4000).bars})
    kernels = sorted(trace.of_kind("kernel"), key=lambda span: (span.slot, span.start_ns))
    assert list(drawn["kernel"].base) == [span.start_ns / 1000 for span in kernels]
    assert list(drawn["kernel"].x) == [span.duration_ns / 1000 for span in kernels]
    assert set(drawn["kernel"].y) == {1}
    assert sum(len(bars.x) for bars in drawn.values()) == len(table(trace))


def test_bars_are_drawn_the_fast_way():
    figure = timeline(async_trace(), arrows_for=1)
    assert figure.layout.barmode == "overlay"
    assert figure.layout.uirevision
    assert not figure.layout.shapes
    assert {trace.type for trace in figure.data} == {"bar", "scatter"}
    for kind, bars in bars_of(figure).items():
        assert (bars.orientation, bars.textposition) == ("h", "none")
        assert bars.marker.line.width == (1 if kind in ("H2D copy", "CPU waits") else 0)


def test_time_starts_at_the_first_span():
    shifted = Trace(tuple(Span(n, "kernel", "k", "compute", 10**15 + n, 10**15 + n + 1, step=n) for n in range(3)))
    figure = timeline(shifted)
    assert list(bars_of(figure)["kernel"].base) == [0, 0.001, 0.002]
    assert list(figure.layout.xaxis.range) == [0, 0.003]


def test_slots_are_told_apart_by_hatch_and_the_legend_explains_it():
    figure = timeline(async_trace())
    kernels = bars_of(figure)["kernel"]
    hatch = dict(
        zip((data[2].split(", ")[1] for data in kernels.customdata), kernels.marker.pattern.shape, strict=True)
    )
    assert hatch == {"slot A": "", "slot B": "/"}
    keys = {trace.name: trace.marker.pattern.shape for trace in figure.data if trace.legendgroup == "slots"}
    assert keys == hatch
    assert not [trace for trace in timeline(sync_trace()).data if trace.legendgroup == "slots"]


def test_no_two_kinds_of_a_lane_look_the_same():
    looks = [(look.section, look.fill, look.hatch) for look in style.LOOKS.values()]
    assert len(set(looks)) == len(looks)
    colours = {"H2D copy": "#E69F00", "kernel": "#009E73", "D2H copy": "#CC79A7", "compute is idle": "#D55E00"}
    assert {kind: style.LOOKS[kind].fill for kind in colours} == colours
    assert all(style.LOOKS[kind].hatch for kind in ("CPU waits", "compute is idle"))


def test_hover_names_what_was_waited_for_and_why_the_lane_is_idle():
    drawn = bars_of(timeline(async_trace()))
    assert "waited for event h2d_done A, after copy" in drawn["kernel"].customdata[0][4]
    assert drawn["kernel"].customdata[0][2] == "step 0, slot A, stream compute"
    assert drawn["H2D copy"].customdata[0][2].endswith("4.0 KiB")
    assert drawn["H2D copy"].customdata[0][4] == "<br>waited for nothing but its own stream"
    assert drawn["compute is idle"].customdata[0][0] == "waiting for the CPU"
    assert "the CPU was in plan, fill, upload" in drawn["compute is idle"].customdata[0][4]


def test_names_from_a_trace_are_shown_as_text():
    trace = Trace((Span(0, "kernel", "<module> & co", "compute", 0, 10_000_000, busy_ns=5, stream="s"),))
    figure = timeline(trace)
    assert bars_of(figure)["kernel"].customdata[0][0] == "&lt;module&gt; &amp; co"
    assert "<module>" not in figure.to_json()


def test_the_summary_is_the_report_s_number_with_its_definition():
    trace = async_trace()
    figure = timeline(trace, steps=3)
    assert figure.layout.title.text == figure.layout.meta["summary"]
    assert f"GPU active {share_text(report(trace).gpu_active)}" in figure.layout.title.text
    assert GPU_ACTIVE in figure.layout.title.subtitle.text
    assert "Drawn: step 3 of 6 steps" in figure.layout.title.subtitle.text
    assert "virtual, synthetic" in figure.layout.title.subtitle.text


@pytest.mark.parametrize(
    ("meta", "shown"),
    [
        ({"source": "virtual", "device": "virtual (h200)"}, "Trace: virtual (h200)."),
        ({"source": "live"}, "Trace: live."),
    ],
)
def test_the_notes_say_where_the_trace_comes_from_once(meta, shown):
    trace = Trace((Span(0, "kernel", "k", "compute", 0, 10),), (), meta)
    assert shown in timeline(trace).layout.meta["notes"][0]
    assert "Trace:" not in timeline(Trace(trace.spans)).layout.meta["notes"][0]


def test_arrows_are_one_trace_for_one_step():
    trace = async_trace()
    arrows = [t for t in timeline(trace, arrows_for=2).data if t.type == "scatter" and t.mode == "lines+markers"]
    plain = [t for t in timeline(trace).data if t.type == "scatter" and t.mode == "lines+markers"]
    assert (len(arrows), len(plain)) == (1, 0)
    texts = [text for text in arrows[0].text if text]
    assert sum("event h2d_done A" in text for text in texts) == 1
    assert sum("event compute_done A" in text for text in texts) == 1
    assert len(texts) == len(arrows[0].x) // 3 == 3 + 2 + 1  # issued by the host, held by events, the host's wait
    starts, ends = arrows[0].x[::3], arrows[0].x[1::3]
    assert all(start <= end for start, end in zip(starts, ends, strict=True))


@pytest.mark.parametrize("step", [99, -5, "2"])
def test_arrows_for_an_unknown_step_are_refused(step):
    with pytest.raises(InvalidArgument, match="arrows_for"):
        timeline(async_trace(), arrows_for=step)


def test_too_many_bars_bring_a_strip_that_says_it_is_aggregated():
    trace = async_trace(60)
    figure = timeline(trace, max_bars=150)
    strip = next(t for t in figure.data if t.type == "heatmap")
    assert sum(len(bars.x) for bars in bars_of(figure).values()) <= 150
    assert "aggregated" in figure.layout.title.subtitle.text
    assert "aggregated" in figure.layout.xaxis2.title.text
    compute = strip.z[list(strip.y).index(1)]
    assert sum(compute) / len(compute) == pytest.approx(report(trace).stream_active, abs=1e-3)
    assert (strip.x[0], strip.x[-1]) == (0, trace.duration_ns / 1000)
    assert not [t for t in timeline(trace).data if t.type == "heatmap"]


def test_labels_stay_inside_their_bars():
    figure = timeline(async_trace(3))
    labels = next(t for t in figure.data if t.type == "scatter" and t.mode == "text")
    bars = [(base, base + x) for t in bars_of(figure).values() for base, x in zip(t.base, t.x, strict=True)]
    per_px = figure.layout.xaxis.range[1] / 580
    assert len(labels.text) > 5
    for x, text in zip(labels.x, labels.text, strict=True):
        half = len(text) * 8 / 2 * per_px
        assert any(start <= x - half + 1e-9 and x + half - 1e-9 <= end for start, end in bars), text


def test_the_table_is_the_twin_of_the_figure():
    trace = async_trace(30)
    rows = table(trace, steps=(4, 6))
    drawn = bars_of(timeline(trace, steps=(4, 6)))
    for kind, bars in drawn.items():
        twin = [(row["start_us"], row["duration_us"]) for row in rows if row["kind"] == kind]
        assert sorted(twin) == sorted(zip(bars.base, bars.x, strict=True))
    assert len(table(trace, max_bars=40)) <= 40
    assert json.loads(json.dumps(rows)) == rows


def test_an_empty_trace_is_a_figure_that_says_so():
    figure = timeline(Trace(()))
    assert "empty" in figure.layout.annotations[0].text
    assert "empty" in figure.layout.meta["summary"]
    assert table(Trace(())) == []


def test_without_plotly_the_error_names_the_extra():
    script = "import sys; sys.modules['plotly'] = None\nimport labkit.viz"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MissingExtra: plotly is not installed: pip install 'labkit[lab]'" in done.stderr
