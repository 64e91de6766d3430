"""The judges of lesson 09 that are about trace files: the arrows of a Chrome trace, the calls of a profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from labkit.entry import Engine
from labkit.lessons.result import Result, right, wrong
from labkit.trace.events import Span, Trace
from labkit.trace.export import load_chrome, to_chrome
from labkit.trace.profiler import load_profile_trace

RECORDINGS = Path(__file__).parent.parent / "recordings"
RECORDED = "kernels-512"  # benchmarks/kernel_groups.py: four steps, as a labkit trace and as the profiler's file
ASKED = ("download", "carry_over", "host waits for d2h_done[{slot}]")
STEPS = (4, 7)


def recorded_trace() -> Trace:
    """Four steps of an 8B model on one H200, as labkit recorded them."""
    return load_chrome(RECORDINGS / f"{RECORDED}.json.gz")


def profile_path() -> Path:
    """What ``torch.profiler`` saw of the same four steps."""
    return RECORDINGS / f"{RECORDED}-profiler.json.gz"


@lru_cache(maxsize=4)
def small_run(device: str, rung: str) -> Trace:
    """Ten steps of the toy model."""
    with Engine.from_pretrained("toy", switches=rung, device=device, profile="h200-8b") as engine:
        trace = engine.generate([[1, 2, 3], [4, 5], [6]], max_new_tokens=10).trace
    assert trace is not None
    return trace


def judge_arrows(answer: Callable[..., Any], device: str) -> Result:
    """What several operations of a run waited for, read from the file's events."""
    trace = small_run(device, "carry_over")
    events = to_chrome(trace)["traceEvents"]
    for step in STEPS:
        for asked in ASKED:
            name = asked.format(slot="AB"[step % 2])
            (span,) = [it for it in trace.spans if it.step == step and it.name == name and it.kind != "phase"]
            complaint = _arrows(answer(events, name, step), span, trace, events)
            if complaint is not None:
                return complaint
    return right("Every arrow has two ends with one id; each end lies in a slice of its own thread.")


def _arrows(given: Any, span: Span, trace: Trace, events: list[dict[str, Any]]) -> Result | None:
    spans = {it.id: it for it in trace.spans}
    before = [spans[edge.before] for edge in trace.edges if edge.after == span.id]
    wanted = {it.name for it in before}
    about = f"{_names(wanted)}, for `{span.name}` of step {span.step}"
    if isinstance(given, str) or not isinstance(given, set | frozenset | list | tuple):
        return wrong("A set of names is asked for.", yours=repr(given), expected=about, spans=before)
    found = set(given)
    if found == wanted:
        return None
    says = "Some of these are not what it waited for."
    arrows = {event["name"] for event in events if event["ph"] in "sf"}
    after = {spans[edge.after].name for edge in trace.edges if edge.before == span.id}
    if not found:
        says = "No arrow was found. An arrow arrives where its `f` event lies in the slice: same tid, ts within."
    elif found <= arrows:
        says = "These are names of arrows. What is asked for are the slices in which they begin."
    elif found > wanted:
        says = "More than what it waited for: compare tids, and let the end of a slice belong to the next one."
    elif after and found & after:
        says = "Some arrows go the other way: those that leave this slice."
    elif found < wanted:
        says = "Some arrows are missing. A launch is one of the things that an operation waits for."
    return wrong(says, yours=_names(found), expected=about, spans=[span, *before])


def _names(found: set[Any]) -> str:
    return "{" + ", ".join(sorted(map(repr, found))) + "}"


def judge_calls(answer: Callable[[Trace], Any], device: str) -> Result:
    """Operations on the compute lane per call that issued some: in the recorded profile, and in a run of the engine."""
    for trace, what in ((load_profile_trace(profile_path()), "the profile"), (_eager(device), "an eager run")):
        given, wanted = answer(trace), _per_call(trace)
        about = f"{wanted}, for {what}"
        if not isinstance(given, dict):
            return wrong("A dict from a call's name to a number is asked for.", yours=repr(given), expected=about)
        if set(given) == set(wanted) and all(_same(given[name], wanted[name]) for name in wanted):
            continue
        return wrong(_calls_slip(given, wanted), yours=_short(given), expected=about)
    return right("One replay, hundreds of kernels; without graphs, one call for each.")


def _eager(device: str) -> Trace:
    return small_run(device, "carry_over")


def _per_call(trace: Trace) -> dict[str, float]:
    spans = {it.id: it for it in trace.spans}
    issued: dict[str, list[int]] = {}
    for edge in trace.edges:
        if edge.kind == "issue" and spans[edge.after].lane == "compute":
            issued.setdefault(spans[edge.before].name, []).append(edge.before)
    return {name: len(calls) / len(set(calls)) for name, calls in issued.items()}


def _same(given: Any, wanted: float) -> bool:
    return isinstance(given, int | float) and abs(given - wanted) <= 0.01 * wanted


def _calls_slip(given: dict[Any, Any], wanted: dict[str, float]) -> str:
    if not given:
        return "No call was found. An edge of kind `issue` leads from a call to what it issued."
    if set(given) > set(wanted):
        return "Copies between host and device are in it: only operations whose lane is `compute` count."
    if set(given) != set(wanted):
        return "The keys are the names of the calls, the spans that the edges come from."
    return "The calls are right, the numbers are not: operations issued, divided by how many calls issued some."


def _short(given: dict[Any, Any]) -> str:
    text = str(given)
    return text if len(text) < 120 else text[:117] + "..."
