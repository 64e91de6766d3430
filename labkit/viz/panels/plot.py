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
    """A widget that shows a plain figure; ``show`` replaces it. Nothing comes back from the page.

    A figure is a plotly Figure, or its ``data`` and ``layout`` as plain data, which is sent as it is.
    """

    _esm = Path(__file__).with_name("plot.js").read_text(encoding="utf-8")
    _library = traitlets.Bytes().tag(sync=True)
    figure = traitlets.Unicode().tag(sync=True)

    def __init__(self, figure: go.Figure | dict[str, Any]) -> None:
        super().__init__(_library=_library(), figure=_text(figure))

    def show(self, figure: go.Figure | dict[str, Any]) -> None:
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


def _text(figure: go.Figure | dict[str, Any]) -> str:
    plain = figure if isinstance(figure, dict) else figure.to_plotly_json()
    # A panel's legend is a row, where the title of a group looks like one more entry.
    data = [{name: trace[name] for name in trace if not name.startswith("legendgroup")} for trace in plain["data"]]
    return json.dumps({**plain, "data": data, "config": CONFIG}, cls=PlotlyJSONEncoder)
