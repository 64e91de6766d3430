"""One plot in the page that shows one figure after another; zoom and legend stay (``plot.js``).

Rejected: plotly's FigureWidget. It opens its channel to the page empty and sends its data afterwards, and a page that
is still loading plotly then draws an empty plot and never looks again; each one brings 5 MB of script to be loaded
anew, within the 2 s that anywidget allows; and a swap of figures is 70 ms of validation.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import plotly.graph_objects as go
import traitlets
from plotly.offline import get_plotlyjs
from plotly.utils import PlotlyJSONEncoder

from labkit.viz.html import CONFIG


class Plot(anywidget.AnyWidget):
    """A widget that shows a plain figure; ``show`` replaces it. Nothing comes back from the page."""

    _esm = Path(__file__).with_name("plot.js").read_text(encoding="utf-8")
    _library = traitlets.Bytes().tag(sync=True)
    figure = traitlets.Unicode().tag(sync=True)

    def __init__(self, figure: go.Figure) -> None:
        super().__init__(_library=_library(), figure=_text(figure))

    def show(self, figure: go.Figure) -> None:
        """Show another figure."""
        self.figure = _text(figure)

    @property
    def shown(self) -> dict[str, Any]:
        """What the page is told to draw: ``data``, ``layout`` and ``config``."""
        drawn: dict[str, Any] = json.loads(self.figure)
        return drawn


@cache
def _library() -> bytes:
    """plotly.js, 5 MB, as 1.6 MB."""
    return gzip.compress(get_plotlyjs().encode(), compresslevel=3, mtime=0)


def _text(figure: go.Figure) -> str:
    plain = figure.to_plotly_json()
    for trace in plain["data"]:  # a panel's legend is a row, where the title of a group looks like one more entry
        trace.pop("legendgroup", None)
        trace.pop("legendgrouptitle", None)
    return json.dumps({**plain, "config": CONFIG}, cls=PlotlyJSONEncoder)
