from __future__ import annotations

import plotly.graph_objects as go
import pytest

from labkit.trace.events import DEVICE_KINDS, Trace
from labkit.viz.panels.live_figure import live_figure
from labkit.viz.panels.running import Running


@pytest.fixture(scope="module")
def flipped() -> Running:
    running = Running(5)
    running.advance(10)
    running.want(events=False)
    running.advance(2)
    return running


def test_bars_are_the_spans_in_ms_since_the_start(flipped: Running) -> None:
    figure = go.Figure(live_figure(flipped.trace, ()))
    drawn = {(t.name, *bar) for t in figure.data if t.type == "bar" and t.base for bar in zip(t.base, t.x, strict=True)}
    for span in flipped.trace.spans:
        if span.kind == "phase" or span.kind in DEVICE_KINDS:
            kind = f"{span.lane} copy" if span.kind == "copy" else span.name if span.kind == "phase" else span.kind
            assert (kind, span.start_ns / 1000 / 1000, span.duration_ns / 1000 / 1000) in drawn


def test_the_axis_ends_where_the_run_stands(flipped: Running) -> None:
    low, high = go.Figure(live_figure(flipped.trace, ())).layout.xaxis.range
    assert (low, high) == (flipped.trace.start_ns / 1e6, flipped.trace.end_ns / 1e6)


def test_a_flip_in_view_is_a_line_with_its_name(flipped: Running) -> None:
    (flip,) = flipped.flips
    line = next(trace for trace in go.Figure(live_figure(flipped.trace, flipped.flips)).data if trace.name == "flip")
    assert line.x[:2] == (flip.start_ns / 1e6,) * 2
    assert "<b>events off</b>" in line.text[1]


def test_a_flip_that_has_scrolled_out_is_gone(flipped: Running) -> None:
    (flip,) = flipped.flips
    late = Trace(tuple(span for span in flipped.trace.spans if span.start_ns > flip.end_ns))
    line = next(trace for trace in go.Figure(live_figure(late, flipped.flips)).data if trace.name == "flip")
    assert not line.x


def test_before_the_first_step_it_is_empty() -> None:
    figure = go.Figure(live_figure(Trace(()), ()))
    assert not [trace for trace in figure.data if trace.type == "bar"]
