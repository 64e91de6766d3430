"""The page: one file, nothing fetched, everything in it twice, as picture and as table."""

import re

import plotly.graph_objects as go
import pytest

from labkit.analysis.occupancy import report
from labkit.errors import InvalidArgument
from labkit.trace.events import Span, Trace
from labkit.viz import batch_view, compare, save_html, table, table_of, timeline
from tests.unit.synthetic import async_trace
from tests.unit.viz.runs import mixed_run


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "run.html"
    save_html(async_trace(), path, title="Six steps")
    return path.read_text(encoding="utf-8")


def without_plotly(page: str) -> str:
    """The page without the script of plotly.js, which is far longer than any other."""
    return re.sub(r"<script[^>]*>.{1000000,}?</script>", "", page, flags=re.DOTALL)


def test_plotly_is_embedded_once(page):
    assert len(page) > 1_000_000
    assert len(without_plotly(page)) < 200_000
    assert page.count("* plotly.js v") == 1


def test_nothing_is_fetched_and_the_browser_is_told_so(page):
    ours = without_plotly(page)
    assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:)?//""", ours)
    assert not re.search(r"<(link|img|iframe|script[^>]* src)", ours)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', ours).group(1)
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert "connect-src" not in policy


def test_the_chart_cannot_be_shared(page):
    assert '"showSendToCloud": false' in page
    assert "sendChartToCloud" in re.search(r'"modeBarButtonsToRemove": (\[[^\]]*\])', page).group(1)


def test_the_page_has_summary_numbers_and_the_table_twin(page):
    ours = without_plotly(page)
    assert "<title>Six steps</title>" in ours
    assert "GPU active 90.1 %" in ours
    assert report(async_trace())._repr_html_() in ours
    rows = table(async_trace())
    details = ours[ours.index("<details>") :]
    assert details.count("<tr>") == len(rows) + 1
    assert f"{len(rows)} rows" in details


def test_the_same_trace_gives_the_same_page(page, tmp_path):
    save_html(async_trace(), tmp_path / "again.html", title="Six steps")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_names_cannot_leave_their_place(tmp_path):
    trace = Trace((Span(0, "kernel", "</script><script>alert(1)</script>", "compute", 0, 10_000_000, step=0),))
    save_html(trace, tmp_path / "odd.html", title="<i>")
    page = without_plotly((tmp_path / "odd.html").read_text(encoding="utf-8"))
    assert "<script>alert" not in page
    assert "<title>&lt;i&gt;</title>" in page


def test_an_empty_trace_has_a_page_too(tmp_path):
    save_html(Trace(()), tmp_path / "empty.html")
    assert "The trace is empty" in without_plotly((tmp_path / "empty.html").read_text(encoding="utf-8"))


def test_bad_steps_write_no_file(tmp_path):
    with pytest.raises(InvalidArgument):
        save_html(async_trace(), tmp_path / "bad.html", steps=99)
    assert not (tmp_path / "bad.html").exists()


def test_any_figure_is_a_page_with_its_own_table(tmp_path):
    figure = batch_view(mixed_run(5))
    save_html(figure, tmp_path / "batch.html", title="Rows")
    ours = without_plotly((tmp_path / "batch.html").read_text(encoding="utf-8"))
    assert figure.layout.meta["summary"] in ours
    assert ours[ours.index("<details>") :].count("<tr>") == len(table_of(figure)) + 1
    assert "Numbers" not in ours


def test_a_run_is_a_page_of_its_timeline(tmp_path):
    save_html(mixed_run(5), tmp_path / "run.html")
    ours = without_plotly((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert "Run of 6 requests" in ours
    assert report(mixed_run(5).trace)._repr_html_() in ours


def test_a_figure_without_a_table_is_refused(tmp_path):
    for figure in (go.Figure(), timeline(async_trace())):
        with pytest.raises(InvalidArgument, match="a figure with a table"):
            save_html(figure, tmp_path / "bad.html")
    assert not (tmp_path / "bad.html").exists()


def test_units_are_in_the_headings_of_a_table(tmp_path):
    save_html(compare(async_trace(), async_trace()), tmp_path / "two.html")
    ours = without_plotly((tmp_path / "two.html").read_text(encoding="utf-8"))
    assert '<th scope="col">difference (µs)</th>' in ours
