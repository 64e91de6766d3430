"""Texts on a timeline: names inside the bars that are wide enough, and above the compute lane why it idles."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from labkit.analysis.units import time_text
from labkit.viz import style
from labkit.viz.bars import IDLE, LAUNCH, WAIT, Bar, Selection
from labkit.viz.drawing import ROW, PlainTrace, look_of

_PLOT_PX, _CHARACTER_PX = 580, 8  # labels are fitted to the plot of a notebook cell 900 px wide
_ABOVE = 0.525  # between the compute lane and the H2D lane
_LEFT = {"middle right": 0.0, "middle center": 0.5, "middle left": 1.0}  # of a text's width, left of its point
_LEAST_PX = 2  # a gap narrower than this is not seen, so nothing can point at it

Text = tuple[float, float, str, str, str]  # time in ns, y, text, colour, where the text is relative to that point


def label_trace(selection: Selection, zero_ns: int) -> PlainTrace:
    """Names and reasons, as one trace."""
    texts = [*_names_inside(selection), *_reasons(selection)]
    return {
        "type": "scatter",
        "x": [(ns - zero_ns) / 1000 for ns, *_ in texts],
        "y": [y for _, y, *_ in texts],
        "text": [escape(text) for _, _, text, _, _ in texts],
        "mode": "text",
        "textfont": {"size": style.LABEL, "color": [colour for *_, colour, _ in texts]},
        "textposition": [place for *_, place in texts],
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": True,
    }


def _names_inside(selection: Selection) -> Iterator[Text]:
    per_px = _ns_per_px(selection)
    for bar in selection.bars:
        text = _label(bar, per_px, selection)
        if text:
            look = look_of(bar)
            y = ROW[bar.lane] + (0.2 if _is_phase(bar) else look.lift)
            yield (bar.start_ns + bar.end_ns) / 2, y, text, look.text, "middle center"


def _ns_per_px(selection: Selection) -> float:
    return max(1, selection.end_ns - selection.start_ns) / _PLOT_PX


def _is_phase(bar: Bar) -> bool:
    return bar.lane == "CPU" and bar.kind not in (WAIT, LAUNCH)


def _label(bar: Bar, ns_per_px: float, selection: Selection) -> str:
    """The longest of a bar's names that fits into it, or nothing."""
    if not _whole(bar, selection):
        return ""  # its middle may lie outside
    return next((name for name in _names(bar) if len(name) * _CHARACTER_PX <= _length(bar) / ns_per_px), "")


def _whole(bar: Bar, selection: Selection) -> bool:
    return selection.start_ns <= bar.start_ns and bar.end_ns <= selection.end_ns


def _length(bar: Bar) -> int:
    return bar.end_ns - bar.start_ns


def _names(bar: Bar) -> Iterator[str]:
    if bar.kind == IDLE:
        yield "idle"
    elif _is_phase(bar):
        yield bar.name
    elif bar.kind == LAUNCH:
        return  # on its stripes no text could be read; the legend and the hover name it
    elif bar.kind == WAIT:
        yield "CPU waits"
        yield "waits"
    else:
        yield f"{bar.name}, step {bar.step}" if bar.step >= 0 else bar.name
        yield f"step {bar.step}" if bar.step >= 0 else ""
        yield str(bar.step) if bar.step >= 0 else ""


def _reasons(selection: Selection) -> Iterator[Text]:
    """For each reason its longest gap, with its length: longest first, and none over another."""
    per_px = _ns_per_px(selection)
    taken: list[tuple[float, float]] = []  # px from the left edge
    for gap in _longest_gaps(selection):
        text = f"idle {time_text(_length(gap))}: {gap.name}"
        width = len(text) * _CHARACTER_PX
        at_px, place = _placed(gap, width, per_px, selection)
        left = at_px - width * _LEFT[place]
        if _length(gap) / per_px >= _LEAST_PX and all(left + width <= low or high <= left for low, high in taken):
            taken.append((left, left + width))
            yield selection.start_ns + at_px * per_px, ROW["compute"] + _ABOVE, text, style.INK, place


def _longest_gaps(selection: Selection) -> list[Bar]:
    """One for each reason; of equally long ones that in the middle, since races are marked where they first happen."""
    middle = (selection.start_ns + selection.end_ns) / 2
    longest: dict[str, Bar] = {}
    for gap in sorted(selection.bars, key=lambda bar: abs((bar.start_ns + bar.end_ns) / 2 - middle)):
        if gap.kind == IDLE and _whole(gap, selection):
            longest[gap.name] = max(longest.get(gap.name, gap), gap, key=_length)
    return sorted(longest.values(), key=_length, reverse=True)


def _placed(gap: Bar, width_px: float, per_px: float, selection: Selection) -> tuple[float, str]:
    """Centred over the gap; from its start, or up to its end, where the plot or the run begins or ends."""
    start, end = ((ns - selection.start_ns) / per_px for ns in (gap.start_ns, gap.end_ns))
    middle, last_ns = (start + end) / 2, min(selection.end_ns, max(bar.end_ns for bar in selection.bars))
    if middle < width_px / 2:
        return start, "middle right"
    late = middle > (last_ns - selection.start_ns) / per_px - width_px / 2
    return (end, "middle left") if late else (middle, "middle center")
