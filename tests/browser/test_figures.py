"""Every figure in a real JupyterLab, on projectors of 1280 and 1920 px: drawn as built, no text cut or over another.

The pictures are kept in ``artifacts/``: what no test can judge is to be looked at.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import pytest

from labkit.viz import timeline
from tests.browser.lab import (
    CLASHES,
    HERE,
    Seen,
    Server,
    check_no_share_button,
    chromium,
    keep,
    needs_browser,
    needs_install,
    run_all,
)

NOTEBOOK = "figures.ipynb"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not on PATH"),
    needs_browser,
    needs_install,
]


def expected() -> dict[str, Any]:
    """What the cells of the notebook show, by the name that each begins with, from this process."""
    names: dict[str, Any] = {}
    shown = {}
    for cell in json.loads((HERE / NOTEBOOK).read_text())["cells"]:
        tree = ast.parse("".join(cell["source"]))
        name, last = tree.body[0], tree.body[-1]
        if not isinstance(last, ast.Expr):
            exec(compile(tree, NOTEBOOK, "exec"), names)
        elif isinstance(name, ast.Expr):
            shown[ast.literal_eval(name.value)] = eval(compile(ast.Expression(last.value), NOTEBOOK, "eval"), names)
    return shown


@pytest.fixture(scope="module")
def built() -> dict[str, Any]:
    return expected()


@pytest.fixture(scope="module", params=[1280, 1920])
def opened(server: Server, request: pytest.FixtureRequest) -> Iterator[tuple[Any, Seen, int]]:
    with chromium(height=22_000, width=request.param) as (page, seen):
        run_all(page, server, NOTEBOOK)
        page.locator(".jp-CodeCell").nth(18).locator("table").first.wait_for(timeout=60_000)
        yield page, seen, request.param


BARS = """plot => plot._fullData.filter(trace => trace.type === 'bar' && trace.x)
    .map(trace => [trace.name, Array.from(trace.x, x => x ?? null)])"""


def test_every_figure_is_drawn_as_built_with_no_text_cut_or_over_another(
    opened: tuple[Any, Seen, int], built: dict[str, Any]
) -> None:
    page, _, width = opened
    assert len(built) == page.locator(".jp-CodeCell").count() - 1
    bad = {}
    for place, (name, shown) in enumerate(built.items(), 1):
        output = page.locator(".jp-CodeCell").nth(place).locator(".jp-OutputArea")
        if name != "report":
            figure = shown if isinstance(shown, go.Figure) else timeline(shown, max_bars=600)
            plot = output.locator(".js-plotly-plot")
            plot.locator(".main-svg").first.wait_for()
            drawn = [(trace.name, list(trace.x)) for trace in figure.data if trace.type == "bar"]
            assert [(bars[0], bars[1]) for bars in plot.evaluate(BARS)] == drawn, name
            bad[name] = plot.evaluate(CLASHES)
        keep(output, f"{name}_{width}")
    assert {name: found for name, found in bad.items() if found} == {}


def test_a_report_shows_itself_as_its_table(opened: tuple[Any, Seen, int], built: dict[str, Any]) -> None:
    page, _, _ = opened
    table = page.locator(".jp-CodeCell").nth(len(built)).locator("table")
    assert table.locator("tr").count() == len(list(built["report"].rows()))
    for name, value, meaning in built["report"].rows():
        row = table.locator("tr").filter(has=page.get_by_role("rowheader", name=name, exact=True))
        assert row.locator("td").all_inner_texts() == [value, meaning]


def test_the_page_is_quiet_and_stays_at_home(opened: tuple[Any, Seen, int]) -> None:
    page, seen, _ = opened
    check_no_share_button(page)
    assert (seen.errors, seen.hosts) == ([], {"127.0.0.1"})
