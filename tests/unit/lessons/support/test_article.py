"""Twenty steady steps of the article's experiment: what they are cut from, and that they are steady."""

from __future__ import annotations

from labkit.analysis.comparison import step_ends
from labkit.analysis.occupancy import report
from labkit.lessons.support.article import FIRST, LAST, ROWS, article_run, cut, steady
from labkit.trace.events import Span, Trace


def test_every_step_of_the_window_decodes_all_rows_with_the_articles_mean_context() -> None:
    run = article_run("virtual", "cuda_graphs")
    inside = [step for step in run.steps if FIRST <= step.step <= LAST]
    assert {step.decode_rows for step in inside} == {len(step.rows) for step in inside} == {ROWS}
    contexts = [row.start + row.count for step in inside for row in step.rows]
    article = 128 + 8192 / 2
    assert abs(sum(contexts) / len(contexts) / article - 1) < 0.01

    trace = steady(run)
    ends = step_ends(run.trace)
    assert (trace.start_ns, trace.end_ns) == (ends[FIRST], ends[LAST])
    assert list(step_ends(trace)) == list(range(LAST - FIRST))
    assert min(span.step for span in trace.spans) == 0


def test_in_turns_the_steps_have_the_articles_length_and_idle_share() -> None:
    numbers = report(steady(article_run("virtual", "default_stream")))
    assert abs(numbers.gpu_active - 0.76) < 0.005
    assert abs(numbers.window_ns / (LAST - FIRST) / 36.7e6 - 1) < 0.01


def test_a_cut_span_ends_at_the_edge_and_is_not_busy_longer() -> None:
    spans = (
        Span(0, "kernel", "a", "compute", 0, 100, busy_ns=100),
        Span(1, "kernel", "b", "compute", 100, 200, busy_ns=40),
        Span(2, "kernel", "c", "compute", 300, 400, busy_ns=100),
    )
    trace = cut(Trace(spans), 50, 150)
    assert [(s.start_ns, s.end_ns, s.busy_ns) for s in trace.spans] == [(50, 100, 50), (100, 150, 40)]
