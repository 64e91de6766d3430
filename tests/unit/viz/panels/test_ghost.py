from __future__ import annotations

import plotly.graph_objects as go
import pytest

from labkit.analysis.units import time_text
from labkit.trace.events import DEVICE_KINDS, LANES
from labkit.viz.drawing import ROW
from labkit.viz.panels.board import Board
from labkit.viz.panels.ghost import GHOST, board_figure, ghost_trace


@pytest.fixture(scope="module")
def runs() -> Board:
    board = Board()
    board.choose_rung(5)
    return board


def test_the_ghost_is_the_run_before_span_by_span_below_its_lane(runs: Board) -> None:
    trace = runs.previous.trace
    ghost = go.Bar(ghost_trace(runs.previous))
    spans = [span for span in trace.spans if span.kind == "phase" or span.kind in DEVICE_KINDS]
    expected = sorted((span.start_ns / 1000, span.duration_ns / 1000) for span in spans)
    assert sorted(zip(ghost.base, ghost.x, strict=True)) == expected
    for y in set(ghost.y):
        free = [(ROW[lane] - 0.55, ROW[lane] - 0.4) for lane in LANES]
        low, high = y - ghost.width / 2, y + ghost.width / 2
        assert any(a <= low and high <= b for a, b in free), "it lies over a lane"


def test_both_ends_are_marked_on_one_scale(runs: Board) -> None:
    now, before = runs.outcome.trace, runs.previous.trace
    figure = go.Figure(board_figure(runs.outcome, runs.previous))
    ends = {trace.name: trace.x[0] for trace in figure.data if str(trace.name).startswith("end of")}
    assert ends == {"end of this run": now.duration_ns / 1000, "end of the run before": before.duration_ns / 1000}
    assert figure.layout.xaxis.range[0] == 0 and figure.layout.xaxis.range[1] > max(ends.values())
    texts = [note.text for note in figure.layout.annotations]
    assert texts == [
        f"<b>finished: {time_text(now.duration_ns)}</b>",
        f"<b>before: {time_text(before.duration_ns)}</b>",
    ]


def test_a_first_run_has_no_ghost(runs: Board) -> None:
    figure = go.Figure(board_figure(runs.outcome))
    assert GHOST not in [trace.name for trace in figure.data]
    assert len(figure.layout.annotations) == 1


def test_the_figure_keeps_its_summary_and_has_no_share_button(runs: Board) -> None:
    figure = go.Figure(board_figure(runs.outcome))
    assert figure.layout.meta["summary"].startswith("GPU active")
    assert figure.layout.title.text is None
    assert "sendChartToCloud" in figure.layout.template.layout.modebar.remove


def test_races_are_marked(runs: Board) -> None:
    board = Board()
    racing = board.choose_rung(1)
    names = [trace["name"] for trace in board_figure(racing, races=racing.race_report)["data"] if "name" in trace]
    assert names.count("race") == 1
    calm = board_figure(runs.outcome, races=runs.outcome.race_report)
    assert "race" not in [trace.get("name") for trace in calm["data"]]
