"""Taking what has ended from a recording that goes on."""

from __future__ import annotations

from typing import Any

from labkit import Engine
from labkit.trace.events import DEVICE_KINDS, Span, Trace


def live(rung: str) -> Engine:
    engine = Engine.from_pretrained("toy", switches=rung, profile="article-8b")
    engine.submit([1, 2, 3, 4], max_new_tokens=8)
    return engine


def parts(engine: Engine) -> list[Trace]:
    taken = []
    while engine.busy:
        engine.step()
        taken.append(engine.device.take_ended())
    engine.device.inner.synchronize()
    return [*taken, engine.device.take_ended()]


def facts(span: Span, zero_ns: int) -> tuple[Any, ...]:
    return span.kind, span.name, span.step, span.start_ns - zero_ns, span.end_ns - zero_ns, span.issued_ns - zero_ns


def test_the_parts_hold_the_spans_and_edges_of_the_whole_recording() -> None:
    with live("carry_over") as engine:
        spans = [span for part in parts(engine) for span in part.spans]
    with live("carry_over") as engine:
        while engine.busy:
            engine.step()
        whole = engine.device.take()
    zero_ns = min(span.start_ns for span in spans)
    spans.sort(key=lambda span: span.id)
    assert [facts(span, zero_ns) for span in spans[: len(whole)]] == [facts(span, 0) for span in whole.spans]


def test_a_part_holds_nothing_that_still_runs_and_waits_for_nothing() -> None:
    with live("carry_over") as engine:
        engine.step()
        now = engine.device.now_ns()
        part = engine.device.take_ended()
        assert engine.device.now_ns() == now
        assert all(0 <= span.start_ns <= span.end_ns <= now for span in part.spans)
        launched = {span.step for span in part.spans if span.kind == "launch"}
        ran = {span.step for span in part.spans if span.kind in DEVICE_KINDS and span.lane == "D2H"}
    assert launched == {0, 1}, "step 1 is in flight when step 0's tokens are known"
    assert ran == {0}


def test_ids_count_on_and_edges_name_spans_of_this_part_or_another() -> None:
    with live("carry_over") as engine:
        taken = parts(engine)
    ids = [span.id for part in taken for span in part.spans]
    assert sorted(ids) == list(range(len(ids)))
    ends = {end for part in taken for edge in part.edges for end in (edge.before, edge.after)}
    assert ends <= set(ids)
    assert len(taken[0].edges) > 0
