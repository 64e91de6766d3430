"""The judges of lesson 03."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from labkit.analysis.races import Race
from labkit.engine.ordering import Streams
from labkit.engine.slots import Slot
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.event_judges import of_engine, unless_read
from labkit.lessons.support.judging import host_waits, judged, number_result, race_result, value_result
from labkit.lessons.support.ordered_engine import Order, run_ordered
from labkit.lessons.support.stream_programs import CHUNKS, STREAMS, BringBack, InChunks, second_waits, two_kernels
from labkit.trace.events import DEVICE_KINDS, Trace

HOST_MOMENTS = ("before_compute", "before_download", "before_read")

# What orders a race, as far as lesson 03 knows: it has no events.


def _host_wait(race: Race) -> str:
    first, second = race.first, race.second
    verb = "writes" if second.write else "reads"
    then = f"{verb} {second.buffer}" if second.stream == "host" else f"launches `{second.operation}`"
    return f"after `{first.operation}` the host waits for {first.stream} (`synchronize`) before it {then}"


def _same_stream_or_host_wait(race: Race) -> str:
    if race.second.stream == "host":
        return _host_wait(race)
    return f"`{race.second.operation}` in the same stream as `{race.first.operation}` ({race.first.stream})"


# -- 3.1 ---------------------------------------------------------------------------------------------------------------


def must_wait(answer: Callable[[str, str], Any], device: str) -> Result:
    """The answer for every pair of kinds, against what the virtual GPU does (rules 2, 8, 9, 11 and 14)."""
    for first, second in product(STREAMS, STREAMS):
        said, measured = answer(first, second), second_waits(first, second)
        if not isinstance(said, bool):
            return wrong("The answer for a pair is True or False.", yours=repr(said), expected="True or False")
        if said != measured:
            return wrong(
                f"A is in a stream of kind {first}, B in one of kind {second}: B "
                f"{'waits for A' if measured else 'does not wait for A'}.",
                yours=f"must_wait({first!r}, {second!r}) is {said}",
                expected=str(measured),
                spans=list(two_kernels(first, second).trace().of_kind("kernel")),
            )
    return right(f"All {len(STREAMS) ** 2} pairs are as the virtual GPU does them.")


# -- 3.2 ---------------------------------------------------------------------------------------------------------------


def bring_back(answer: Callable[..., Any], device: str) -> Result:
    """The copy is enqueued, the host works, and only then it waits and reads."""
    play = BringBack(device)
    value = answer(play, play.work, play.pageable, play.y_host)
    trace = play.trace()
    return judged(
        _of_bring_back(value, trace, play), "The host worked while kernel and copy ran, and read what is there."
    )


def _of_bring_back(value: Any, trace: Trace, play: BringBack) -> Iterator[Result | None]:
    yield number_result(value, "42, as the host reads it")
    copies = [span for span in trace.of_kind("copy") if span.lane == "D2H"]
    if not copies:
        yield wrong("Nothing is copied back.", yours="no download", expected="play.download(...)")
    blocking = [span for span in copies if span.blocking]
    if blocking:
        yield wrong(
            "The host sits in the download until the data is there: its destination is pageable memory.",
            yours=f"a download to {blocking[0].writes[0].buffer}",
            expected="a download that returns at once",
            spans=blocking,
        )
    yield race_result(trace, f"the host read {value:g}", "42", _same_stream_or_host_wait)
    yield value_result(value, 42)
    yield unless_read(trace, "y_host")
    if not play.pieces:
        yield wrong("The host's own work is not done.", yours="work() was not called", expected="work()")
    yield _unless_work_between(trace, copies[0].id)


def _unless_work_between(trace: Trace, copy: int) -> Result | None:
    """The work comes after the copy was enqueued, and before the host waits."""
    waits = host_waits(trace)  # none where the answer polls an event
    work = next(span for span in trace.of_kind("phase") if span.name == "work")
    if work.id < copy:
        return wrong(
            "The host works first and enqueues the copy afterwards, so the copy begins late.",
            yours="work(), then play.download(...)",
            expected="play.download(...), then work()",
            spans=[work, *(span for span in trace.of_kind("copy") if span.lane == "D2H")],
        )
    if waits and waits[0].id < work.id:
        return wrong(
            "The host waits before it works, so it has nothing to do meanwhile.",
            yours="wait, then work()",
            expected="work(), then wait",
            spans=[waits[0], work],
        )
    return None


# -- 3.3 ---------------------------------------------------------------------------------------------------------------


def pipeline(answer: Callable[..., Any], device: str) -> Result:
    """Four chunks: right, in more than one stream, and all enqueued before the host waits."""
    play = InChunks(device)
    values = answer(play, play.chunks, play.streams)
    says = "Within a chunk its stream keeps the order, and chunks overlap: right without a single event."
    return judged(_of_pipeline(values, play.trace()), says)


def _of_pipeline(values: Any, trace: Trace) -> Iterator[Result | None]:
    wanted = [2.0 * (number + 1) for number in range(CHUNKS)]
    if not isinstance(values, list | tuple) or len(values) != CHUNKS:
        yield wrong("Your function has to return the four results.", yours=repr(values), expected=wanted)
    yield race_result(trace, f"the host read {list(values)}", f"{wanted}", _same_stream_or_host_wait)
    if list(values) != wanted:
        yield wrong("Everything is ordered, and the values are wrong.", yours=list(values), expected=wanted)
    operations = list(trace.of_kind(*DEVICE_KINDS))
    if len(operations) < 3 * CHUNKS:
        names = ", ".join(span.name for span in operations)
        yield wrong("Not all operations are there.", yours=names or "none", expected="3 for each chunk")
    used = sorted({span.stream for span in operations})
    if len(used) == 1:
        yield wrong(
            "Right, and one after the other: a single stream is a single queue, so nothing can overlap.",
            yours=f"everything in {used[0]}",
            expected="chunks in different streams",
            spans=operations[:6],
        )
    early = [span for span in host_waits(trace) if span.id < operations[-1].id]
    if early:
        yield wrong(
            "The host waits before it has enqueued everything, so the next chunk comes late.",
            yours=f"{len(early)} waits before the last operation",
            expected="enqueue all chunks, then wait",
            spans=early,
        )


def pipeline_us(answer: Callable[..., Any], device: str) -> float:
    """How long all chunks take, on the device's clock."""
    play = InChunks(device)
    answer(play, play.chunks, play.streams)
    return round(play.trace().duration_ns / 1000, 1)


# -- 3.4 ---------------------------------------------------------------------------------------------------------------


def host_order(answer: Callable[[str, Streams], Any]) -> Order:
    """An answer that is asked only where the host may have to wait, and has no events."""

    def order(moment: str, slot: Slot, streams: Streams) -> None:
        if moment in HOST_MOMENTS:
            answer(moment, streams)

    return order


def host_waits_only(answer: Callable[[str, Streams], Any], device: str) -> Result:
    """Rung 1 with host waits in between: right tokens, no race, three waits in a step."""
    run = run_ordered(host_order(answer), device)
    assert run.trace is not None
    says = "No race, and the tokens of rung 0. The host waits three times in every step."
    return judged(of_engine(run.tokens, run.trace, most_waits=len(HOST_MOMENTS), missing=_host_wait), says)


def step_ms(answer: Callable[[str, Streams], Any], device: str) -> float:
    """Time of a step with an answer, on the device's clock."""
    return round(run_ordered(host_order(answer), device).report().ns_per_step / 1e6, 2)
