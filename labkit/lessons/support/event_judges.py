"""The judges of lesson 04."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from labkit.analysis.races import Race
from labkit.analysis.redundant import redundant_waits, wait_name
from labkit.lessons.playground import Playground
from labkit.lessons.result import Result, wrong
from labkit.lessons.support.event_programs import Diamond, Polling, TwoSteps
from labkit.lessons.support.judging import host_waits, judged, number_result, ordered, race_result, value_result
from labkit.lessons.support.ordered_engine import Order, right_tokens, run_ordered
from labkit.trace.events import Span, Trace

# -- 4.1 ---------------------------------------------------------------------------------------------------------------


def three_edges(answer: Callable[[Playground], Any], device: str) -> Result:
    """One upload, one kernel, one download: ordered, and the host waits once."""
    play = Playground(device)
    value = answer(play)
    says = "Two waits on the device and one of the host order all four operations."
    return judged(_of_program(value, play.trace(), 42, "y_host"), says)


def _of_program(value: Any, trace: Trace, wanted: float, read: str) -> Iterator[Result | None]:
    yield number_result(value, f"{wanted:g}, as the host reads it from {read}")
    yield race_result(trace, f"the host read {value:g}", f"{wanted:g}")
    yield value_result(value, wanted)
    yield unless_read(trace, read)
    yield _one_host_wait(trace)


def unless_read(trace: Trace, buffer: str) -> Result | None:
    """A complaint if the host never reads a buffer."""
    reads = [span for span in trace.of_kind("host_read") if any(touch.buffer == buffer for touch in span.reads)]
    if reads:
        return None
    return wrong(f"The host never reads {buffer}.", yours="a value from elsewhere", expected="return play.read()")


def _one_host_wait(trace: Trace) -> Result | None:
    waits = host_waits(trace)
    if len(waits) <= 1:
        return None
    return wrong(
        "The order is right, and the host waits more often than it has to: let the streams wait for each other.",
        yours=f"{len(waits)} waits of the host",
        expected="1",
        spans=waits,
    )


# -- 4.2 ---------------------------------------------------------------------------------------------------------------


def two_in_flight(answer: Callable[..., Any], device: str) -> Result:
    """The host has the first of two results while the second step is still in flight."""
    play = TwoSteps(device)
    values = answer(play, *play.steps)
    says = "Each step has an event of its own, so the host has the first result while the second step runs."
    return judged(_of_two_steps(values, play.trace()), says)


def _of_two_steps(values: Any, trace: Trace) -> Iterator[Result | None]:
    yield _unless_two(values)
    yield race_result(trace, f"the host read {values[0]:g} and {values[1]:g}", "42 and 100")
    if tuple(values) != (42, 100):
        yield wrong("Everything is ordered, and the values are wrong.", yours=tuple(values), expected=(42, 100))
    yield unless_read(trace, "y_host")
    yield unless_read(trace, "y_host_1")
    yield _unless_both_in_flight(trace)
    yield _unless_early(trace)


def _unless_two(values: Any) -> Result | None:
    if isinstance(values, tuple | list) and len(values) == 2 and all(number_result(v, "") is None for v in values):
        return None
    return wrong("Your function has to return both results.", yours=repr(values), expected="(42, 100)")


def _first_read(trace: Trace) -> Span:
    return next(span for span in trace.of_kind("host_read") if span.reads[0].buffer == "y_host")


def _unless_both_in_flight(trace: Trace) -> Result | None:
    second = next((span for span in trace.of_kind("copy") if span.step == 1), None)
    read = _first_read(trace)
    if second is not None and second.id < read.id and all(second.id < span.id for span in host_waits(trace)):
        return None
    return wrong(
        "The host waits before the second step is enqueued, so the GPU runs dry between the two.",
        yours="one step in flight",
        expected="play.run(second) before the first wait of the host",
        spans=[*host_waits(trace)[:1], *([second] if second else [])],
    )


def _unless_early(trace: Trace) -> Result | None:
    """The waits before the first read must not cover the second step's download."""
    download = max(span.id for span in trace.of_kind("copy") if span.step == 1)
    for wait in host_waits(trace):
        if wait.id < _first_read(trace).id and _covers(trace, wait, download):
            return wrong(
                f"Before it reads the first result the host waits for the second step too: {_why(wait)}.",
                yours=f"the host has the first result after {wait.end_ns / 1000:,.1f} us",
                expected="a wait for the first step alone",
                spans=[wait, *(span for span in trace.of_kind("copy") if span.lane == "D2H")],
            )
    return None


def _covers(trace: Trace, wait: Span, operation: int) -> bool:
    records = [s.id for s in trace.of_kind("record") if (s.event, s.record) == (wait.event, wait.record)]
    return not wait.event or any(record > operation for record in records)


def _why(wait: Span) -> str:
    if wait.event:
        return f"`{wait.event}` was recorded again, and only its latest record (number {wait.record}) counts"
    return f"`{wait.name}` waits for all that is in it by then"


# -- 4.3 ---------------------------------------------------------------------------------------------------------------


def work_while_waiting(answer: Callable[..., Any], device: str) -> Result:
    """The host polls and works, and reads once the event is reached."""
    play = Polling(device)
    value = answer(play.landed, play.work, play.read)
    done = (
        f"did {play.pieces} pieces of work while it waited" if play.pieces else "found the result there when it asked"
    )
    says = f"The host {done}, and read after a query that answered True."
    return judged(_of_polling(value, play.trace(), play), says)


def _of_polling(value: Any, trace: Trace, play: Polling) -> Iterator[Result | None]:
    yield number_result(value, "42, from read()")
    waits = host_waits(trace)
    if waits:
        yield wrong("The host sits in `synchronize`.", yours="synchronize", expected="query", spans=waits)
    yield race_result(trace, f"the host read {value:g}", "42, read after a query that answered True")
    yield value_result(value, 42)
    yield unless_read(trace, "y_host")
    vain = [span for span in trace.of_kind("query") if span.record == 0]
    if vain and not play.pieces:
        yield wrong(
            "The host asks again and again, and does nothing in between.",
            yours=f"{len(vain)} queries answered False, 0 pieces of work",
            expected="work() after each query that answers False",
        )


# -- 4.4 ---------------------------------------------------------------------------------------------------------------


def missing_edge(answer: Order, device: str) -> Result:
    """The engine with the learner's order: rung 2's tokens, no race, one wait of the host in a step."""
    run = run_ordered(answer, device)
    assert run.trace is not None
    says = "Three streams, three edges, one wait of the host in a step, and the tokens of rung 0."
    return judged(of_engine(run.tokens, run.trace, most_waits=1), says)


def of_engine(
    tokens: list[list[int]], trace: Trace, most_waits: int, missing: Callable[[Race], str] | None = None
) -> Iterator[Result | None]:
    """Complaints about a run of the engine: races, tokens other than rung 0's, more waits of the host in a step.

    Args:
        missing: what would order a race, as in ``race_result``.
    """
    right = tokens == right_tokens()
    outcome = f"the tokens are {'right all the same' if right else 'wrong'}"
    yield race_result(trace, outcome, "and the tokens of rung 0", missing)
    if not right:
        yield wrong("No race, and the tokens are wrong.", yours=tokens[0], expected=right_tokens()[0])
    yield unless_few_waits(trace, most_waits)


def unless_few_waits(trace: Trace, most: int) -> Result | None:
    """A complaint if the host waits more than ``most`` times in a step."""
    waits, per_step = host_waits(trace), len(host_waits(trace)) / max(1, trace.steps)
    if per_step <= most:
        return None
    return wrong(
        "The order is right, and the host waits more often than it has to.",
        yours=f"{per_step:g} waits of the host in a step",
        expected=most,
        spans=[span for span in waits if span.step == waits[0].step],
    )


# -- 4.5 ---------------------------------------------------------------------------------------------------------------


def fewest_waits(answer: Callable[[Diamond], Any], device: str) -> Result:
    """A diamond of kernels, without a wait that orders nothing new."""
    play = Diamond(device)
    value = answer(play)
    trace = play.trace()
    says = f"{count_waits(trace)} waits, every one of them is needed, and `double` and `triple` can run side by side."
    return judged(_of_diamond(value, trace), says)


def _of_diamond(value: Any, trace: Trace) -> Iterator[Result | None]:
    yield number_result(value, "105, as the host reads it from y_host")
    yield race_result(trace, f"the host read {value:g}", "105")
    yield value_result(value, 105)
    yield unless_read(trace, "y_host")
    spare = redundant_waits(trace)
    if spare:
        names = ", ".join(wait.name for wait in spare)
        only_one = [wait for wait in spare if wait.needed_if]
        note = f" Not all at once: {only_one[0].name} or {only_one[0].needed_if[0]} has to stay." if only_one else ""
        yield wrong(
            f"Right, and {len(spare)} of your waits order nothing that the others do not.{note}",
            yours=f"{count_waits(trace)} waits; could go: {names}",
            expected="no wait that could go",
            spans=[span for span in trace.spans if wait_name(span) in {wait.name for wait in spare}],
        )
    yield _one_host_wait(trace)
    yield _unless_side_by_side(trace)


def _unless_side_by_side(trace: Trace) -> Result | None:
    """The two kernels that read ``x`` need nothing from each other."""
    kernels = [span.name for span in trace.of_kind("kernel")]
    if not {"double", "triple"} <= set(kernels):
        return wrong("Not all kernels are there.", yours=", ".join(kernels) or "none", expected="double, triple, add")
    if not ordered(trace, "double", "triple"):
        return None
    return wrong(
        "Right, and no wait could go, but your waits order `double` and `triple`, so the two cannot run at the same "
        "time. Both only read `x`: neither needs the other, each needs the upload.",
        yours="`double` and `triple` one after the other",
        expected="nothing between the two, so that they can run side by side",
        spans=[
            span
            for span in trace.spans
            if (span.kind == "wait" and span.stream == "side") or (span.kind == "kernel" and span.name != "add")
        ],
    )


def count_waits(trace: Trace) -> int:
    """Calls that make a stream or the host wait."""
    return sum(wait_name(span) is not None for span in trace.spans)


def diamond_us(answer: Callable[[Diamond], Any], device: str) -> float:
    """How long the diamond takes with an answer, on the device's clock."""
    play = Diamond(device)
    answer(play)
    return round(play.trace().duration_ns / 1000, 1)
