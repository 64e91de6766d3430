"""A lesson as one page that works offline: text, code and outputs as they were stored, plots drawn.

nbconvert turns the cells into HTML and shows no plotly figure; here each figure becomes a place on the page, its data,
and the table that says the same. plotly.js is on the page once.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from labkit.errors import InvalidArgument, MissingExtra
from labkit.lessons import stored
from labkit.lessons.shipped import SEMANTICS, course_folder
from labkit.lessons.stored import Notebook
from labkit.viz import html, style

# Without the rule's anchor: the page has ids of its own.
_RULE = re.compile(r'^(\d+)\. (?:<a id="rule-\d+"></a>)?(.*(?:\n[^\d\n#].*)*)', re.MULTILINE)
_RULES_LINKED = re.compile(r"\[(rules? (\d+)[^\]]*)\]\((?:\.\./)+docs/semantics\.md(?:#[^)]*)?\)")
_LOCAL_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#|data:)[^)]*\)")

_STYLE = f"""
main {{ max-width: 62rem; margin: auto; }}
pre {{ overflow-x: auto; font-size: .9rem; line-height: 1.35; margin: .6rem 0; }}
.input_area {{ background: #F5F5F5; padding: .1rem .8rem; border-left: 4px solid {style.GRID}; }}
.output_area {{ padding: .1rem .8rem; }}
.text_cell_render, .output_area {{ overflow-x: auto; }}
.anchor-link {{ display: none; }}
.figure {{ min-height: 12rem; }}
.panel {{ border: 1px dashed {style.INK}; padding: .4rem .8rem; }}
h1 {{ margin-top: 3rem; }}
@media print {{ .cell {{ break-inside: avoid; }} details {{ display: none; }} }}
"""

# One figure after another, so that the text can be read at once.
_DRAW = """
const waiting = [...document.querySelectorAll('.figure')];
function draw() {
  const place = waiting.shift();
  if (!place) return;
  const figure = JSON.parse(place.nextElementSibling.textContent);
  Plotly.newPlot(place, figure.data, figure.layout, figure.config).then(() => setTimeout(draw));
}
window.addEventListener('beforeprint', () => { while (waiting.length) draw(); });
draw();
"""


def save_lesson(notebooks: Sequence[tuple[str, Notebook]], path: str | Path) -> None:
    """Write notebooks that were run as one self-contained page; more than one get a table of contents.

    Args:
        notebooks: name (which becomes an anchor) and content of each.

    Raises:
        InvalidArgument: none given, or one in which no cell has an output.
        MissingExtra: nbconvert is not installed.
        OSError: the file cannot be written.
    """
    if not notebooks:
        raise InvalidArgument("notebooks", [], "at least one")
    for name, notebook in notebooks:
        if not any(cell["outputs"] for cell in stored.code_cells(notebook)):
            raise InvalidArgument("notebook", name, "one that was run and saved: no cell of it has an output")
    names = [name for name, _ in notebooks]
    cited = sorted({rule for _, notebook in notebooks for rule in _cited(notebook)})
    bodies = [_body(name, notebook, names) for name, notebook in notebooks]
    title = _title(*notebooks[0]) if len(notebooks) == 1 else "labkit: the course"
    Path(path).write_text(_page(title, _contents(notebooks), bodies, _rules(cited)), encoding="utf-8")


def _page(title: str, contents: str, bodies: Sequence[str], rules: str) -> str:
    highlighting = _highlighting()
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{html.STYLE}{highlighting}{_STYLE}</style>\n"
        f"<script>{get_plotlyjs()}</script>\n</head>\n<body>\n<main>\n"
        + "\n".join([contents, *bodies, rules])
        + f"\n</main>\n<script>{_DRAW}</script>\n</body>\n</html>\n"
    )


def _contents(notebooks: Sequence[tuple[str, Notebook]]) -> str:
    if len(notebooks) == 1:
        return ""
    lines = [f'<li><a href="#{escape(name)}">{escape(_title(name, notebook))}</a></li>' for name, notebook in notebooks]
    return f"<h1>labkit: the course</h1>\n<nav><ul>{''.join(lines)}</ul></nav>"


def _title(name: str, notebook: Notebook) -> str:
    texts = [stored.source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    heading = next((line for text in texts for line in text.split("\n") if line.startswith("# ")), name)
    return heading.removeprefix("# ")


# -- cells -------------------------------------------------------------------------------------------------------------


def _body(name: str, notebook: Notebook, names: Sequence[str]) -> str:
    exporter, nbformat = _nbconvert()
    ready = copy.deepcopy(notebook)
    for number, cell in enumerate(ready["cells"]):
        cell["id"] = f"{name}-{number}"
        if cell["cell_type"] == "markdown":
            cell["source"] = _links(stored.source(cell), names)
        elif cell["cell_type"] == "code":
            cell["outputs"] = [_shown(output) for output in cell["outputs"]]
    body, _ = exporter.from_notebook_node(nbformat.reads(json.dumps(ready), as_version=4))
    return f'<article id="{escape(name)}">\n{body}\n</article>'


def _nbconvert() -> tuple[Any, Any]:
    try:
        import nbformat
        from nbconvert import HTMLExporter
    except ImportError:
        raise MissingExtra("nbconvert", "lab") from None
    # "basic" has no head: no script, style or font that a page of ours would have to fetch.
    return HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True), nbformat


def _highlighting() -> str:
    from pygments.formatters import HtmlFormatter  # nbconvert brings it

    styles: str = HtmlFormatter(nobackground=True).get_style_defs(".highlight")
    return styles


def _links(markdown: str, names: Sequence[str]) -> str:
    """Rules and lessons are on the page; a link to any other file would lead nowhere, and becomes its text."""
    for name in names:
        markdown = re.sub(rf"\]\((?:\.\./)*(?:solutions/)?{name}\.ipynb[^)]*\)", f"](#{name})", markdown)
    markdown = _RULES_LINKED.sub(r"[\1](#rule-\2)", markdown)
    return _LOCAL_LINK.sub(r"\1", markdown)


def _shown(output: dict[str, Any]) -> dict[str, Any]:
    """The output as HTML where nbconvert would show nothing, or only the name of a Python object."""
    data = output.get("data", {})
    if stored.FIGURE_MIME in data:
        return {**output, "data": {"text/html": _figure(data[stored.FIGURE_MIME])}}
    if any(mime.startswith(stored.WIDGET_MIME) for mime in data) and "text/html" not in data:
        kind = escape(stored.joined(data.get("text/plain", "")).partition("(")[0] or "widget")
        return {**output, "data": {"text/html": f'<p class="panel">{kind}: run the notebook to use this panel.</p>'}}
    return output


def _figure(figure: dict[str, Any]) -> str:
    meta = figure["layout"].get("meta") or {}
    summary = escape(" ".join([meta.get("summary", "A figure."), *meta.get("notes", [])]))
    drawn = {"data": figure["data"], "layout": figure["layout"], "config": html.CONFIG}
    text = json.dumps(drawn).replace("</", "<\\/")
    rows = meta.get("table")
    height = figure["layout"].get("height")
    space = f' style="height:{height}px"' if height else ""
    return (
        f'<div class="figure" role="img" aria-label="{summary}"{space}></div>'
        f'<script type="application/json">{text}</script>'
        + (
            f"<details><summary>As a table ({len(rows):,} rows)</summary>{html.table_html(rows)}</details>"
            if rows
            else ""
        )
    )


# -- rules -------------------------------------------------------------------------------------------------------------


def _cited(notebook: Notebook) -> set[int]:
    texts = [stored.source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    cited = [found.group(1) for text in texts for found in _RULES_LINKED.finditer(text)]
    return {int(number) for names in cited for number in re.findall(r"\d+", names)}


def _rules(cited: Sequence[int]) -> str:
    """The rules that the text links, from the semantics document."""
    if not cited:
        return ""
    from nbconvert.filters.markdown import markdown2html

    text = (course_folder() / SEMANTICS).read_text(encoding="utf-8")
    section = text.partition("\n## 1.")[2].partition("\n## 2.")[0]
    known = {int(number): rule for number, rule in _RULE.findall(section)}
    shown = [f'<div id="rule-{n}">{markdown2html(f"**Rule {n}.** {known[n]}")}</div>' for n in cited if n in known]
    notation = re.search(r"^\*\*Notation\.\*\*.*(?:\n.+)*", text, re.MULTILINE)
    head = markdown2html(notation.group(0)) if notation else ""
    return f"<section>\n<h1>The rules that the text cites</h1>\n{head}\n{''.join(shown)}\n</section>"
