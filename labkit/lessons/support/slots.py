"""What judges the answers of lesson 05 about the engine's slots, and engines whose slots share a buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from labkit.analysis.races import AccessReport, check
from labkit.device.costs import Link, Profile, load_profile, scaled_host
from labkit.engine.batch import Batch
from labkit.engine.core import EngineCore
from labkit.engine.slots import Slot
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.judging import race_result
from labkit.lessons.support.patched import Refusal, right_tokens, run_patched
from labkit.run import Run

Answer = Callable[..., Any]
BUFFERS = ("inputs_host", "inputs_dev", "outputs_dev", "outputs_host")


def share(core: EngineCore, *buffers: str) -> None:
    """Slot B gets these buffers of slot A instead of its own."""
    a, b = core.slots.slots
    for name in buffers:
        core.device.free(getattr(b, name))
        setattr(b, name, getattr(a, name))
    if "inputs_host" in buffers:
        b.host = a.host
    if "inputs_dev" in buffers:
        b.dev = a.dev


# -- 5.3 -------------------------------------------------------------------------------------------------------------


class _Turns:
    """In place of ``SlotSet.next``: asks the learner."""

    def __init__(self, core: EngineCore, answer: Answer) -> None:
        self.core, self.answer = core, answer
        self.used: list[Slot] = []

    def __call__(self) -> Slot:
        slots: tuple[Slot, ...] = self.core.slots.slots
        flying = self.used[-self.core.scheduler.in_flight + 1 :] if self.core.scheduler.in_flight > 1 else []
        chosen = self.answer(slots, list(flying))
        if not any(chosen is slot for slot in slots):
            raise Refusal(
                wrong(
                    "The answer has to be one of the slots.", yours=repr(chosen)[:80], expected="slots[0] or slots[1]"
                )
            )
        self.used.append(chosen)
        return chosen


def judge_free_slot(answer: Answer, device: str) -> Result:
    """Rung 4 with the learner's turns: no race, nothing overwritten."""

    def change(core: EngineCore) -> None:
        core.slots.next = _Turns(core, answer)  # type: ignore[method-assign]

    try:
        run = run_patched(device, "double_buffering", change)
    except Refusal as refusal:
        return refusal.result
    assert run.trace is not None
    order = "".join(step.slot for step in run.steps)
    race = race_result(run.trace, f"slots {order}", "A and B in turn")
    if race is not None:
        return race
    return right(f"Slots {order}: no step fills a slot that another one in flight still uses.")


# -- 5.4 -------------------------------------------------------------------------------------------------------------


class _GuardedFill:
    """In place of ``EngineCore.fill``: the learner's wait first."""

    def __init__(self, core: EngineCore, answer: Answer) -> None:
        self.core, self.fill, self.answer = core, core.fill, answer

    def __call__(self, slot: Slot, batch: Batch) -> None:
        with self.core.device.phase("guard", step=batch.step, slot=slot.name):
            self.answer(slot)
        self.fill(slot, batch)


_OWN_UPLOAD = (
    "You waited for the event of the slot that is being filled: its upload was two steps ago. The upload at stake, "
    "which may still read the shared buffer, is the other slot's."
)


def judge_before_fill(answer: Answer, device: str) -> Result:
    """Rung 5 with one pinned input buffer: no race, the right tokens, and no wait for more than the upload."""

    def change(core: EngineCore) -> None:
        share(core, "inputs_host")
        core.fill = _GuardedFill(core, answer)  # type: ignore[method-assign]

    expected = run_patched(device, "default_stream")
    run = run_patched(device, "carry_over", change, profile=slow_copies())
    assert run.trace is not None
    waits = [s for s in run.trace.of_kind("synchronize") if s.phase == "guard"]
    race = race_result(run.trace, right_tokens(run.tokens, expected.tokens), "every upload is over before the refill")
    if race is not None:
        own = any(s.event == f"h2d_done[{s.slot}]" for s in waits)
        return replace(race, says=_OWN_UPLOAD) if own else race
    longer = [s for s in waits if not s.event.startswith("h2d_done")]
    if longer:
        return wrong(
            f"No race, but {longer[0].name}: that is more than the upload, so the host no longer works one step ahead.",
            yours=f"GPU active {run.report().gpu_active:.1%}",
            expected="a wait for the upload alone",
            spans=longer,
        )
    return right(f"One pinned buffer, {len(waits)} waits for uploads and for nothing more, and all tokens are right.")


# -- for the notebook ------------------------------------------------------------------------------------------------


def slow_copies() -> Profile:
    """The machine of the course with copies that take 12 ms up and 30 ms down."""
    return replace(load_profile("article-8b"), h2d=Link(latency_ns=12_000_000), d2h=Link(latency_ns=30_000_000))


def slow_host() -> Profile:
    """The machine of the course with a host that takes twenty times as long for everything."""
    return scaled_host(load_profile("article-8b"), 20)


def run_sharing(device: str, *buffers: str, profile: str | Profile = "article-8b") -> Run:
    """A run of rung 4, ``double_buffering``, in which slot B uses these buffers of slot A."""
    return run_patched(device, "double_buffering", lambda core: share(core, *buffers), profile=profile)


def races_of(run: Run) -> list[str]:
    """The races of a run in a few words each."""
    assert run.trace is not None
    return [f"{race.kind}: {_who(race.first)}, then {_who(race.second)}" for race in check(run.trace).races]


def _who(side: AccessReport) -> str:
    verb = "writes" if side.write else "reads"
    return f"{'the host' if side.stream == 'host' else side.operation} {verb}"
