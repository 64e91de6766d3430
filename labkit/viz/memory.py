"""How much memory slots, KV cache and graphs take: one engine, or several beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from labkit.analysis.units import bytes_text
from labkit.engine.core import EngineCore
from labkit.errors import InvalidArgument
from labkit.memory import MemoryUse, memory_of
from labkit.viz import style
from labkit.viz.frame import Table, frame

_ROW_PX, _FRAME_PX = 62, 60
_HOST, _DEVICE = style.Look(style.CPU, style.PAPER), style.Look(style.COMPUTE, style.PAPER)
_LOOKS = {  # by part and place; slot B is hatched as in a timeline
    ("slot A", "host"): _HOST,
    ("slot A", "device"): _DEVICE,
    ("slot B", "host"): style.Look(style.CPU, style.PAPER, hatch="/"),
    ("slot B", "device"): style.Look(style.COMPUTE, style.PAPER, hatch="/"),
    ("KV cache", "device"): style.Look("#56B4E9"),
    ("CUDA graphs", "device"): style.Look(style.YELLOW, hatch="x"),
}


def memory(*engines: Any, names: Sequence[str] | None = None) -> go.Figure:
    """Draw the bytes of slots on the left, and of the KV cache and the graphs on the right, on a scale of its own.

    Args:
        engines: engines or runs, one or more to compare.
        names: what they are called; default: the mechanisms that are on.

    Raises:
        InvalidArgument: nothing to draw, or names that do not fit.
    """
    if not engines:
        raise InvalidArgument("engines", engines, "at least one Engine or Run")
    if names is not None and len(names) != len(engines):
        raise InvalidArgument("names", names, f"one for each of the {len(engines)} engines")
    uses = [_uses(engine) for engine in engines]
    called = list(names) if names is not None else [_name(engine) for engine in engines]
    figure = go.Figure(layout=_layout(uses, called))
    sums = [_sums(one) for one in uses]
    for key, look in _LOOKS.items():
        if any(key in one for one in sums):
            figure.add_trace(_bar(key, look, sums))
    return figure


def _uses(engine: Any) -> tuple[MemoryUse, ...]:
    core = getattr(engine, "core", engine)
    if isinstance(core, EngineCore):
        return memory_of(core)
    uses = getattr(engine, "memory", None)
    if not isinstance(uses, tuple) or not uses:
        raise InvalidArgument("engines", engine, "an Engine, or a Run")
    return uses


def _name(engine: Any) -> str:
    on = engine.switches.on if hasattr(engine, "switches") else ()
    return f"all up to {on[-1]}" if on else "no mechanism"


def _sums(uses: tuple[MemoryUse, ...]) -> dict[tuple[str, str], int]:
    sums: dict[tuple[str, str], int] = {}
    for use in uses:
        key = use.part, "device" if use.place == "device" else "host"
        sums[key] = sums.get(key, 0) + use.bytes
    return sums


def _bar(key: tuple[str, str], look: style.Look, sums: list[dict[tuple[str, str], int]]) -> go.Bar:
    """One part of all engines; parts of a row lie end to end."""
    part, place = key
    left = part.startswith("slot")
    before = [other for other in _LOOKS if other[0].startswith("slot") == left][: _position(key, left)]
    sizes = [one.get(key, 0) for one in sums]
    name = f"{part}, {place}" if left else part
    return go.Bar(
        name=name,
        orientation="h",
        base=[sum(one.get(other, 0) for other in before) for one in sums],
        x=sizes,
        y=list(range(len(sums))),
        width=0.6,
        xaxis="x" if left else "x2",
        yaxis="y" if left else "y2",
        customdata=[bytes_text(size) for size in sizes],
        hovertemplate=f"{escape(name)}: %{{customdata}} (%{{x:,}} B)<extra></extra>",
        legendgroup="slots" if left else "other",
        marker={
            "color": look.fill,
            "line": {"width": 1, "color": style.INK},
            "pattern": {"shape": look.hatch, "fillmode": "overlay", "fgcolor": look.text, "fgopacity": 0.6, "size": 9},
        },
    )


def _position(key: tuple[str, str], left: bool) -> int:
    return [other for other in _LOOKS if other[0].startswith("slot") == left].index(key)


def _layout(uses: list[tuple[MemoryUse, ...]], names: list[str]) -> go.Layout:
    rows = {"range": [len(names) - 0.5, -0.5], "fixedrange": True, "showgrid": False}
    slots = [sum(use.bytes for use in one if use.part.startswith("slot")) for one in uses]
    other = [sum(use.bytes for use in one if not use.part.startswith("slot")) for one in uses]
    ticks = {"tickvals": list(range(len(names))), "ticktext": [f"<b>{escape(name)}</b>" for name in names]}
    return frame(
        _sentence(uses, names),
        [
            "A slot is one set of host and device buffers, for a step's inputs and outputs.",
            "CUDA graphs: the logits that they keep in their shared pool, a lower bound.",
        ],
        len(names) * _ROW_PX + _FRAME_PX,
        _table(uses, names),
        margin={"l": 215, "b": 80},
        xaxis=_bytes_axis(max(slots), "slots") | {"domain": [0, 0.46], "anchor": "y"},
        xaxis2=_bytes_axis(max(other), "KV cache and graphs") | {"domain": [0.54, 1], "anchor": "y2"},
        yaxis=rows | ticks,
        yaxis2=rows | {"tickvals": [], "anchor": "x2"},
    )


def _bytes_axis(most: int, title: str) -> dict[str, Any]:
    """Three to six ticks at powers of two, in a unit that suits them."""
    power, unit = next((p, u) for p, u in ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")) if most >= 2**p or not p)
    step = 2 ** max(0, (most // 3).bit_length() - 1)
    ticks = list(range(0, most + 1, step))
    return {
        "title": {"text": f"{title} ({unit})"},
        "range": [0, most * 1.05],
        "tickvals": ticks,
        "ticktext": [f"{tick / 2**power:g}" for tick in ticks],
    }


def _sentence(uses: list[tuple[MemoryUse, ...]], names: list[str]) -> str:
    def slots(one: tuple[MemoryUse, ...]) -> int:
        return sum(use.bytes for use in one if use.part.startswith("slot"))

    kv = sum(use.bytes for use in uses[-1] if use.part == "KV cache")
    sizes = ", ".join(f"{bytes_text(slots(one))} with {name}" for one, name in zip(uses, names, strict=True))
    return f"Slots take {sizes}; the KV cache takes {bytes_text(kv)}."


def _table(uses: list[tuple[MemoryUse, ...]], names: list[str]) -> Table:
    return [
        {"engine": name, "part": use.part, "what": use.what, "place": use.place, "bytes": use.bytes}
        for one, name in zip(uses, names, strict=True)
        for use in one
    ]
