"""The cases of lesson 10: a broken engine, run on the same requests as a right one, and what the instruments say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import torch

from labkit.analysis.occupancy import Report, report
from labkit.analysis.races import RaceReport, check
from labkit.device.costs import Linear, Profile, load_profile
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.lessons.support.defects import DEFECTS, WORKED, Defect
from labkit.lessons.support.filled import FilledRow, rows_text
from labkit.lessons.support.mystery import MysteryEngine
from labkit.lessons.support.parts import Parts
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.sizes import Sizes
from labkit.steplog import StepRecord
from labkit.trace.events import Span, Trace

SIZES = Sizes(max_rows=4, token_budget=32, block_size=4, num_blocks=48, max_model_len=48)
PROMPTS = [[17, 4, 99, 23, 8, 42], [200, 3, 5], [61, 62, 63, 64, 65], [7] * 4, [120, 45, 9], [33, 1, 250, 77]]
PARAMS = [
    SamplingParams(max_new_tokens=26),
    SamplingParams(max_new_tokens=9),
    SamplingParams(max_new_tokens=20, temperature=0.9, seed=5),
    SamplingParams(max_new_tokens=14),
    SamplingParams(max_new_tokens=16, logprobs=True),
    SamplingParams(max_new_tokens=10, temperature=0.7, seed=9),
]
_TOLERANCE = 1e-3  # of log-probabilities: two kernels need not round alike


def _profile() -> Profile:
    """Costs made up so that a step of kernels takes longer than the host's work for one, and copies are short."""
    phases = {"plan": Linear(60_000), "fill": Linear(40_000), "settle": Linear(30_000)}
    kernels = {"carry_over": Linear(6_000), "forward": Linear(280_000, per_token_ns=2_000), "sample": Linear(20_000)}
    toy = load_profile("toy-u")
    return replace(toy, name="detective", source="made up for lesson 10", phases=phases, kernels=kernels)


@dataclass(frozen=True)
class Case:
    """One engine, run once.

    run        what it did with the six requests
    reference  the tokens of the synchronous engine on the default stream, on the same device
    misfits    replays of a graph that was captured for something else: step, replayed, needed
    """

    number: int
    title: str
    ticket: str
    device: str
    run: Run
    reference: Run
    misfits: tuple[tuple[int, str, str], ...] = ()
    filled: dict[int, tuple[FilledRow, ...]] = field(default_factory=dict)

    @property
    def trace(self) -> Trace:
        assert self.run.trace is not None
        return self.run.trace

    @cached_property
    def races(self) -> RaceReport:
        """The race checker's report."""
        return check(self.trace)

    def race(self, number: int = 1) -> str:
        """The n-th race of the report, without the lines of labkit's own source."""
        count = len(self.races.races)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
            raise InvalidArgument("number", number, f"1 to {count}" if count else "this engine has no races")
        text = str(self.races.races[number - 1])
        return re.sub(r" \(\w+\.py:\d+\)|, \w+\.py:\d+(?=\))", "", text)

    @cached_property
    def report(self) -> Report:
        """GPU active, idle time and its reasons, host time per phase."""
        return report(self.trace)

    @property
    def wrong(self) -> dict[int, int]:
        """Requests with wrong tokens or log-probabilities: request -> place of the first wrong one."""
        found = {request: self._first_wrong(request) for request in range(len(PROMPTS))}
        return {request: place for request, place in found.items() if place is not None}

    def _first_wrong(self, request: int) -> int | None:
        ours, theirs = self.run.tokens[request], self.reference.tokens[request]
        for place, (token, wanted) in enumerate(zip(ours, theirs, strict=True)):
            if token != wanted or not self._logprob_agrees(request, place):
                return place
        return None

    def _logprob_agrees(self, request: int, place: int) -> bool:
        pair = [run.logprobs[request] for run in (self.run, self.reference)]
        return not pair[1] or abs(pair[0][place] - pair[1][place]) <= _TOLERANCE

    @property
    def idle_us_per_step(self) -> float:
        """Time without a kernel, us a step."""
        return self.report.idle_ns / 1000 / max(1, self.report.steps)

    def tokens(self) -> str:
        """Each request's tokens against the reference: a dot where they agree, else the wrong token."""
        lines = []
        for request, (ours, theirs) in enumerate(zip(self.run.tokens, self.reference.tokens, strict=True)):
            marks = ["." if token == wanted else str(token) for token, wanted in zip(ours, theirs, strict=True)]
            lines.append(f"request {request}{_kind(PARAMS[request]):<14} {' '.join(marks)}")
        return "\n".join(lines)

    def rows(self, step: int) -> str:
        """What the host wrote for each row of a step, and how the step's kernels were launched."""
        record = self._record(step)
        graphs = [span.name for span in self.trace.step(step) if span.kind == "graph"]
        launched = f"replays {graphs[0]}" if graphs else "kernels launched one by one"
        before = self._record(step - 1) if step else None
        lines = rows_text(self.filled[step], record, before, SIZES)
        return "\n".join([f"step {step}, slot {record.slot}, {launched}", *lines])

    def _record(self, step: int) -> StepRecord:
        last = len(self.run.steps) - 1
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= last:
            raise InvalidArgument("step", step, f"0 to {last}")
        return self.run.steps[step]

    def waits(self, step: int) -> str:
        """Every wait of a step, with the step in which what it waits for was recorded."""
        self._record(step)
        spans = [span for span in self.trace.step(step) if span.kind in ("wait", "synchronize") or span.blocking]
        lines = [f"  {span.phase:<9}{_wait_text(self.trace, span)}" for span in spans]
        return "\n".join([f"step {step}", *lines])

    def __repr__(self) -> str:
        first = min(self.wrong.items(), key=lambda it: (it[1], it[0]), default=None)
        where = f", request {first[0]} from its token {first[1]} on" if first else ""
        races, notices = len(self.races.races), len(self.races.notices)
        right = right_engine(self.device)
        return "\n".join(
            [
                f"Case {self.number}: {self.title}",
                f'  "{self.ticket}"',
                f"  tokens   {len(self.wrong)} of {len(PROMPTS)} requests wrong{where}",
                f"  races    {races}" + (f", and {notices} other findings" if notices else ""),
                f"  time     GPU active {self.report.gpu_active:.0%}, {self.idle_us_per_step:.0f} us idle a step "
                f"(a right engine: {right.report.gpu_active:.0%}, {right.idle_us_per_step:.0f} us)",
            ]
        )


def case(number: int, device: str = "virtual") -> Case:
    """A case, run: 0 is the worked one, 1 to 10 are to be solved.

    Raises:
        InvalidArgument: there is no such case, or no such device.
    """
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= len(DEFECTS):
        raise InvalidArgument("number", number, f"0 to {len(DEFECTS)}")
    return _case(number, device)


@lru_cache(maxsize=32)
def _case(number: int, device: str) -> Case:
    return run_case(number, Parts(**defect(number).broken), device)


def defect(number: int) -> Defect:
    """What is broken in a case."""
    return DEFECTS[number - 1] if number else WORKED


def run_case(number: int, parts: Parts, device: str) -> Case:
    """The requests of the cases on an engine made of these parts.

    Raises:
        PartFailed: while the engine was built. EngineFault: in a step.
    """
    reference = _reference(device)
    engine = MysteryEngine(_model(device), parts, device=device, profile=_profile(), sizes=SIZES)
    with engine:
        run = engine.generate(PROMPTS, PARAMS)
    about, misfits = defect(number), tuple(engine.core.misfits)
    return Case(number, about.title, about.ticket, device, run, reference, misfits, engine.filled.steps)


@lru_cache(maxsize=4)
def right_engine(device: str) -> Case:
    """The same engine with every part right."""
    return run_case(0, Parts(), device)


@lru_cache(maxsize=4)
def _reference(device: str) -> Run:
    with Engine(_model(device), switches=0, device=device, profile=_profile(), sizes=SIZES, trace=False) as engine:
        return engine.generate(PROMPTS, PARAMS)


def _model(device: str) -> ToyModel:
    return ToyModel().to(torch.device("cuda" if device == "cuda" else "cpu"))


def _kind(params: SamplingParams) -> str:
    return " (random)" if params.temperature else " (logprobs)" if params.logprobs else ""


def _wait_text(trace: Trace, span: Span) -> str:
    if span.kind == "copy":
        return f"the host waits for the copy `{span.name}` of step {span.step} (it blocks)"
    who = f"{span.stream} waits" if span.kind == "wait" else "the host waits"
    if not span.event:
        return f"{who} for {span.stream or 'the device'}"
    recorded = recorded_in(trace, span)
    return f"{who} for {span.event}, " + ("never recorded" if recorded is None else f"recorded in step {recorded}")


def recorded_in(trace: Trace, wait: Span) -> int | None:
    """The step that recorded what a wait waits for; None where nothing had been recorded."""
    for span in trace.of_kind("record"):
        if span.event == wait.event and span.record == wait.record:
            return span.step
    return None
