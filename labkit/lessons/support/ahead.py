"""Whether a learner's loop is one step ahead: what it enqueues before it waits, and how it begins and ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.analysis.occupancy import report
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.loops import Drive, Phases, drive, judge_outcome, judge_phases, order_of
from labkit.trace.events import PHASES


def judge_look_ahead(answer: Callable[[Phases], Any], device: str) -> Result:
    mine, engines = drive(answer, device, "carry_over")
    if mine.mistake:
        return wrong(mine.mistake, yours=order_of(mine, 0), expected=" - ".join(PHASES))
    drain = _judge_end(mine, engines)
    if drain is not None:
        return drain
    for step in range(mine.steps):
        for result in (judge_phases(mine, step), _judge_pair(mine, engines, step)):
            if result is not None:
                return result
    outcome = judge_outcome(mine, engines)
    if outcome is not None:
        return outcome
    return right(f"{mine.steps} steps, each enqueued before the one in flight was settled; every token is right.")


def _judge_end(mine: Drive, engines: Drive) -> Result | None:
    """A loop that ended with a step in flight, or with requests that still wait."""
    last = mine.steps - 1
    if mine.ended and mine.steps and mine.at("settle", last) < 0:
        says = f"The drain is missing: the loop ended, and step {last} was enqueued and never settled."
        return wrong(
            says, yours=order_of(mine, last), expected=" - ".join(PHASES), spans=mine.spans(("download", last))
        )
    if mine.ended and mine.waiting and mine.steps < engines.steps:
        says = (
            f"plan() found nothing to do while step {last} was in flight, and the loop took that for the end. Once "
            f"that step was settled its requests left, and the {mine.waiting} that waited could have had their rows."
        )
        return wrong(says, yours=f"{mine.steps} steps", expected=f"{engines.steps} steps")
    return None


def _judge_pair(mine: Drive, engines: Drive, step: int) -> Result | None:
    """Whether step N + 1 was enqueued before step N was settled, where the engine's own loop does that."""
    settled, after = mine.at("settle", step), step + 1
    spans = mine.spans(("settle", step), ("plan", after), ("download", after))
    if not 0 <= engines.at("download", after) < engines.at("settle", step):
        return None
    if mine.at("plan", after) > settled:
        return wrong(
            f"Step {after} was planned after step {step} was settled: host and GPU take turns.",
            yours=f"settle {step}, then plan {after}",
            expected=f"plan {after} to download {after}, then settle {step}",
            spans=spans,
        )
    if mine.at("download", after) > settled:
        return wrong(
            f"Step {after} was planned before step {step} was settled and enqueued after it: when step {step} ends, "
            "the GPU has nothing to do.",
            yours=f"settle {step} before download {after}",
            expected=f"plan {after} to download {after}, then settle {step}",
            spans=spans,
        )
    if 0 <= mine.at("plan", step + 2) < settled:
        return wrong(
            f"Step {step + 2} was planned before step {step} was settled: two steps ahead, with two slots. Its inputs "
            f"go into the slot of step {step}.",
            yours=f"plan {step + 2} before settle {step}",
            expected=f"settle {step} before plan {step + 2}",
            spans=mine.spans(("settle", step), ("fill", step + 2)),
        )
    return None


def idle_ms(answer: Callable[[Phases], Any], device: str) -> float:
    return report(drive(answer, device, "carry_over")[0].trace).idle_ns / 1e6
