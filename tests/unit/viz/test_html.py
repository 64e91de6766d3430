"""The page: one file, nothing fetched, everything in it twice, as picture and as table."""

import re

import pytest

from labkit.analysis.occupancy import report
from labkit.errors import InvalidArgument
from labkit.trace.events import Span, Trace
from labkit.viz import save_html, table
from tests.unit.synthetic import async_trace


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
