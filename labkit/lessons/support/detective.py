"""The judge of lesson 10: one part replaced, no race, right tokens, and the host never waits for the newest step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from labkit.analysis.races import count_races
from labkit.errors import EngineFault
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.cases import PROMPTS, Case, case, defect, recorded_in, right_engine, run_case
from labkit.lessons.support.judging import race_result
from labkit.lessons.support.parts import PartFailed, Parts, signature
from labkit.trace.events import Span, Trace

Repair = Callable[[Parts], Any]


def judge(number: int, repair: Repair, device: str) -> Result:
    """Whether the repair makes a right engine of a case's broken one."""
    parts = Parts(**defect(number).broken)
    repair(parts)
    if (refusal := _refusal(number, parts, device)) is not None:
        return refusal
    try:
        mended = run_case(number, parts, device)
    except (EngineFault, PartFailed) as error:
        return _broke_down(error)
    for complaint in _complaints(mended, parts.replaced[0]):
        return complaint
    return right(f"{defect(number).verdict}{_gain(case(number, device), mended)}")


def _gain(broken: Case, mended: Case) -> str:
    """What a repair of an engine that was right and slow brings; nothing for any other."""
    if broken.wrong or count_races(broken.trace):
        return ""
    before, after = (it.report for it in (broken, mended))
    times = before.ns_per_step / after.ns_per_step
    return (
        f" GPU active {before.gpu_active:.0%} before, {after.gpu_active:.0%} now: {1 / times - 1:+.0%} time, "
        f"{times:.2f}x."
    )


def waits(number: int, repair: Repair, device: str) -> int:
    """How often the host waits in the repaired engine's run."""
    parts = Parts(**defect(number).broken)
    repair(parts)
    return run_case(number, parts, device).report.host_waits


def _refusal(number: int, parts: Parts, device: str) -> Result | None:
    if len(parts.replaced) == 1:
        return None
    if not parts.replaced:
        return wrong(
            "No part was replaced, so the engine is as broken as before: assign a function, `parts.NAME = ...`.",
            yours=evidence(case(number, device)),
            expected=_WANTED,
        )
    names = ", ".join(f"`{name}`" for name in parts.replaced)
    return wrong(
        "Only one part has to be replaced. Say which one it is.",
        yours=f"{len(parts.replaced)} parts: {names}",
        expected="1 part",
    )


def _broke_down(error: Exception) -> Result:
    cause: BaseException = error
    while not isinstance(cause, PartFailed) and cause.__cause__ is not None:
        cause = cause.__cause__
    return wrong("The engine broke down with your part.", yours=str(cause), expected="a part that keeps its contract")


_WANTED = "no race, right tokens, and no host wait for the newest step"


def evidence(it: Case) -> str:
    """What the instruments say about an engine, in a line."""
    races, late = count_races(it.trace), len(stalls(it.trace)) - len(stalls(right_engine(it.device).trace))
    tokens = f"{len(it.wrong)} of {len(PROMPTS)} requests wrong" if it.wrong else "right tokens"
    return f"{races} races, {tokens}, " + (f"{late} host waits for the newest step" if late > 0 else "no needless wait")


def _complaints(mended: Case, name: str) -> Iterator[Result]:
    """What is still wrong, the cause before its consequences."""
    yours = f"{signature(name)} replaced: "
    if (race := race_result(mended.trace, yours + evidence(mended), "right tokens")) is not None:
        yield race
    if mended.misfits:
        step, replayed, needed = mended.misfits[0]
        spans = [span for span in mended.trace.step(step) if span.kind == "graph"]
        yield wrong(
            f"Step {step} replays {replayed}, which was captured for something else; it needs {needed}.",
            yours=f"{yours}{len(mended.misfits)} wrong replays",
            expected="graphs whose key says everything that a capture bakes in",
            spans=spans,
        )
    if mended.wrong:
        yield _wrong_tokens(mended, yours)
    yield from _slow(mended, yours)
    yield from _never_replayed(mended, yours)


def _wrong_tokens(mended: Case, yours: str) -> Result:
    request, place = min(mended.wrong.items(), key=lambda it: (it[1], it[0]))
    got, wanted = mended.run.tokens[request][place], mended.reference.tokens[request][place]
    return wrong(
        f"Everything is ordered, and {len(mended.wrong)} requests are wrong: request {request} first, at its token "
        f"{place}.",
        yours=yours + (f"token {got}" if got != wanted else "another log-probability"),
        expected=f"token {wanted}" if got != wanted else "that of the synchronous engine",
    )


def _slow(mended: Case, yours: str) -> Iterator[Result]:
    found, allowed = stalls(mended.trace), len(stalls(right_engine(mended.device).trace))
    if len(found) > allowed:
        yield wrong(
            "Right, and in turns again: the host waits for the newest step, so the GPU has nothing to do when it ends.",
            yours=f"{yours}{len(found)} waits for the newest step",
            expected=f"{allowed}: the last step's",
            spans=found,
        )


def _never_replayed(mended: Case, yours: str) -> Iterator[Result]:
    replays, wanted = (sum(1 for _ in it.trace.of_kind("graph")) for it in (mended, right_engine(mended.device)))
    if replays < wanted:
        yield wrong(
            "Right, and most steps are captured anew instead of replayed: the key says more than a capture bakes in.",
            yours=f"{yours}{replays} replays",
            expected=f"{wanted} replays",
        )


def stalls(trace: Trace) -> list[Span]:
    """The calls in which the host waits for the newest step on the compute stream: nothing is queued behind it.

    A wait for an upload is none of these: uploads run beside the kernels.
    """
    newest, found = -1, []
    for span in trace.spans:
        if span.lane == "compute":
            newest = max(newest, span.step)
        elif (span.kind == "synchronize" or (span.blocking and span.lane == "D2H")) and _waits_for(trace, span, newest):
            found.append(span)
    return found


def _waits_for(trace: Trace, span: Span, newest: int) -> bool:
    if span.kind != "synchronize":
        return span.step == newest
    if span.event:
        recorded = None if span.event.startswith("h2d") else recorded_in(trace, span)
        return recorded is not None and recorded == newest
    return span.stream != "h2d"
