"""What every figure has around its plot: a sentence, notes, a table twin, and rows of axes placed by the pixel."""

from __future__ import annotations

from collections.abc import Sequence
from re import sub
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from labkit.errors import InvalidArgument
from labkit.trace.events import Trace
from labkit.viz import style

MARGIN = {"l": 115, "r": 20, "t": 30, "b": 70}
_TITLE_PX, _NOTE_PX = 28, 23  # a line of each
_TITLE_CHARACTER_PX, _NOTE_CHARACTER_PX = 9.7, 7.4  # on average
_WIDTH_PX = 840  # a cell of JupyterLab with its side bar on a projector of 1280 px is a little wider

Table = list[dict[str, Any]]


def frame(sentence: str, notes: Sequence[str], inner_px: int, table: Table | None = None, **layout: Any) -> go.Layout:
    """A layout with the sentence as title and the notes below it, around a plot ``inner_px`` high.

    ``layout.meta`` keeps ``summary``, ``notes`` and the ``table`` that says the same as the figure. Other keywords are
    the layout's own; a ``margin`` among them replaces single sides.
    """
    margin = MARGIN | layout.pop("margin", {})
    room = _WIDTH_PX - margin["l"]
    title = _lines(sentence, int(room / _TITLE_CHARACTER_PX))
    lines = [line for note in notes for line in _lines(note, int(room / _NOTE_CHARACTER_PX))]
    margin["t"] += _TITLE_PX * len(title) + _NOTE_PX * len(lines)
    meta = {"summary": sentence, "notes": list(notes)} | ({} if table is None else {"table": table})
    height = margin["t"] + inner_px + margin["b"]
    return go.Layout(
        template=style.template(),
        meta=meta,
        title={
            "text": "<br>".join(title),
            "y": round(1 - 30 / height, 6),  # the first line's own height below the upper edge
            "yanchor": "bottom",
            "subtitle": {"text": "<br>".join(lines), "font": {"size": style.NOTE}},
        },
        barmode="overlay",
        uirevision="labkit",  # a zoom survives when the figure's data is replaced
        height=height,
        margin=margin,
        **layout,
    )


def _lines(text: str, characters: int) -> list[str]:
    """Lines of at most so many characters; a number and its unit stay together."""
    glued = sub(r"(?<=\d) (?=%|[mµn]?s\b)", "\N{NO-BREAK SPACE}", text)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrap(glued, characters)]


def domains(blocks: Sequence[int], gaps: Sequence[int]) -> tuple[int, list[list[float]]]:
    """Height in pixels, and the ``domain`` of each block from top to bottom, for blocks with gaps between them."""
    inner = sum(blocks) + sum(gaps)
    placed, top = [], inner
    for height, gap in zip(blocks, [*gaps, 0], strict=True):
        placed.append([round((top - height) / inner, 6), round(top / inner, 6)])
        top -= height + gap
    return inner, placed


def trace_of(source: Any, argument: str = "trace") -> Trace:
    """The trace of a run, or the trace itself.

    Raises:
        InvalidArgument: neither, or a run without a trace.
    """
    trace = source if isinstance(source, Trace) else getattr(source, "trace", None)
    if not isinstance(trace, Trace):
        raise InvalidArgument(argument, source, "a Trace, or a Run of an engine built with trace=True")
    return trace


def table_of(figure: go.Figure) -> Table:
    """The table twin of a figure: what it shows, as rows."""
    rows: Table = figure.layout.meta["table"]
    return rows
