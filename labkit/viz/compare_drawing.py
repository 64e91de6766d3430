"""What a comparison consists of: the lanes of both runs, marks, differences, shares; and the axes they are on."""

from __future__ import annotations

from html import escape
from re import sub
from typing import Any

import plotly.graph_objects as go

from labkit.analysis.comparison import Comparison
from labkit.analysis.units import share_text, time_text
from labkit.trace.events import LANES
from labkit.viz import style
from labkit.viz.drawing import ROW, bar_traces
from labkit.viz.frame import domains
from labkit.viz.labels import label_trace
from labkit.viz.sides import Side

_LANES_PX, _NUMBERS_PX, _AXIS_PX, _BETWEEN_PX = 300, 150, 105, 12
_TOP, _HEADLINE = 4.1, 3.82  # y of the upper edge, and of the line of text above the lanes
_PLOT_PX, _CHARACTER_PX = 540, 8.5  # of the narrowest plot, and of its notes
_BELOW, _TWO_LINES = ROW["H2D"], 3.74  # the emptiest lane; with the first line on the height of the headline
_FASTER, _SLOWER = style.CPU, style.IDLE


def draw_run(figure: go.Figure, side: Side, axis: str, legend_of: Side | None) -> None:
    """The lanes of one run, its name and where it finished; the legend has each kind once."""
    shown = {trace.name for trace in figure.data} if legend_of else set()
    for trace in (*bar_traces(side.selection.bars, side.zero_ns), label_trace(side.selection, side.zero_ns)):
        hidden = {"showlegend": False} if trace.get("name") in shown else {}
        figure.add_trace(trace | {"yaxis": axis} | hidden)
    end = side.us(side.ends_ns)
    figure.add_trace(_upright(end, _TOP, axis, f"{escape(side.name)}: {side.finish}", dash="solid"))
    headline = f"<b>{escape(side.name)}</b>: GPU active {share_text(side.numbers.gpu_active)}"
    _write(figure, headline, x=0, xref="paper", xanchor="left", yref=axis)
    low, high = figure.layout.xaxis.range
    _write_finish(figure, side.finish, end, (end - low) / (high - low), headline, axis)


def _write_finish(figure: go.Figure, text: str, end: float, place: float, headline: str, axis: str) -> None:
    """Right of its line, which stands at ``place``, 0 to 1, of the width, and where the run draws nothing any more.

    Left of it where there is no room; if the headline is in the way there, on two lines, or in the emptiest lane.
    """
    plain = sub("<.*?>", "", headline)
    width, taken = (len(words) * _CHARACTER_PX / _PLOT_PX for words in (text, plain))
    one_line, fits_left = place + width < 1, place - width > taken
    right = one_line or (not fits_left and place + width / 2 < 0.99)
    y = _HEADLINE if one_line or fits_left else _TWO_LINES if right else _BELOW
    anchor = {"xanchor": "left", "xshift": 4} if right else {"xanchor": "right", "xshift": -4}
    shown = text.replace(" at ", " at<br>") if y == _TWO_LINES else text
    _write(figure, f"<b>{shown}</b>", x=end, xref="x", yref=axis, y=y, align="left", **anchor)


def _write(figure: go.Figure, text: str, **where: Any) -> None:
    options: dict[str, Any] = {"y": _HEADLINE, "showarrow": False, "yanchor": "middle", "borderpad": 1}
    figure.add_annotation(text=text, font={"size": style.NOTE, "color": style.INK}, **(options | where))


def _upright(x: float, top: float, axis: str, text: str, dash: str) -> go.Scatter:
    """A vertical line over the lanes."""
    return go.Scatter(
        x=[x, x],
        y=[-0.55, top],
        yaxis=axis,
        mode="lines",
        line={"color": style.INK, "width": 3, "dash": dash},
        hoverinfo="text",
        text=text,
        name=text,
        showlegend=False,
    )


def draw_predicted_end(figure: go.Figure, predicted_us: float) -> None:
    text = f"you predicted {predicted_us / 1000:g} ms"
    figure.add_trace(_upright(predicted_us, _HEADLINE - 0.45, "y2", text, dash="dash"))
    side = "left" if predicted_us < figure.layout.xaxis.range[1] / 2 else "right"
    _write(figure, text, x=predicted_us, xref="x", xanchor=side, y=-0.05, yref="y2", bgcolor=style.PAPER)


def draw_differences(figure: go.Figure, result: Comparison) -> None:
    steps = result.steps
    differences = [step.difference_ns / 1000 for step in steps]
    figure.add_trace(
        go.Bar(
            x=[step.step for step in steps],
            y=differences,
            xaxis="x2",
            yaxis="y3",
            name="difference per step",
            showlegend=False,
            customdata=[[time_text(step.a_ns), time_text(step.b_ns)] for step in steps],
            hovertemplate="step %{x}: %{customdata[0]}, then %{customdata[1]}: %{y:+,.1f} µs<extra></extra>",
            marker={
                "color": [_SLOWER if value > 0 else _FASTER for value in differences],
                "pattern": {
                    "shape": ["/" if value > 0 else "" for value in differences],
                    "fillmode": "overlay",
                    "fgcolor": style.PAPER,
                },
            },
        )
    )


def draw_active(figure: go.Figure, sides: tuple[Side, Side], told: dict[str, float]) -> None:
    shares = [side.numbers.gpu_active * 100 for side in sides]
    figure.add_trace(
        go.Bar(
            x=shares,
            y=[1, 0],
            width=0.7,
            orientation="h",
            xaxis="x3",
            yaxis="y4",
            name="GPU active",
            showlegend=False,
            text=[f"{share:.1f} %" for share in shares],
            textposition="inside",
            insidetextanchor="start",
            textfont={"color": style.PAPER, "size": style.NOTE},
            hovertext=[escape(side.name) for side in sides],
            hovertemplate="%{hovertext}: GPU active %{x:.1f} %<extra></extra>",
            marker={"color": style.GRAPH},
        )
    )
    if "gpu_active" in told:
        figure.add_trace(
            go.Scatter(
                x=[told["gpu_active"]],
                y=[0],
                xaxis="x3",
                yaxis="y4",
                mode="markers",
                marker={
                    "symbol": "diamond",
                    "size": 18,
                    "color": style.PAPER,
                    "line": {"color": style.INK, "width": 3},
                },
                name=f"predicted: {told['gpu_active']:g} %",
                hovertemplate="you predicted %{x:g} %<extra></extra>",
                legendgroup="prediction",
                legendgrouptitle={"text": "Prediction"},
            )
        )


def axes(first: Side, second: Side, up_to_us: float, beneath: bool) -> tuple[int, dict[str, Any]]:
    """The height of the plot in px, and its axes: time, up to ``up_to_us`` at least; lanes; numbers beneath them."""
    low = min(side.us(side.selection.start_ns) for side in (first, second))
    high = max(side.us(side.selection.end_ns) for side in (first, second))
    high = (max(high, up_to_us) + (high - low) * 0.005) or 1.0  # the mark at the end stays inside; two empty traces
    time = {"range": [low, high], "anchor": "y2", "tickformat": ",", "exponentformat": "none"}
    blocks, gaps = [_LANES_PX, _LANES_PX, *[_NUMBERS_PX] * beneath], [_BETWEEN_PX, *[_AXIS_PX] * beneath]
    inner, (above, below, *numbers) = domains(blocks, gaps)
    placed = {"xaxis": time | {"title": {"text": "time (µs), the same for both"}}}
    placed |= {"yaxis": _lanes(above), "yaxis2": _lanes(below)}
    return inner, placed | (_number_axes(*numbers) if beneath else {})


def _lanes(domain: list[float]) -> dict[str, Any]:
    return {
        "domain": domain,
        "tickvals": [ROW[lane] for lane in LANES],
        "ticktext": [f"<b>{lane}</b>" for lane in LANES],
        "tickfont": {"size": style.LANE - 2},
        "range": [-0.55, _TOP],
        "fixedrange": True,
        "showgrid": False,
    }


def _number_axes(domain: list[float]) -> dict[str, Any]:
    """Differences on the left, GPU active on the right."""
    return {
        "xaxis2": {"domain": [0, 0.62], "anchor": "y3", "title": {"text": "step"}, "tickformat": "d", "nticks": 12},
        "yaxis3": {
            "domain": domain,
            "anchor": "x2",
            "title": {"text": "difference (µs)", "standoff": 4},
            "zeroline": True,
            "zerolinecolor": style.INK,
            "tickformat": ",",
            "nticks": 5,
            "fixedrange": True,
        },
        "xaxis3": {
            "domain": [0.74, 1],
            "anchor": "y4",
            "range": [0, 100],
            "title": {"text": "GPU active (%)"},
            "tickvals": [0, 50, 100],
        },
        "yaxis4": {
            "domain": domain,
            "anchor": "x3",
            "range": [-0.6, 1.6],
            "tickvals": [1, 0],
            "ticktext": ["above", "below"],
            "fixedrange": True,
            "showgrid": False,
        },
    }
