"""A figure as one page that works offline: the picture, its numbers, and the table that says the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.io import to_html

from labkit.analysis.occupancy import report
from labkit.errors import InvalidArgument
from labkit.viz import style
from labkit.viz.figures import table, table_of, timeline
from labkit.viz.frame import Table, trace_of

# Plotly 7 offers to upload the chart ("Share chart"): no page of ours sends anything anywhere.
CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["sendChartToCloud", "select2d", "lasso2d"],
    "responsive": True,
}

# The browser itself keeps the page offline: scripts and styles of the page only, and nothing may be fetched.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

STYLE = f"""
body {{ font: 18px/1.5 {style.FONT}; color: {style.INK}; background: {style.PAPER}; margin: 1.5rem; }}
h1 {{ font-size: 1.6rem; margin: 0 0 .5rem; }}
h2 {{ font-size: 1.3rem; }}
.summary {{ font-size: 1.2rem; font-weight: bold; margin: 0; }}
.note {{ margin: 0; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; font-weight: bold; padding-bottom: .25rem; }}
th, td {{ border-bottom: 1px solid {style.GRID}; padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }}
td.number {{ text-align: right; }}
details {{ margin-top: 1.5rem; }}
summary {{ cursor: pointer; font-size: 1.2rem; font-weight: bold; }}
.wide {{ overflow-x: auto; }}
"""


def save_html(
    shown: Any,
    path: str | Path,
    title: str = "labkit timeline",
    *,
    steps: int | tuple[int, int] | None = None,
    arrows_for: int | None = None,
    max_bars: int = 4000,
) -> None:
    """Write one self-contained page: a figure, what it says in words, and the table that says the same.

    The page opens from the file, asks no host for anything, and is the same for the same figure.

    Args:
        shown: a figure of ``labkit.viz``; or a Trace or Run, for its timeline, numbers and bars (times in µs).
        steps, arrows_for, max_bars: of the timeline.

    Raises:
        InvalidArgument: as ``labkit.viz.timeline``, or a figure that labkit has not made.
        OSError: the file cannot be written.
    """
    if isinstance(shown, go.Figure):
        if not isinstance(shown.layout.meta, dict) or "table" not in shown.layout.meta:
            raise InvalidArgument("shown", type(shown).__name__, "a figure with a table; for a timeline, its trace")
        _write(path, title, shown, "", table_of(shown), "The figure as a table")
        return
    figure = timeline(shown, steps=steps, arrows_for=arrows_for, max_bars=max_bars)
    numbers = f"<h2>Numbers</h2>\n{report(trace_of(shown))._repr_html_()}\n"
    _write(path, title, figure, numbers, table(shown, steps=steps, max_bars=max_bars), "The bars as a table")


def _write(path: str | Path, title: str, figure: go.Figure, numbers: str, rows: Table, caption: str) -> None:
    meta = figure.layout.meta
    notes = "".join(f'<p class="note">{escape(note)}</p>\n' for note in meta["notes"])
    Path(path).write_text(
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="summary">{escape(meta["summary"])}</p>\n{notes}'
        f'<div role="img" aria-label="{escape(meta["summary"])}">{_drawing(figure)}</div>\n{numbers}'
        f"<details>\n<summary>{caption} ({len(rows):,} rows)</summary>\n{table_html(rows)}\n</details>\n"
        f"</main>\n</body>\n</html>\n",
        encoding="utf-8",
    )


def _drawing(figure: go.Figure) -> str:
    """The figure with plotly.js beside it; its sentences are on the page already."""
    top = figure.layout.margin.t
    bare = go.Figure(figure).update_layout(title=None, margin_t=30, height=figure.layout.height - top + 30)
    return to_html(bare, config=CONFIG, include_plotlyjs=True, full_html=False, div_id="timeline")


def table_html(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows of equal keys as an HTML table, units in its headings."""
    rows = list(rows)
    if not rows:
        return "<p>No bars.</p>"
    head = "".join(f'<th scope="col">{escape(_heading(name))}</th>' for name in rows[0])
    body = "\n".join(f"<tr>{''.join(_cell(value) for value in row.values())}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _heading(name: str) -> str:
    for ending, unit in (("_us", " (µs)"), ("_ms", " (ms)"), ("_percent", " (%)")):
        name = name.removesuffix(ending) + unit if name.endswith(ending) else name
    return name.replace("_", " ")


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            f'<td class="number">{value:,.3f}</td>'
            if isinstance(value, float)
            else f'<td class="number">{value:,}</td>'
        )
    return f"<td>{escape('' if value is None else str(value))}</td>"
