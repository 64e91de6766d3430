"""Colours, hatches and sizes of every figure: readable from the last row, and without telling colours apart.

The colours are Okabe and Ito's, distinct under every common colour vision (Okabe, Ito: Color Universal Design, 2008).
Colour is never the only cue: a lane has its own labelled row, a slot its hatch, a host wait its dots, idle its crosses.
"""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

CPU, H2D, COMPUTE, D2H, IDLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"
GRAPH, YELLOW = "#006B4E", "#F0E442"  # a darker shade of compute; the palette's yellow
INK, PAPER, GRID = "#1A1A1A", "#FFFFFF", "#D9D9D9"

FONT = "Arial, Helvetica, 'DejaVu Sans', sans-serif"
TITLE, LANE, AXIS, LEGEND, NOTE, LABEL = 21, 20, 17, 16, 16, 15  # px

SLOT_HATCHES: tuple[str, ...] = ("", "/", "\\", "|", "-", "+")


@dataclass(frozen=True)
class Look:
    """How the bars of one kind look. ``hatch`` replaces the fill; a slot's hatch lies over it.

    A copy is often narrower than a pixel: its outline is what is seen of it then.
    """

    fill: str
    text: str = INK
    outline: str = ""
    outline_px: int = 1
    hatch: str = ""
    height: float = 0.8  # of a lane
    lift: float = 0.0  # centre above the lane's middle
    section: str = "GPU"  # of the legend


# Phases are shades of the CPU's blue, from dark to light in the order of a step.
LOOKS: dict[str, Look] = {
    "plan": Look("#003F63", PAPER, section="CPU"),
    "fill": Look(CPU, PAPER, section="CPU"),
    "upload": Look("#3C93C6", section="CPU"),
    "compute": Look("#74B4DA", section="CPU"),
    "download": Look("#A5D0EA", section="CPU"),
    "settle": Look("#D3E9F6", section="CPU"),
    "launch": Look("#003F63", hatch="|", outline="#003F63", height=0.36, lift=-0.2, section="CPU"),
    "CPU waits": Look("#9CBED6", hatch=".", outline="#003F63", height=0.36, lift=-0.2, section="CPU"),
    "H2D copy": Look(H2D, outline="#A86F00", outline_px=2, height=0.7),
    "kernel": Look(COMPUTE),
    "graph": Look(GRAPH, PAPER),
    "D2H copy": Look(D2H, outline="#B0588A", outline_px=2, height=0.7),
    "compute is idle": Look(IDLE, outline=IDLE, hatch="x", height=0.5),
}
OTHER_PHASE = Look("#4F7183", PAPER, section="CPU")
OTHER_OPERATION = Look("#737373", PAPER)


def template() -> go.layout.Template:
    """The layout that all figures start from; given to a figure, never registered for the whole process."""
    axis = {
        "gridcolor": GRID,
        "linecolor": INK,
        "showline": True,
        "ticks": "outside",
        "tickfont": {"size": AXIS},
        "title": {"font": {"size": AXIS}},
        "zeroline": False,
    }
    layout = go.Layout(
        font={"family": FONT, "size": AXIS, "color": INK},
        paper_bgcolor=PAPER,
        plot_bgcolor=PAPER,
        title={"font": {"size": TITLE}, "x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "container"},
        legend={
            "font": {"size": LEGEND},
            "grouptitlefont": {"size": LEGEND},
            "itemsizing": "constant",
            "tracegroupgap": 4,
        },
        # Plotly 7 offers to upload the chart ("Share chart"); in a notebook no config is ours, so the layout says it.
        modebar={"remove": ["sendChartToCloud"]},
        hoverlabel={"align": "left", "font": {"size": NOTE, "family": FONT}},
        xaxis=axis,
        yaxis=axis,
    )
    return go.layout.Template(layout=layout)
