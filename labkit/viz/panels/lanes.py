"""What the pictures of the Switchboard and of Live have in common: lanes without a title, a legend in a row.

They are plain data and no plotly Figure: checking one takes longer than all else between a click and its answer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from labkit.trace.events import LANES
from labkit.viz import style
from labkit.viz.drawing import ROW

LEGEND: dict[str, Any] = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 1.02,
    "yanchor": "bottom",
    "traceorder": "normal",
}
PlainFigure = dict[str, Any]  # "data" and "layout" of a plotly figure
_SIDES_PX = {"l": 115, "r": 20, "b": 65}


def lanes_layout(time_axis: dict[str, Any], *, lanes_px: int, above_px: int, top: float, **more: Any) -> dict[str, Any]:
    """A layout as wide as the panel.

    Args:
        time_axis: title, range and ticks.
        lanes_px, above_px: height of the lanes, and of what is above them.
        top: y of the lanes' upper edge.
        more: other fields of the layout.
    """
    return {
        "template": _template(),
        "barmode": "overlay",
        "height": lanes_px + above_px + _SIDES_PX["b"],
        "margin": _SIDES_PX | {"t": above_px},
        "autosize": True,
        "legend": LEGEND,
        "xaxis": {"tickformat": ",", "exponentformat": "none"} | time_axis,
        "yaxis": {
            "tickvals": [ROW[lane] for lane in LANES],
            "ticktext": [f"<b>{lane}</b>" for lane in LANES],
            "tickfont": {"size": style.LANE},
            "range": [-0.55, top],
            "fixedrange": True,
            "showgrid": False,
        },
        **more,
    }


@cache
def _template() -> dict[str, Any]:
    plain: dict[str, Any] = style.template().to_plotly_json()
    return plain
