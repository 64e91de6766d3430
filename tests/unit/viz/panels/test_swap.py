from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest

from labkit.viz.figures import timeline
from labkit.viz.panels.board import Board
from labkit.viz.panels.ghost import board_figure
from labkit.viz.panels.swap import Canvas, differences


def shown(canvas: Canvas) -> dict[str, dict[str, Any]]:
    """The traces that are visible, without what plotly adds to a widget's."""
    plain = [trace.to_plotly_json() for trace in canvas.widget.data if trace.visible is not False]
    return {str(trace.get("name")): {k: v for k, v in trace.items() if k not in ("uid", "visible")} for trace in plain}


def wanted(figure: go.Figure) -> dict[str, dict[str, Any]]:
    return {str(trace.name): trace.to_plotly_json() for trace in figure.data}


def same(a: Any, b: Any) -> bool:
    return not list(differences(a, b))


def test_after_any_change_the_widget_shows_what_a_new_figure_would() -> None:
    board = Board()
    canvas = Canvas(timeline(board.outcome.trace))
    for rung in (0, 1, 3, 6, 5, 0, 6):
        figure = timeline(board.choose_rung(rung).trace)
        canvas.show(figure)
        assert shown(canvas).keys() == wanted(figure).keys()
        for name, trace in wanted(figure).items():
            assert same(shown(canvas)[name], trace), name
        layout = figure.layout.to_plotly_json()
        assert same(canvas.widget.layout.to_plotly_json(), layout)


def test_only_what_differs_is_sent() -> None:
    board = Board()
    figure = board_figure(board.outcome.trace)
    canvas = Canvas(figure)
    sent: list[Any] = []
    canvas.widget.observe(lambda change: sent.append(change["new"]), ["_py2js_update", "_py2js_addTraces"])
    canvas.show(board_figure(board.outcome.trace))
    assert not any(message and message.get("style_data") for message in sent)
    canvas.show(board_figure(board.change(host_speed=0.5).trace))
    messages = [message for message in sent if message and message.get("style_data")]
    assert len(messages) == 1, "one message for all traces"
    keys = {key for data in messages[0]["style_data"] for key in data}
    assert "x" in keys and not keys & {"marker.color", "hovertemplate", "name"}


def test_two_traces_of_one_name_are_told_apart() -> None:
    canvas = Canvas(go.Figure([go.Bar(x=[1]), go.Bar(x=[2]), go.Scatter(x=[3])]))
    canvas.show(go.Figure([go.Bar(x=[4]), go.Bar(x=[5]), go.Scatter(x=[6])]))
    assert [trace.x for trace in canvas.widget.data] == [(4,), (5,), (6,)]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [(("a",), 2)]),
        ({"a": {"b": [1], "c": 1}}, {"a": {"b": [2], "c": 1}}, [(("a", "b"), [2])]),
        ({"a": 1}, {}, [(("a",), None)]),
        ({"a": (1, 2)}, {"a": [1, 2]}, []),
        ({"meta": {"a": 1}}, {"meta": {"a": 2}}, [(("meta",), {"a": 2})]),
    ],
)
def test_differences(old: dict[str, Any], new: dict[str, Any], found: list[Any]) -> None:
    assert list(differences(old, new)) == found
