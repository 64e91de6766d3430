"""A loop that a learner wrote, driven by hand on a real engine: every call of a phase is noted, and none runs for ever.

``drive`` builds an engine, hands its phases to the loop, and takes at most ``MOST_STEPS`` steps. What came out, and in
which order the phases were called, is a ``Drive``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from labkit.engine.batch import Batch
from labkit.engine.request import Request, TokenEvent
from labkit.engine.slots import Slot, SlotSet
from labkit.entry import Engine
from labkit.lessons.result import Result, wrong
from labkit.sizes import Sizes
from labkit.trace.events import PHASES, Span, Trace

MOST_STEPS = 200
SIZES = Sizes(max_rows=2, num_blocks=64, max_model_len=64)
LENGTHS = (5, 5, 4, 6)  # of four requests in two rows: the last two wait until the first two have ended


class LoopMistake(Exception):
    """A call that the engine could not have survived; its text is the sentence for the learner."""


@dataclass(frozen=True)
class Call:
    """One phase that the loop asked for; ``step`` is -1 for a plan that found nothing to do."""

    phase: str
    step: int


@dataclass
class Drive:
    """What a loop did.

    calls     the phases it called, in order
    yielded   what it yielded
    tokens    of each request
    waiting   requests that had not ended when the loop had
    ended     False where it was stopped after ``MOST_STEPS`` steps
    mistake   the sentence of a ``LoopMistake``, or empty
    """

    calls: list[Call] = field(default_factory=list)
    yielded: list[Any] = field(default_factory=list)
    tokens: list[list[int]] = field(default_factory=list)
    waiting: int = 0
    ended: bool = False
    mistake: str = ""
    trace: Trace = field(default_factory=lambda: Trace(()))

    @property
    def steps(self) -> int:
        """How many steps were planned."""
        return sum(call.phase == "plan" and call.step >= 0 for call in self.calls)

    def at(self, phase: str, step: int) -> int:
        """Where in the order of calls that phase of that step stands, -1 if it was never called."""
        call = Call(phase, step)
        return self.calls.index(call) if call in self.calls else -1

    def spans(self, *wanted: tuple[str, int]) -> list[Span]:
        """The phases of the trace by (name, step)."""
        return [span for span in self.trace.of_kind("phase") if (span.name, span.step) in wanted]


class Phases:
    """The engine as a loop sees it: ``slots`` and the six phases."""

    def __init__(self, engine: Engine, calls: list[Call]) -> None:
        self._core, self._calls = engine.core, calls
        self.slots: SlotSet = engine.core.slots

    def plan(self) -> Batch | None:
        batch = self._core.plan()
        self._note("plan", batch.step if batch is not None else -1)
        if len(self._calls) > MOST_STEPS * len(PHASES):
            raise LoopMistake("The loop never ends: plan() returns None when there is nothing left to do.")
        return batch

    def fill(self, slot: Slot, batch: Batch) -> None:
        self._run("fill", slot, batch)

    def upload(self, slot: Slot, batch: Batch) -> None:
        self._run("upload", slot, batch)

    def compute(self, slot: Slot, batch: Batch) -> None:
        self._run("compute", slot, batch)

    def download(self, slot: Slot, batch: Batch) -> None:
        self._run("download", slot, batch)

    def settle(self, slot: Slot, batch: Batch) -> list[TokenEvent]:
        events: list[TokenEvent] = self._run("settle", slot, batch)
        return events

    def _run(self, phase: str, slot: Slot, batch: Batch) -> Any:
        if not isinstance(slot, Slot) or not isinstance(batch, Batch):
            raise LoopMistake(f"{phase}(slot, batch) takes a slot from engine.slots.next() and the batch from plan().")
        if Call(phase, batch.step) in self._calls:
            raise LoopMistake(f"Step {batch.step} went through {phase} twice; each phase runs once a step.")
        self._note(phase, batch.step)
        return getattr(self._core, phase)(slot, batch)

    def _note(self, phase: str, step: int) -> None:
        self._calls.append(Call(phase, step))


def drive(
    loop: Callable[[Phases], Any], device: str, switches: int | str, *, profile: str = "article-8b"
) -> tuple[Drive, Drive]:
    """Run four requests in two rows with a loop, and with the engine's own: (the loop's, the engine's)."""
    return _drive(loop, device, switches, profile), _drive(None, device, switches, profile)


def _drive(loop: Callable[[Phases], Any] | None, device: str, switches: int | str, profile: str) -> Drive:
    done = Drive()
    with Engine.from_pretrained("toy", switches=switches, device=device, profile=profile, sizes=SIZES) as engine:
        requests = [engine.submit([7 * n + 1, n + 2], max_new_tokens=length) for n, length in enumerate(LENGTHS)]
        phases: Any = Phases(engine, done.calls)
        made: Any = engine.core._new_loop(phases) if loop is None else loop(phases)
        if not hasattr(made, "__next__"):
            done.mistake = "This has to be a generator: the loop yields the tokens of each step as soon as it has them."
            return done
        try:
            _take(made, done)
        except LoopMistake as mistake:
            done.mistake = str(mistake)
        _note_outcome(done, engine, requests)
    return done


def _take(made: Any, done: Drive) -> None:
    for _ in range(MOST_STEPS):
        try:
            done.yielded.append(next(made))
        except StopIteration:
            done.ended = True
            return


def _note_outcome(done: Drive, engine: Engine, requests: Sequence[Request]) -> None:
    done.tokens = [request.output for request in requests]
    done.waiting = sum(not request.finished for request in requests)
    done.trace = engine.take_trace()


def judge_outcome(mine: Drive, engines: Drive) -> Result | None:
    """What is wrong with what came out of a loop whose phases are in order, or None."""
    if not mine.ended:
        return wrong("The loop never ended.", yours=f"{mine.steps} steps", expected=f"{engines.steps} steps")
    if mine.waiting:
        says = f"The loop ended while {mine.waiting} requests still had tokens to come."
        return wrong(says, yours=f"{mine.steps} steps", expected=f"{engines.steps} steps")
    if [type(one) for one in mine.yielded] != [list] * engines.steps:
        says = "Yield what settle returns, once a step: the caller gets its tokens from there."
        yours = f"{len(mine.yielded)} yields, the first: {mine.yielded[0] if mine.yielded else 'none'!r}"
        return wrong(says, yours=yours, expected=f"{engines.steps} lists of tokens")
    if mine.tokens != engines.tokens:
        return wrong("The tokens are wrong.", yours=mine.tokens[0], expected=engines.tokens[0])
    return None


def order_of(mine: Drive, step: int) -> str:
    """The phases that a step went through, as text."""
    return " - ".join(call.phase for call in mine.calls if call.step == step) or "nothing"


WITHOUT = {
    "fill": "the slot's host buffer holds the inputs of an earlier step, or zeros.",
    "upload": "the GPU reads what an earlier upload left in its buffer, or zeros.",
    "compute": "no token is computed, and the download brings old ones.",
    "download": "the tokens stay on the GPU, and the host reads what an earlier download left, or zeros.",
    "settle": "the tokens never reach their requests.",
}


def judge_phases(mine: Drive, step: int) -> Result | None:
    """What is wrong with one step's own phases, or None: each once, in order."""
    places = {phase: mine.at(phase, step) for phase in PHASES}
    spans = mine.spans(*[(phase, step) for phase in PHASES])
    missing = [phase for phase, place in places.items() if place < 0]
    if missing:
        says = f"Step {step} has no {missing[0]}: {WITHOUT[missing[0]]}"
        return wrong(says, yours=order_of(mine, step), expected=" - ".join(PHASES), spans=spans)
    if list(places.values()) != sorted(places.values()):
        says = f"The phases of step {step} are out of order: each one needs what the one before it has done."
        return wrong(says, yours=order_of(mine, step), expected=" - ".join(PHASES), spans=spans)
    return None
