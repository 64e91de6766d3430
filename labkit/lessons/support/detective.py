"""The judge of lesson 10: one part replaced, no race, right tokens, and the host never waits for the newest step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from labkit.analysis.races import count_races
from labkit.errors import EngineFault
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.cases import PROMPTS, SIZES, Case, case, defect, recorded_in, right_engine, run_case
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
    broken = case(number, device)
    for complaint in _complaints(mended, parts.replaced[0]):
        same = evidence(mended) == evidence(broken)
        return replace(complaint, says=f"The same fault as before. {complaint.says}") if same else complaint
    return right(f"{defect(number).verdict}{_gain(broken, mended)}")


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
    return f"{_number(count_races(it.trace), 'race')}, {_outcome(it)}"


def _outcome(it: Case) -> str:
    late = len(stalls(it.trace)) - len(stalls(right_engine(it.device).trace))
    tokens = f"{len(it.wrong)} of {len(PROMPTS)} requests wrong" if it.wrong else "right tokens"
    return f"{tokens}, " + (f"{_number(late, 'host wait')} for the newest step" if late > 0 else "no needless wait")


def _number(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'s' * (count != 1)}"


def _complaints(mended: Case, name: str) -> Iterator[Result]:
    """What is still wrong, the cause before its consequences."""
    yours = f"{signature(name)} replaced: "
    yield from _wrong_graph(mended, yours)
    if (
        race := race_result(mended.trace, f"{signature(name)} replaced, {_outcome(mended)}", "right tokens")
    ) is not None:
        yield race
    yield from _stray_padding(mended, yours)
    if mended.wrong:
        yield _wrong_tokens(mended, yours)
    yield from _never_replayed(mended, yours)
    yield from _slow(mended, yours)


def _wrong_graph(mended: Case, yours: str) -> Iterator[Result]:
    if mended.misfits:
        step, replayed, needed = mended.misfits[0]
        yield wrong(
            f"Step {step} replays {replayed}, which was captured for something else; it needs {needed}.",
            yours=yours + _number(len(mended.misfits), "wrong replay"),
            expected="a key that says everything that a capture bakes in",
            spans=[span for span in mended.trace.step(step) if span.kind == "graph"],
        )


def _stray_padding(mended: Case, yours: str) -> Iterator[Result]:
    """A padding row that writes to any other block than the trash block."""
    for step, rows in sorted(mended.filled.items()):
        for number, row in enumerate(rows):
            if row.request < 0 and (block := row.place // SIZES.block_size) != SIZES.trash_block:
                yield wrong(
                    f"In step {step}, row {number} is padding and writes into block {block}, which requests use.",
                    yours=f"{yours}place {row.place}, block {block}",
                    expected=f"a place in block {SIZES.trash_block}, the trash block",
                )
                return


def _wrong_tokens(mended: Case, yours: str) -> Result:
    request, place = min(mended.wrong.items(), key=lambda it: (it[1], it[0]))
    got, wanted = mended.run.tokens[request][place], mended.reference.tokens[request][place]
    return wrong(
        f"Everything is ordered, and the data is wrong, first in request {request} at its token {place}.",
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
            spans=found[:3],
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
