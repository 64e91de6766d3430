"""What a learner reads: in a terminal, and in a notebook."""

from __future__ import annotations

import pytest

from labkit.lessons.result import Result, Score, Text, failure, right, wrong
from labkit.trace.events import Span
from tests.unit.synthetic import async_trace


@pytest.fixture(scope="module")
def spans() -> list[Span]:
    return list(async_trace().spans)


def test_a_pass_is_one_line():
    result = right("Well done.").of("4.1", "Three edges")
    assert result and result.verdict == "passed"
    assert repr(result) == "4.1 Three edges: passed. Well done."


def test_a_refusal_shows_yours_expected_and_the_spans(spans):
    result = wrong("Too many waits.", yours=3, expected=1, spans=spans[:2]).of("4.1", "Three edges")
    assert not result and result.verdict == "not yet"
    lines = repr(result).splitlines()
    assert lines[:3] == ["4.1 Three edges: not yet. Too many waits.", "  yours:    3", "  expected: 1"]
    assert [line.split()[:2] for line in lines[3:]] == [[span.lane, span.name.split()[0]] for span in spans[:2]]


def test_no_more_than_eight_spans_are_shown(spans):
    assert len(spans) > 8
    assert len(repr(wrong("x", yours=1, expected=2, spans=spans)).splitlines()) == 3 + 8


def test_times_are_in_microseconds(spans):
    span = spans[0]
    shown = repr(wrong("x", yours=1, expected=2, spans=[span])).splitlines()[-1]
    assert shown.endswith(f"{span.start_ns / 1000:,.1f} {span.end_ns / 1000:,.1f}")


def test_the_notebook_s_form_says_the_same_and_escapes(spans):
    html = wrong("a < b & c", yours="<b>", expected="x", spans=spans[:1]).of("1.1", "A & B")._repr_html_()
    assert "a &lt; b &amp; c" in html and "&lt;b&gt;" in html and "A &amp; B" in html
    assert "not yet" in html and "&#10007;" in html and "start, us" in html
    assert html.count("<table>") == html.count("</table>") == 2
    assert "<table>" not in right("Fine.")._repr_html_()


def test_names_between_backquotes_are_code_on_a_page():
    html = wrong("`a<b` waits.", yours="`x`", expected="one ` alone")._repr_html_()
    assert "<code>a&lt;b</code> waits." in html and "<code>x</code>" in html and "one ` alone" in html


def test_a_result_is_true_if_it_passed():
    assert bool(Result(True, "")) and not bool(Result(False, ""))


def test_failure_tells_the_answer_s_error_from_the_check_s():
    def answer() -> None:
        raise KeyError("x")

    assert "raised KeyError at line" in raised(answer, answer).says
    other = raised(lambda: [][1], answer)
    assert "raised" not in other.says and "IndexError" in other.says
    assert other.yours == "list index out of range"


def raised(function, answer) -> Result:
    try:
        function()
    except Exception as error:
        return failure(error, answer)
    raise AssertionError("nothing raised")


def test_an_error_without_a_message_is_named():
    def answer() -> None:
        raise ValueError

    assert raised(answer, answer).yours == "ValueError()"


def test_a_score_says_what_the_solution_needs():
    assert repr(Score("5.2", 12.5, 10.0, "us idle")) == "5.2: 12.5 us idle; the solution needs 10 us idle"
    assert (
        repr(Score("5.2", None, 10.0, "us")) == "5.2: no score yet, the answer does not pass; the solution needs 10 us"
    )


def test_a_text_is_markdown_and_prints_as_itself():
    assert repr(Text("**a**")) == Text("**a**")._repr_markdown_() == "**a**"


def test_a_long_answer_is_shortened_and_says_so() -> None:
    result = wrong("no", yours=list(range(100_000)), expected="a few")
    assert len(repr(result)) < 2_000
    assert result.yours.startswith("[0, 1, 2")
    assert result.yours.endswith("characters more)")
    assert wrong("no", yours="x" * 1200, expected="y").yours == "x" * 1200
