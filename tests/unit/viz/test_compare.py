"""Two runs on one time scale: what is drawn is where the spans are, and what is said is what was measured."""

import json

import plotly.graph_objects as go
import pytest

from labkit.analysis.comparison import compare_runs, step_begin, step_ends
from labkit.analysis.occupancy import report
from labkit.analysis.units import share_text, time_text
from labkit.errors import InvalidArgument
from labkit.trace.events import Trace
from labkit.viz import compare, table_of
from tests.unit.synthetic import async_trace, sync_trace

A, B = sync_trace(6), async_trace(6)


def lanes(figure: go.Figure, axis: str) -> dict[str, go.Bar]:
    bars = [trace for trace in figure.data if trace.type == "bar" and trace.customdata is not None]
    return {trace.name: trace for trace in bars if (trace.yaxis or "y") == axis}


def texts(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def test_it_is_a_plain_figure_and_the_same_every_time():
    figure = compare(A, B)
    assert type(figure) is go.Figure
    assert figure.to_json() == compare(A, B).to_json()


def test_both_runs_share_one_time_axis_and_start_at_its_zero():
    figure = compare(A, B)
    for axis, trace in (("y", A), ("y2", B)):
        kernels = lanes(figure, axis)["kernel"]
        drawn = sorted(zip(kernels.base, kernels.x, strict=True))
        assert drawn == [(s.start_ns / 1000, s.duration_ns / 1000) for s in trace.of_kind("kernel")]
        assert kernels.xaxis is None or kernels.xaxis == "x"
    low, high = figure.layout.xaxis.range
    assert low == 0
    assert high >= A.duration_ns / 1000


def test_aligned_at_a_step_it_begins_at_zero_in_both():
    figure = compare(A, B, align_step=3)
    for axis, trace in (("y", A), ("y2", B)):
        kernels = lanes(figure, axis)["kernel"]
        assert 0 in list(kernels.base)
        zero = step_begin(trace, 3)
        assert min(kernels.base) == (min(s.start_ns for s in trace.of_kind("kernel")) - zero) / 1000
    assert any("step 3 begins on the GPU" in note for note in figure.layout.meta["notes"])


def test_each_run_has_a_mark_where_it_finished():
    figure = compare(A, B, names=("before", "after"))
    marks = {trace.yaxis or "y": trace for trace in figure.data if trace.type == "scatter" and trace.mode == "lines"}
    for axis, trace, name in (("y", A, "before"), ("y2", B, "after")):
        assert set(marks[axis].x) == {trace.duration_ns / 1000}
        assert marks[axis].name == f"{name}: finished at {time_text(trace.duration_ns)}"
        assert f"<b>finished at {time_text(trace.duration_ns)}</b>" in texts(figure)
        assert f"<b>{name}</b>: GPU active {share_text(report(trace).gpu_active)}" in texts(figure)


def test_for_chosen_steps_the_mark_is_at_the_end_of_the_last_one():
    figure = compare(A, B, steps=(1, 3))
    marks = [trace.x[0] for trace in figure.data if trace.type == "scatter" and trace.mode == "lines"]
    assert marks == [(step_ends(trace)[3] - step_begin(trace, 1)) / 1000 for trace in (A, B)]  # 0: where step 1 begins
    assert sum("step 3 finished at" in text for text in texts(figure)) == 2
    low, high = figure.layout.xaxis.range
    assert all(low <= mark <= high for mark in marks)


def test_the_difference_per_step_is_that_of_the_analysis_and_of_the_table():
    figure = compare(A, B, names=("before", "after"))
    bars = next(trace for trace in figure.data if trace.name == "difference per step")
    expected = [step.difference_ns / 1000 for step in compare_runs(A, B).steps]
    assert list(bars.y) == expected
    rows = table_of(figure)
    assert [row["difference_us"] for row in rows] == expected
    assert set(rows[0]) == {"step", "before_us", "after_us", "difference_us"}
    assert [bool(shape) for shape in bars.marker.pattern.shape] == [value > 0 for value in expected]


def test_the_sentence_says_change_and_ratio_side_by_side():
    result = compare_runs(A, B)
    summary = compare(A, B).layout.meta["summary"]
    assert summary.startswith(f"{result.change * 100:+.1f} % time, {result.speedup:.2f}x")
    assert share_text(result.a.gpu_active) in summary
    assert share_text(result.b.gpu_active) in summary


def test_a_prediction_is_drawn_with_the_measurement():
    figure = compare(A, B, prediction={"gpu_active": 80, "total_ms": 0.5})
    diamond = next(trace for trace in figure.data if trace.legendgroup == "prediction")
    assert (list(diamond.x), list(diamond.y)) == ([80], [0])
    dashed = next(trace for trace in figure.data if trace.type == "scatter" and trace.line.dash == "dash")
    assert set(dashed.x) == {500}
    assert "you predicted 0.5 ms" in texts(figure)
    notes = " ".join(figure.layout.meta["notes"])
    assert f"measured: GPU active {report(B).gpu_active * 100:.1f} %" in notes
    assert f"measured: {report(B).window_ns / 1e6:.3f} ms in all" in notes
    assert figure.layout.xaxis.range[1] >= 500


@pytest.mark.parametrize(
    "prediction", [{"gpu_active": 101}, {"gpu_active": "80"}, {"total_ms": -1}, {"speed": 2}, {"total_ms": True}]
)
def test_other_predictions_are_refused(prediction):
    with pytest.raises(InvalidArgument, match="prediction"):
        compare(A, B, prediction=prediction)


@pytest.mark.parametrize(
    "options", [{"align_step": 6}, {"align_step": -1}, {"steps": (2, 9)}, {"steps": (3, 1)}, {"steps": (0,)}]
)
def test_steps_that_a_run_does_not_have_are_refused(options):
    with pytest.raises(InvalidArgument, match=next(iter(options))):
        compare(A, B, **options)


def test_what_is_no_trace_is_refused():
    with pytest.raises(InvalidArgument, match="b='run'"):
        compare(A, "run")


def test_long_runs_are_shown_by_the_steps_in_their_middle():
    figure = compare(sync_trace(80), async_trace(80), max_bars=120)
    drawn = sum(len(bars.x) for bars in lanes(figure, "y").values())
    assert 20 < drawn <= 150
    assert any("Drawn: steps" in note for note in figure.layout.meta["notes"])
    assert len(figure.to_json()) < 200_000


def test_runs_are_named_after_their_rungs():
    named = Trace(B.spans, B.edges, {"switches": ["streams", "events"]})
    assert any(text.startswith("<b>rung 2 events</b>") for text in texts(compare(A, named)))
    assert any(text.startswith("<b>first</b>") for text in texts(compare(A, named)))


def test_each_kind_is_once_in_the_legend():
    shown = [trace.name for trace in compare(A, B).data if trace.showlegend is not False]
    assert len(shown) == len(set(shown))


def test_the_numbers_beneath_can_be_left_out():
    figure = compare(A, B, beneath=False)
    assert figure.layout.height < compare(A, B).layout.height - 200
    assert {trace.yaxis or "y" for trace in figure.data} == {"y", "y2"}
    assert table_of(figure) == table_of(compare(A, B))


def test_an_empty_trace_is_no_error():
    figure = compare(Trace(()), B)
    assert "empty" in figure.layout.meta["summary"]
    assert table_of(figure) == []
    assert json.loads(figure.to_json())


def test_nor_are_two_of_them():
    figure = compare(Trace(()), Trace(()))
    assert "empty" in figure.layout.meta["summary"]
    assert json.loads(figure.to_json())
