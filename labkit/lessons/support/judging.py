"""What the judges of streams and events have in common: a race as a result, a value of the wrong type, host waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from labkit.analysis.happens_before import HappensBefore
from labkit.analysis.races import AccessReport, Race, check
from labkit.errors import EngineFault
from labkit.lessons.result import Result, right, wrong
from labkit.trace.events import DEVICE_KINDS, Span, Trace


def race_result(trace: Trace, outcome: str, wanted: str, missing: Callable[[Race], str] | None = None) -> Result | None:
    """The first race of a trace as a result that says what is missing; None without one.

    Args:
        outcome: what the answer gave, beside the races. ``wanted``: what it should have given.
        missing: what would order the race, in the words that the lesson has so far; without it the checker's own,
            which speak of events.
    """
    races = check(trace).races
    if not races:
        return None
    race = races[0]
    near = "".join(f" Nearly: {_in_cell(sentence)}." for sentence in race.near_misses[:1])
    count = f"{len(races)} races" if len(races) > 1 else "1 race"
    return wrong(
        f"Nothing makes {side(race.second)} wait until {side(race.first)} is done.{near}",
        yours=f"{count}, {outcome}",
        expected=f"no race, {wanted}. Missing: {missing(race) if missing else race.missing_edge}",
        spans=spans_of(trace, race),
    )


def side(access: AccessReport) -> str:
    """One side of a race in a few words; the line where a learner's cell has it."""
    who = "the host" if access.stream == "host" else f"`{access.operation}` on {access.stream}"
    line = access.source.removeprefix("cell:") if access.source.startswith("cell:") else ""
    where = f" (line {line} of your cell)" if line else ""
    return f"{who}, which {'writes' if access.write else 'reads'} {access.buffer}{where},"


def spans_of(trace: Trace, race: Race) -> list[Span]:
    """The spans of both sides of a race, in the step of its example."""
    names = {race.first.operation, race.second.operation}
    steps = {race.first.step, race.second.step}
    return [s for s in trace.spans if s.name in names and s.step in steps and s.kind != "phase"]


def number_result(value: Any, wanted: str) -> Result | None:
    """A complaint about an answer that did not return a number; None for one that did."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    forgot = " Is there a `return` in front of the last line?" if value is None else ""
    return wrong(f"Your function returned no number.{forgot}", yours=_short(value), expected=wanted)


def value_result(value: float, wanted: float) -> Result | None:
    """A complaint about a wrong value of an answer that has no race; None for the right one."""
    if value == wanted:
        return None
    return wrong("Everything is ordered, and the value is wrong.", yours=f"{value:g}", expected=f"{wanted:g}")


def host_waits(trace: Trace) -> list[Span]:
    """The calls in which the host waited: ``synchronize``, and blocking copies."""
    return [span for span in trace.spans if span.kind == "synchronize" or span.blocking]


def ordered(trace: Trace, first: str, second: str) -> bool:
    """Whether the program orders the latest two device operations of these names, whichever comes first.

    What happened one after the other is not ordered by that, so the verdict is the same on every machine.
    """
    order, latest = HappensBefore(trace), {}
    for span in trace.spans:
        if span.kind not in DEVICE_KINDS:
            order.call(span)
            continue
        agent, clock = order.operation(span)
        latest[span.name] = agent, clock.copy()
        order.after_operation(span)
    (agent, clock), (other_agent, other_clock) = latest[first], latest[second]
    return other_clock[agent] >= clock[agent] or clock[other_agent] >= other_clock[other_agent]


def judged(complaints: Iterable[Result | None], says: str) -> Result:
    """The first complaint, or that the answer is right; what comes after a complaint is not looked at."""
    for complaint in complaints:
        if complaint is not None:
            return complaint
    return right(says)


def unwrapped(run: Callable[[], Any]) -> Any:
    """What ``run`` returns; the learner's own exception instead of the engine's fault around it."""
    try:
        return run()
    except EngineFault as fault:
        raise fault.__cause__ or fault from None


def _in_cell(sentence: str) -> str:
    """``x is recorded too early (cell:5)`` with the line of the cell in words, and without a place in the engine."""
    sentence = re.sub(r"\(cell:(\d+)\)", r"(line \1 of your cell)", sentence)
    return re.sub(r" \(\w+\.py:\d+\)", "", sentence)


def _short(value: Any, width: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."
