from __future__ import annotations

import gzip
import re

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from labkit.viz.panels.plot import Plot


def figure(value: float) -> go.Figure:
    return go.Figure([go.Bar(x=[value], name="a")], {"title": {"text": "one"}, "uirevision": "labkit"})


def test_the_page_is_told_the_whole_figure_every_time() -> None:
    plot = Plot(figure(1))
    for value in (1, 2):
        plot.show(figure(value))
        plain = figure(value).to_plotly_json()
        assert plot.shown["data"] == plain["data"]
        assert plot.shown["layout"]["title"] == plain["layout"]["title"]
        assert plot.shown["layout"]["uirevision"] == "labkit"


def test_plain_data_is_shown_as_it_is() -> None:
    plain = figure(1).to_plotly_json()
    assert Plot(plain).shown == Plot(figure(1)).shown
    assert plain == figure(1).to_plotly_json()


def test_a_legend_in_a_row_has_no_titles_of_groups() -> None:
    grouped = figure(1).update_traces(legendgroup="CPU", legendgrouptitle={"text": "CPU"})
    for shown in (grouped, grouped.to_plotly_json()):
        assert Plot(shown).shown["data"] == figure(1).to_plotly_json()["data"]


def test_the_channel_to_the_page_is_opened_with_the_figure() -> None:
    """A page that draws as soon as it hears of the widget has something to draw."""
    plot = Plot(figure(3))
    state = plot.get_state()
    assert state["figure"] == plot.figure
    assert "export default" in state["_esm"]


def test_plotly_comes_with_the_widget_and_from_nowhere_else() -> None:
    state = Plot(figure(1)).get_state()
    assert gzip.decompress(state["_library"]).decode() == get_plotlyjs()
    assert len(state["_library"]) < 2_000_000
    assert not re.search(r"https?://|import ", state["_esm"])


def test_the_share_button_is_removed() -> None:
    config = Plot(figure(1)).shown["config"]
    assert "sendChartToCloud" in config["modeBarButtonsToRemove"]
    assert config["displaylogo"] is False
