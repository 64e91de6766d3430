"""A lesson as one page: everything that the notebook shows, plots with their data, nothing fetched."""

from __future__ import annotations

import builtins
import json
import re
from html import escape

import pytest

from labkit.errors import InvalidArgument, MissingExtra
from labkit.lessons import stored
from labkit.viz import timeline
from labkit.viz.lesson_page import save_lesson
from tests.unit.synthetic import async_trace

FIGURE = json.loads(timeline(async_trace(), max_bars=100).to_json())
TABLE = [{"rows": 1, "time_us": 2.5}]


def markdown(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(source, **data):
    output = {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}
    outputs = [output] if data else []
    return {"cell_type": "code", "metadata": {}, "source": source, "execution_count": 1, "outputs": outputs}


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def figure(title="", table=None):
    meta = {**FIGURE["layout"]["meta"], **({"table": table} if table else {})}
    return {stored.FIGURE_MIME: {**FIGURE, "layout": {**FIGURE["layout"], "meta": meta, "title": {"text": title}}}}


LESSON = notebook(
    markdown(["# Who waits?\n", "\n", "See [rules 2 and 17](../docs/semantics.md), [04](04_events.ipynb), "]),
    markdown("[this file](../README.md) and [a page](https://example.org/x)."),
    code("timeline(run)", **figure(table=TABLE)),
    code("Switchboard()", **{f"{stored.WIDGET_MIME}-view+json": {"model_id": "1"}, "text/plain": "Switchboard(x)"}),
    code(["1 < 2\n", "'a'"], **{"text/plain": ["1 <\n", "2"]}),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    return saved(tmp_path_factory.mktemp("page"), ("03_streams", LESSON))


def saved(folder, *notebooks) -> str:
    save_lesson(notebooks, folder / "x.html")
    return (folder / "x.html").read_text(encoding="utf-8")


def without_plotly(page: str) -> str:
    return re.sub(r"<script>.{1000000,}?</script>", "", page, flags=re.DOTALL)


def test_plotly_is_embedded_once_and_nothing_is_fetched(page, tmp_path):
    two = saved(tmp_path, ("03_streams", LESSON), ("04_events", LESSON))
    assert page.count("* plotly.js v") == two.count("* plotly.js v") == 1
    ours = without_plotly(page)
    assert not re.search(r"<(link|img|iframe|script[^>]* src)", ours)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', ours).group(1)
    assert policy.startswith("default-src 'none'") and "http" not in policy


def test_a_figure_is_on_the_page_with_its_data_sentence_and_table(page):
    ours = without_plotly(page)
    (drawn,) = re.findall(r'<script type="application/json">(.*?)</script>', ours, re.DOTALL)
    found = json.loads(drawn)
    assert found["data"] == FIGURE["data"]
    assert (
        found["config"]["showSendToCloud"] is False and "sendChartToCloud" in found["config"]["modeBarButtonsToRemove"]
    )
    assert f'aria-label="{escape(FIGURE["layout"]["meta"]["summary"])}' in ours
    assert 'role="img"' in ours and "As a table (1 rows)" in ours and "time (µs)" in ours
    assert "Plotly.newPlot" in ours


def test_a_text_in_a_figure_cannot_end_its_script(tmp_path):
    ours = without_plotly(saved(tmp_path, ("x", notebook(code("f()", **figure(title="</script><b>"))))))
    (drawn,) = re.findall(r'<script type="application/json">(.*?)</script>', ours, re.DOTALL)
    assert json.loads(drawn)["layout"]["title"]["text"] == "</script><b>"


def test_code_and_text_outputs_are_there_and_escaped(page):
    assert "timeline</span>" in page or ">timeline<" in page
    assert "1 &lt;\n2" in page
    assert "In&nbsp;[" not in page and "In [" not in page


def test_a_panel_says_that_it_needs_the_notebook(page):
    assert "Switchboard: run the notebook to use this panel." in page
    assert "model_id" not in page


def test_rules_are_linked_to_their_text_on_the_page(page):
    assert 'href="#rule-2"' in page
    assert 'id="rule-2"' in page and 'id="rule-17"' in page and 'id="rule-3"' not in page
    assert "One stream is FIFO." in page
    assert "Notation" in page


def test_links_that_would_lead_nowhere_become_text(page):
    assert "04_events.ipynb" not in page and "README.md" not in page
    assert "this file and" in page
    assert 'href="https://example.org/x"' in page


def test_several_lessons_have_contents_and_link_each_other(tmp_path):
    page = saved(
        tmp_path,
        ("03_streams", LESSON),
        ("04_events", notebook(markdown("# Events"), code("1", **{"text/plain": "1"}))),
    )
    assert '<a href="#03_streams">Who waits?</a>' in page and '<a href="#04_events">Events</a>' in page
    assert '<article id="04_events">' in page
    assert page.count('href="#04_events"') == 2, "the contents, and the text"
    ids = re.findall(r'\bid="([^"]+)"', without_plotly(page))
    assert len(ids) == len(set(ids))


def test_the_title_is_the_lesson_s(page):
    assert "<title>Who waits?</title>" in page


def test_a_notebook_that_was_not_run_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="one that was run"):
        saved(tmp_path, ("mine", notebook(markdown("x"), code("1"))))
    with pytest.raises(InvalidArgument, match="at least one"):
        saved(tmp_path)


def test_the_notebook_is_not_changed(tmp_path):
    before = json.dumps(LESSON)
    saved(tmp_path, ("x", LESSON))
    assert json.dumps(LESSON) == before


def test_without_nbconvert_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name == "nbconvert":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"nbconvert is not installed: pip install 'labkit\[lab\]'"):
        saved(tmp_path, ("x", LESSON))
