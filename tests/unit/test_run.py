"""What a generate call returns."""

import pytest

from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.model.toy import ToyModel


@pytest.fixture(scope="module")
def run():
    with Engine(ToyModel(), switches="carry_over") as engine:
        return engine.generate(["<b>a</b>", [1, 2]], max_new_tokens=4)


def test_fields_are_in_the_order_of_the_prompts(run):
    assert run.prompts == [list(b"<b>a</b>"), [1, 2]]
    assert [len(tokens) for tokens in run.tokens] == [4, 4]
    assert run.texts == [ToyModel().decode(tokens) for tokens in run.tokens]
    assert run.finish_reasons == ["length", "length"]
    assert run.logprobs == [[], []]
    assert len(run) == 2


def test_counts_agree_with_the_trace(run):
    assert run.stats["steps"] == 4
    assert (run.stats["overruns"], run.stats["preemptions"]) == (0, 0)
    assert len({span.step for span in run.trace.spans if span.lane == "compute"}) == 4


def test_a_report_of_the_trace(run):
    report = run.report()
    assert 0 < report.gpu_active < 1
    assert report.window_ns > 0


def test_no_report_without_a_trace():
    with Engine(ToyModel(), trace=False) as engine:
        run = engine.generate([[1]], max_new_tokens=1)
    assert run.trace is None
    with pytest.raises(InvalidArgument, match="build the engine with trace=True"):
        run.report()


def test_it_shows_itself(run):
    assert repr(run) == (
        "Run(2 requests, 8 tokens, 4 steps, switches: streams, events, lookahead, double_buffering, carry_over)"
    )
    html = run._repr_html_()
    assert "double_buffering" in html
    assert all(f">{text}<" in html for text in run.texts)
    assert html.count(">length<") == 2


def test_texts_are_escaped_in_html(run):
    from dataclasses import replace

    html = replace(run, texts=["<script>", "a & b"])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a &amp; b" in html
