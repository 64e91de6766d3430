"""Lesson 02: host and GPU take turns. How long does the GPU wait, for what, and what could be gained at most?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from labkit.analysis.intervals import complement, union
from labkit.analysis.occupancy import report
from labkit.entry import Engine
from labkit.lessons.exercise import Exercise
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.loops import Drive, Phases, drive, judge_outcome, judge_phases, order_of
from labkit.run import Run
from labkit.trace.events import PHASES, Span, Trace

PROMPTS = [[request + 1, 2, 3, 4] for request in range(32)]  # token ids; the toy model has no words


def run(device: str, rung: int | str = "default_stream", profile: Any = "article-8b", new_tokens: int = 24) -> Run:
    """The requests of this lesson: 32 prompts of four tokens, 24 new tokens each."""
    with Engine.from_pretrained("toy", switches=rung, device=device, profile=profile) as engine:
        return engine.generate(PROMPTS, max_new_tokens=new_tokens)


# -- 2.1 ---------------------------------------------------------------------------------------------------------------


def _start_idle_share(trace):
    # 2.1: the share of the run in which no operation is on the compute lane, from 0 to 1
    busy = 0
    return busy / trace.spans[-1].end_ns


def _idle_share(trace):
    busy = sum(span.duration_ns for span in trace.lane("compute"))
    start = min(span.start_ns for span in trace.spans)
    end = max(span.end_ns for span in trace.spans)
    return 1 - busy / (end - start)


def _idle_share_from_gaps(trace):
    idle, last = 0, trace.start_ns
    for span in sorted(trace.lane("compute"), key=lambda span: span.start_ns):
        idle += max(0, span.start_ns - last)
        last = max(last, span.end_ns)
    return (idle + trace.end_ns - last) / trace.duration_ns


def _judge_idle_share(answer: Callable[[Trace], float], device: str) -> Result:
    for trace in (run(device, new_tokens=6).trace, _cut_in_a_forward_pass(device)):
        assert trace is not None
        complaint = _wrong_share(answer, trace, device)
        if complaint is not None:
            return complaint
    return right("That is what the report says: the window less the time with an operation on the compute lane.")


def _cut_in_a_forward_pass(device: str) -> Trace:
    """The beginning of a run one step ahead: what was issued last is over long before the forward pass is."""
    trace = run(device, "carry_over", new_tokens=6).trace
    assert trace is not None
    forward = [span for span in trace.lane("compute") if span.name == "forward"][3]
    return trace.window(trace.start_ns, forward.start_ns + 1)


def _wrong_share(answer: Callable[[Trace], float], trace: Trace, device: str) -> Result | None:
    share, expected = answer(trace), 1 - report(trace).stream_active
    if not isinstance(share, int | float) or isinstance(share, bool):
        return wrong("idle_share has to return a number.", yours=repr(share), expected="a share from 0 to 1")
    exact = device == "virtual"  # a real GPU's times come from events, whose steps are about half a microsecond
    if abs(share - expected) < (1e-6 if exact else 2e-3):
        return None
    spans = list(trace.lane("compute"))[:4]
    return wrong(_why_share(share, expected, trace), yours=f"{share:.4f}", expected=f"{expected:.4f}", spans=spans)


def _why_share(share: float, expected: float, trace: Trace) -> str:
    """The likeliest slip behind a wrong number."""
    length = trace.duration_ns
    busy = sum(span.duration_ns for span in trace.lane("compute"))
    device = [(span.start_ns, span.end_ns) for span in trace.spans if span.lane != "CPU"]
    lanes = sum(end - start for start, end in union(device))
    sums = sum(end - start for start, end in device)
    host = sum(span.duration_ns for span in trace.of_kind("phase"))
    slips = (
        (1 - expected, "This is the share in which the GPU works; the idle share is what is left of 1."),
        (100 * expected, "This is in percent; a share goes from 0 to 1."),
        (1 - lanes / length, "Copies count as work here; look at the compute lane alone."),
        (1 - sums / length, "Copies count as work here; look at the compute lane alone."),
        (host / length, "This is the time in which the host is inside a phase; ask the compute lane."),
        (expected * length, "This is the idle time in ns; divide it by the length of the run."),
        (
            1 - busy / (trace.spans[-1].end_ns - trace.spans[0].start_ns),
            "The spans are in the order in which they were issued. In this run, which is one step ahead and cut while "
            "the GPU computes, the last one issued is not the last one to end: take the largest `end_ns` of all.",
        ),
    )
    for value, sentence in slips:
        if abs(share - value) < 1e-6 * max(1.0, abs(value)):
            return sentence
    return "The idle share is the length of all gaps on the compute lane, divided by the length of the run."


idle_share = Exercise(
    number="2.1",
    name="idle_share",
    title="The idle share",
    task="""
    Write `idle_share(trace)`: the share of the run in which no operation is on the compute lane, from 0 to 1.

    `trace.lane("compute")` gives the operations of that lane. Each span has `start_ns`, `end_ns` and `duration_ns`. The
    run goes from the start of its first span to the end of its last one, whatever the lane; `trace.spans` are all of
    them.
    """,
    starter=_start_idle_share,
    solutions=(_idle_share, _idle_share_from_gaps),
    hints=(
        "Idle is what is not busy: find the busy time first.",
        "In this engine one stream computes, so its operations follow each other and their durations may be added up.",
        "`1 - busy / (end - start)`, where `end` is the largest `end_ns` of `trace.spans` and `start` the smallest "
        "`start_ns`.",
    ),
    judge=_judge_idle_share,
)


# -- 2.2 ---------------------------------------------------------------------------------------------------------------


def gaps_and_phases(trace: Trace) -> tuple[list[tuple[int, int]], list[Span]]:
    """The idle gaps of the compute lane, (start_ns, end_ns), and the host's phases, both in order of time."""
    busy = union((span.start_ns, span.end_ns) for span in trace.lane("compute"))
    phases = sorted(trace.of_kind("phase"), key=lambda span: span.start_ns)
    return list(complement(busy, trace.start_ns, trace.end_ns)), phases


def _start_idle_by_phase(gaps, phases):
    # 2.2: for each name of a phase, the ns of all gaps in which the host was in that phase
    return {phase.name: phase.duration_ns for phase in phases}


def _idle_by_phase(gaps, phases):
    shares = dict.fromkeys((phase.name for phase in phases), 0)
    for phase in phases:
        for start, end in gaps:
            shares[phase.name] += max(0, min(end, phase.end_ns) - max(start, phase.start_ns))
    return shares


def _judge_idle_by_phase(answer: Callable[[Any, Any], Any], device: str) -> Result:
    trace = run(device, new_tokens=6).trace
    assert trace is not None
    gaps, phases = gaps_and_phases(trace)
    shares, expected = answer(gaps, phases), _idle_by_phase(gaps, phases)
    if not isinstance(shares, dict):
        return wrong("Return a dict: ns of idle time by name of phase.", yours=repr(shares), expected=_ms(expected))
    for name in PHASES:
        mine = shares.get(name, 0)
        if not isinstance(mine, int | float) or not abs(mine - expected.get(name, 0)) <= 1:
            spans = [span for span in phases if span.name == name][:3]
            says = _why_share_of(name, mine, expected[name], phases)
            return wrong(says, yours=_ms(shares), expected=_ms(expected), spans=spans)
    total, idle = sum(expected.values()), sum(end - start for start, end in gaps)
    return right(f"{total / idle:.1%} of the idle time is a phase of the host.")


def _why_share_of(name: str, mine: Any, expected: int, phases: Iterable[Span]) -> str:
    """The likeliest slip behind one wrong entry."""
    lengths = [span.duration_ns for span in phases if span.name == name]
    if not isinstance(mine, int | float):
        return f"The entry of {name} is no number."
    if mine == lengths[-1]:
        return f"This is the length of the last {name} alone: add up over the steps."
    if mine == sum(lengths):
        return f"All of {name} is counted, and a part of it was while the GPU worked: count what lies in a gap."
    if mine > expected:
        return f"Too much for {name}: a phase that only touches a gap counts with the part that lies in it."
    return f"Too little for {name}: a phase may reach into several gaps, and a gap may have several phases in it."


def _ms(shares: dict[str, Any]) -> str:
    numbers = {name: value for name, value in shares.items() if isinstance(value, int | float)}
    return ", ".join(f"{name} {value / 1e6:.2f} ms" for name, value in numbers.items()) or "nothing"


idle_by_phase = Exercise(
    number="2.2",
    name="idle_by_phase",
    title="Whose turn was it?",
    task="""
    Write `idle_by_phase(gaps, phases)`: for each phase's name, for how many ns the GPU idled while the host was in it.

    `gaps` is a list of `(start_ns, end_ns)`: the times in which the compute lane is empty. `phases` is a list of spans
    with `name`, `start_ns` and `end_ns`, one for each phase of each step. A phase counts only where it lies in a gap.
    """,
    starter=_start_idle_by_phase,
    solutions=(_idle_by_phase,),
    hints=(
        "Two intervals `(a, b)` and `(c, d)` share the time from the later start to the earlier end, if there is any.",
        "The shared length is `min(b, d) - max(a, c)`, and nothing where this is below zero. Add it up over all pairs "
        "of a gap and a phase, by the phase's name.",
        "Two loops: `for phase in phases: for start, end in gaps:`, inside "
        "`max(0, min(end, phase.end_ns) - max(start, phase.start_ns))` is added to the entry of `phase.name`.",
    ),
    judge=_judge_idle_by_phase,
)


# -- 2.3 ---------------------------------------------------------------------------------------------------------------


def _start_in_turns(engine):
    # 2.3: each of the six phases once a step, in the order in which the next one needs the one before
    while (batch := engine.plan()) is not None:
        slot = engine.slots.next()
        engine.compute(slot, batch)
        yield engine.settle(slot, batch)


def _in_turns(engine):
    while (batch := engine.plan()) is not None:
        slot = engine.slots.next()
        engine.fill(slot, batch)
        engine.upload(slot, batch)
        engine.compute(slot, batch)
        engine.download(slot, batch)
        yield engine.settle(slot, batch)


def _judge_in_turns(answer: Callable[[Phases], Any], device: str) -> Result:
    mine, engines = drive(answer, device, "default_stream")
    if mine.mistake:
        return wrong(mine.mistake, yours=order_of(mine, 0), expected=" - ".join(PHASES))
    for step in range(mine.steps):
        result = _judge_step(mine, step)
        if result is not None:
            return result
    result = judge_outcome(mine, engines)
    if result is not None:
        return result
    return right(f"{mine.steps} steps, each settled before the next one was planned, and every token is right.")


def _judge_step(mine: Drive, step: int) -> Result | None:
    result = judge_phases(mine, step)
    if result is not None:
        return result
    if 0 <= mine.at("plan", step + 1) < mine.at("settle", step):
        return wrong(
            f"Step {step + 1} was planned before step {step} was settled. That is looking ahead, and this engine has "
            "one slot and no carry-over for it.",
            yours=f"plan {step + 1} before settle {step}",
            expected=f"settle {step} before plan {step + 1}",
            spans=mine.spans(("settle", step), ("plan", step + 1)),
        )
    return None


in_turns = Exercise(
    number="2.3",
    name="in_turns",
    title="The loop in turns",
    task="""
    Write the synchronous loop, `in_turns(engine)`, as a generator. `engine.plan()` returns the next batch, or `None`
    when there is nothing left to do. `engine.slots.next()` returns the slot (the buffers) for a step. The other phases
    take both: `engine.fill(slot, batch)`, and so on. `engine.settle(slot, batch)` returns the tokens: yield them.

    The starter leaves three phases out. The check runs your loop on an engine with four requests and two rows.
    """,
    starter=_start_in_turns,
    solutions=(_in_turns,),
    hints=(
        "Six phases: plan, fill, upload, compute, download, settle. Which of them prepare what `compute` reads?",
        "`fill` writes the inputs into host memory, `upload` copies them to the GPU; after `compute`, `download` "
        "copies the tokens back, and `settle` reads them.",
        "In the loop: `engine.fill(slot, batch)`, `engine.upload(slot, batch)`, `engine.compute(slot, batch)`, "
        "`engine.download(slot, batch)`, then `yield engine.settle(slot, batch)`.",
    ),
    judge=_judge_in_turns,
)
