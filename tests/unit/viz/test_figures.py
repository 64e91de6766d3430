"""The figure as data: lanes, one trace per kind, numbers from the report, and its table twin."""

import json
import subprocess
import sys

import plotly.graph_objects as go
import pytest

from labkit.analysis.intervals import total, union
from labkit.analysis.occupancy import GPU_ACTIVE, occupancy, report
from labkit.analysis.races import check
from labkit.analysis.units import share_text
from labkit.errors import InvalidArgument
from labkit.trace.events import Span, Trace
from labkit.viz import style, table, timeline
from labkit.viz.bars import select
from tests.unit.analysis.test_blame import random_trace
from tests.unit.synthetic import async_trace, sync_trace
from tests.unit.viz.runs import mixed_run


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
        assert bars.marker.line.width == style.LOOKS[kind].outline_px * bool(style.LOOKS[kind].outline)


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
    assert shown in timeline(trace).layout.meta["notes"][1]
    assert not [note for note in timeline(Trace(trace.spans)).layout.meta["notes"] if "Trace:" in note]


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


def test_the_table_is_the_twin_of_the_figure():
    trace = async_trace(30)
    rows = table(trace, steps=(4, 6))
    drawn = bars_of(timeline(trace, steps=(4, 6)))
    for kind, bars in drawn.items():
        twin = [(row["start_us"], row["duration_us"]) for row in rows if row["kind"] == kind]
        assert sorted(twin) == sorted(zip(bars.base, bars.x, strict=True))
    assert len(table(trace, max_bars=40)) <= 40
    assert json.loads(json.dumps(rows)) == rows


def test_a_trace_of_fifty_thousand_spans_is_a_small_figure():
    trace = async_trace(2600)
    assert len(trace) > 50_000
    figure = timeline(trace)
    assert len(figure.to_json()) < 1_000_000
    assert any("aggregated" in note for note in figure.layout.meta["notes"])


def test_as_many_bars_as_are_drawn_at_most_are_a_small_figure():
    trace = async_trace(300)
    assert 3_500 < sum(len(bars.x) for bars in bars_of(timeline(trace)).values()) <= 4_000
    assert len(timeline(trace).to_json()) < 1_000_000


@pytest.mark.parametrize("seed", range(30))
def test_the_strip_is_the_exact_integral_of_the_busy_time(seed):
    trace = random_trace(seed)
    figure = timeline(trace, max_bars=1)
    strip = next(t for t in figure.data if t.type == "heatmap")
    numbers = report(trace)
    for lane, y in (("H2D", 2), ("compute", 1), ("D2H", 0)):
        edges = occupancy(trace, lane, len(strip.x) - 1)
        busy = total(union((span.start_ns, span.end_ns) for span in trace.lane(lane)))
        assert abs(sum(edges.busy_ns) - busy) <= 1e-9 * max(1, busy)
        drawn = strip.z[list(strip.y).index(y)]
        assert list(drawn) == [round(share, 4) for share in edges.share]
        assert list(strip.x) == [(ns - trace.start_ns) / 1000 for ns in edges.edges_ns]
    assert numbers.stream_ns == sum(occupancy(trace, "compute", 400).busy_ns)


def test_counters_lie_beneath_the_lanes_on_their_time_axis():
    figure = timeline(async_trace())
    lines = {t.yaxis: t for t in figure.data if t.type == "scatter" and t.line.shape == "hv"}
    assert set(lines) == {"y3", "y4"}
    assert all((line.xaxis or "x") == "x" for line in lines.values())
    assert figure.layout.xaxis.anchor == "y4"
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis3.domain[1] > figure.layout.yaxis4.domain[1]
    names = [note.text for note in figure.layout.annotations]
    assert names == [
        "<b>steps in flight</b>",
        f"<b>GPU active in view: {share_text(report(async_trace()).gpu_active)}</b>",
    ]
    assert not timeline(async_trace(), beneath=False).layout.annotations


def test_a_run_brings_its_tokens_per_second():
    run = mixed_run(5)
    figure = timeline(run)
    assert "<b>tokens/s</b>" in [note.text for note in figure.layout.annotations]
    assert table(run) == table(run.trace)


def test_races_are_marked_and_told():
    run = mixed_run(3)
    found = check(run.trace)
    figure = timeline(run, races=found)
    marks = next(t for t in figure.data if t.name == "race")
    assert [text for text in marks.text if text] == [
        f"<b>{n}</b>" for n in range(1, len(found.races) + 1) for _ in (0, 1)
    ]
    assert figure.layout.meta["notes"][-1].startswith(f"Race {len(found.races)}: {found.races[-1].kind}")
    clean = timeline(mixed_run(5), races=check(mixed_run(5).trace))
    assert clean.layout.meta["notes"][-1] == "No races."
    assert not [t for t in clean.data if t.name == "race"]


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
