"""Lesson 04: record, wait, synchronize."""

from __future__ import annotations

from collections.abc import Callable

from labkit.analysis.races import check
from labkit.lessons.exercise import Exercise
from labkit.lessons.playground import Playground
from labkit.lessons.result import Result, right, wrong


def _start(play):
    # 4.1: add what orders the four lines below
    play.write(21)
    play.upload()
    play.double()
    play.download()
    return play.read()


def _with_three_edges(play):
    uploaded, doubled, downloaded = play.event("uploaded"), play.event("doubled"), play.event("downloaded")
    play.write(21)
    play.upload()
    uploaded.record(play.h2d)
    play.compute.wait_event(uploaded)
    play.double()
    doubled.record(play.compute)
    play.d2h.wait_event(doubled)
    play.download()
    downloaded.record(play.d2h)
    downloaded.synchronize()
    return play.read()


def _judge_three_edges(answer: Callable[[Playground], float], device: str) -> Result:
    play = Playground(device)
    value = answer(play)
    trace = play.trace()
    report = check(trace)
    host_waits = list(trace.of_kind("synchronize"))
    if report.races:
        race = report.races[0]
        spans = [span for span in trace.spans if span.name in (race.first.operation, race.second.operation)]
        return wrong(
            f"Nothing orders {race.second} after {race.first}.",
            yours=f"{len(report.races)} races, the host read {value:g}",
            expected=f"no race, 42. Missing: {race.missing_edge}",
            spans=spans,
        )
    if value != 42:
        return wrong("The order is right and the value is not.", yours=f"{value:g}", expected="42")
    if len(host_waits) > 1:
        return wrong(
            "The host waits more often than it has to.", yours=len(host_waits), expected="1 wait", spans=host_waits
        )
    return right("Two waits on the device and one of the host order all four operations.")


three_edges = Exercise(
    number="4.1",
    name="three_edges",
    title="Three edges",
    task="""
    `play.upload()`, `play.double()` and `play.download()` go to three streams, and nothing orders them. Add the events
    that do, so that the host reads 42. Let the host wait once.
    """,
    starter=_start,
    solutions=(_with_three_edges,),
    hints=(
        "Which operation writes the bytes that the next one reads? There are three such pairs; the last reader is the "
        "host.",
        "An event is recorded on the stream of the writer, after it: `uploaded.record(play.h2d)`. The stream of the "
        "reader waits for it, before the reader is enqueued: `play.compute.wait_event(uploaded)`.",
        "The host waits with `downloaded.synchronize()`; `uploaded`, `doubled` and `downloaded` are three events.",
    ),
    judge=_judge_three_edges,
)
