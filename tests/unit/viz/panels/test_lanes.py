from __future__ import annotations

import json

import plotly.graph_objects as go

from labkit.trace.events import LANES
from labkit.viz import style
from labkit.viz.panels.lanes import lanes_layout


def layout() -> dict[str, object]:
    axis = {"title": {"text": "time"}, "range": [0, 9]}
    return lanes_layout(axis, lanes_px=400, above_px=90, top=3.5, uirevision="kept")


def test_it_is_plain_data_that_plotly_accepts() -> None:
    assert json.loads(json.dumps(layout())) == layout()
    figure = go.Figure(layout=layout())  # raises for a field that plotly does not know
    assert figure.layout.uirevision == "kept"
    assert list(figure.layout.xaxis.range) == [0, 9]
    assert figure.layout.template == go.Figure(layout={"template": style.template()}).layout.template


def test_the_lanes_have_the_height_that_was_asked_for_from_the_cpu_downwards() -> None:
    figure = go.Figure(layout=layout())
    assert figure.layout.height - figure.layout.margin.t - figure.layout.margin.b == 400
    lanes = sorted(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True), reverse=True)
    assert [text for _, text in lanes] == [f"<b>{lane}</b>" for lane in LANES]
