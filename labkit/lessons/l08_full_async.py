"""Lesson 08: the full asynchronous cycle: cold start, steady state, drain, and where it gains nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from labkit.analysis.comparison import step_ends
from labkit.device.costs import Linear, Profile, load_profile, scaled_host
from labkit.entry import Engine
from labkit.lessons.exercise import Exercise
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.ahead import idle_ms, judge_look_ahead
from labkit.lessons.support.article import article_run, steady
from labkit.run import Run
from labkit.trace.events import Span, Trace

__all__ = ["article_run", "in_flight", "look_ahead", "overlapped", "run", "speedup", "steady", "step_ms"]

PROMPTS = [[request + 1, 2, 3, 4] for request in range(32)]


def run(
    device: str, rung: Any = "carry_over", profile: Any = "article-8b", new_tokens: int = 6, requests: int = 32
) -> Run:
    """Requests of four prompt tokens each on the engine with the toy model."""
    with Engine.from_pretrained("toy", switches=rung, device=device, profile=profile) as engine:
        return engine.generate(PROMPTS[:requests], max_new_tokens=new_tokens)


def in_flight(trace: Trace) -> list[tuple[int, int, int, int, int]]:
    """For each step: its number, when it was planned, began and ended on the GPU and was settled, ns."""
    ends, found = step_ends(trace), []
    for step in ends:
        spans = trace.step(step)
        planned = next(span.end_ns for span in spans if span.kind == "phase" and span.name == "plan")
        device = [span for span in spans if span.lane == "compute"]
        begun, done = min(span.start_ns for span in device), max(span.end_ns for span in device)
        found.append((step, planned, begun, done, ends[step]))
    return found


def step_ms(made: Run, first: int = 4, last: int = 20) -> float:
    """Milliseconds of a steady step: the time between the tokens of two steps, by the number of steps between them."""
    assert made.trace is not None
    ends = step_ends(made.trace)
    return (ends[last] - ends[first]) / (last - first) / 1e6


# -- 8.1 ---------------------------------------------------------------------------------------------------------------


def _start_look_ahead(engine):
    # 8.1: enqueue the next step before you wait for the one that is running
    while (batch := engine.plan()) is not None:
        slot = engine.slots.next()
        engine.fill(slot, batch)
        engine.upload(slot, batch)
        engine.compute(slot, batch)
        engine.download(slot, batch)
        yield engine.settle(slot, batch)


def _look_ahead(engine):
    running = None
    while True:
        batch = engine.plan()
        if batch is not None:
            slot = engine.slots.next()
            engine.fill(slot, batch)
            engine.upload(slot, batch)
            engine.compute(slot, batch)
            engine.download(slot, batch)
        if running is not None:
            yield engine.settle(*running)
        elif batch is None:
            return
        running = (slot, batch) if batch is not None else None


look_ahead = Exercise(
    number="8.1",
    name="look_ahead",
    title="One step ahead",
    task="""
    Turn the synchronous loop into the asynchronous one: `look_ahead(engine)`, a generator. A step is planned, filled,
    uploaded, computed and downloaded while the step before it is still running on the GPU, and only then is that
    earlier step settled and its tokens yielded. Mind the first turn, which has nothing to settle, and the last one,
    which has nothing to plan.

    The engine has two slots and the carry-over. Four requests share two rows, so the last two get their rows only when
    a step has been settled: `plan()` returns `None` then, although there is more to come.
    """,
    starter=_start_look_ahead,
    solutions=(_look_ahead,),
    hints=(
        "Keep the step that is in flight in a variable: `running = (slot, batch)`, and `None` before the first one.",
        "In one turn: plan; if there is a batch, enqueue it; if a step was running, settle *that* one; then the new "
        "one is the running one.",
        "The loop ends where there is neither a batch nor a running step: `if running is not None: yield "
        "engine.settle(*running)`, `elif batch is None: return`, then `running = (slot, batch) if batch is not None "
        "else None`.",
    ),
    judge=judge_look_ahead,
    measure=idle_ms,
    unit="ms in which the GPU idles",
)


# -- 8.2 ---------------------------------------------------------------------------------------------------------------


def _start_overlapped(trace):
    # 8.2: the numbers of the steps that were planned while an earlier step was running on the GPU
    return [span.step for span in trace.of_kind("phase") if span.name == "plan" and span.step > 0]


def _overlapped(trace):
    steps = []
    for plan in (span for span in trace.of_kind("phase") if span.name == "plan"):
        earlier = [span for span in trace.lane("compute") if span.step < plan.step]
        if any(span.start_ns < plan.end_ns and plan.start_ns < span.end_ns for span in earlier):
            steps.append(plan.step)
    return steps


def _judge_overlapped(answer: Callable[[Trace], Any], device: str) -> Result:
    slow_host = scaled_host(load_profile("article-8b"), 8)
    cases = (
        ("the asynchronous run", run(device)),
        ("the synchronous run", run(device, "events")),
        ("an asynchronous run with a host that is slower than the GPU", run("virtual", "carry_over", slow_host)),
    )
    for name, made in cases:
        assert made.trace is not None
        steps, expected = answer(made.trace), _known(_overlapped(made.trace), made.trace)
        if not isinstance(steps, list | tuple | set):
            return wrong("Return a list of step numbers.", yours=repr(steps), expected=expected)
        mine = _known(steps, made.trace)
        if mine != expected:
            odd = sorted(set(mine) ^ set(expected))[0]
            says = (
                f"In {name} step {odd} was {'' if odd in expected else 'not '}planned while an earlier one was running."
            )
            return wrong(says, yours=mine, expected=expected, spans=_plan_and_before(made.trace, odd))
    return right("The steps are the same in all three runs, one of them synchronous: there it is none.")


def _known(steps: Iterable[Any], trace: Trace) -> list[Any]:
    """In order, without the plans that found nothing to do."""
    ends = step_ends(trace)
    return sorted({step for step in steps if step in ends})


def _plan_and_before(trace: Trace, step: int) -> list[Span]:
    before = [span for span in trace.lane("compute") if span.step == step - 1]
    return before[:3] + [span for span in trace.step(step) if span.kind == "phase" and span.name == "plan"]


overlapped = Exercise(
    number="8.2",
    name="overlapped",
    title="Which steps overlap?",
    task="""
    Write `overlapped(trace)`: a list of the steps that were planned while an *earlier* step was running on the GPU,
    that is, steps whose `plan` shares some time with an operation of an earlier step on the compute lane.

    `trace.of_kind("phase")` gives the host's phases (spans with `name`, `step`, `start_ns`, `end_ns`), and
    `trace.lane("compute")` the operations on the GPU, each with its `step`. The check has a run with a slow host, too.
    """,
    starter=_start_overlapped,
    solutions=(_overlapped,),
    hints=(
        "For each phase of the name `plan`, look for one operation on the compute lane of a smaller step number.",
        "Two spans a and b share time if each of them begins before the other one ends.",
        "`any(op.start_ns < plan.end_ns and plan.start_ns < op.end_ns for op in trace.lane('compute') if op.step < "
        "plan.step)`",
    ),
    judge=_judge_overlapped,
)


# -- 8.3 ---------------------------------------------------------------------------------------------------------------


def two_times(host_us: float, gpu_us: float) -> Profile:
    """A virtual machine with two costs: what the host needs for a step, and what the GPU needs."""
    host, gpu = Linear(base_ns=host_us * 1000), Linear(base_ns=gpu_us * 1000)
    return replace(load_profile("zero"), name="two times", phases={"plan": host}, kernels={"forward": gpu})


def _start_speedup(host_us, gpu_us):
    # 8.3: how many times as fast the asynchronous engine is, in steady state
    return 1 / (1 - host_us / (host_us + gpu_us))


def _speedup(host_us, gpu_us):
    return (host_us + gpu_us) / max(host_us, gpu_us)


CASES = ((3000, 9000), (6000, 6000), (12000, 4000), (100, 20000))


def _judge_speedup(answer: Callable[[float, float], float], device: str) -> Result:
    for host_us, gpu_us in CASES:
        profile = two_times(host_us, gpu_us)
        in_turns, ahead = (run("virtual", rung, profile, 14, requests=2) for rung in ("events", "carry_over"))
        expected = step_ms(in_turns, 2, 12) / step_ms(ahead, 2, 12)
        mine = answer(host_us, gpu_us)
        if not isinstance(mine, int | float) or not abs(mine - expected) <= 0.01 * expected:
            case = f"host {host_us / 1000:g} ms, GPU {gpu_us / 1000:g} ms"
            yours = f"{mine:.3f} times" if isinstance(mine, int | float) else repr(mine)
            says = _why_speedup(mine, host_us, gpu_us)
            return wrong(f"{case}: {says}", yours=yours, expected=f"{expected:.3f} times, measured")
    return right(f"Within 1 % of what the engine needed in {len(CASES)} cases.")


def _why_speedup(mine: Any, host_us: float, gpu_us: float) -> str:
    slips = (
        ((host_us + gpu_us) / gpu_us, "the host is the slower one here, and the GPU has to wait for it in every step."),
        (
            (host_us + gpu_us) / host_us,
            "the GPU is the slower one here, and the host has to wait for it in every step.",
        ),
        (
            max(host_us, gpu_us) / (host_us + gpu_us),
            "this is the share of the time that is left; turn it over.",
        ),
        (2.0, "twice as fast is what equal halves give; these are not equal."),
    )
    for value, sentence in slips:
        if isinstance(mine, int | float) and abs(mine - value) < 1e-6 * value:
            return sentence
    return "in turns a step takes both times; one step ahead it takes the longer of the two."


speedup = Exercise(
    number="8.3",
    name="speedup",
    title="How much faster?",
    task="""
    A step needs `host_us` on the host and `gpu_us` on the GPU. Write `speedup(host_us, gpu_us)`: how many times as fast
    the asynchronous engine is as the synchronous one, in steady state. The starter is the bound of notebook 02.

    The check measures both engines on virtual GPUs with just these two costs, in four cases; it needs no real GPU.
    """,
    starter=_start_speedup,
    solutions=(_speedup,),
    hints=(
        "What does a step take in turns? What does it take if both sides work all the time?",
        "In turns: the sum. One step ahead: the longer of the two, since the other one is hidden behind it.",
        "`(host_us + gpu_us) / max(host_us, gpu_us)`",
    ),
    judge=_judge_speedup,
)
