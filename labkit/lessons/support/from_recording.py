"""A cost profile from a recorded trace: what a step of that run cost host and GPU, and nothing else.

Coarser than ``labkit calibrate``, which measures each call by itself: it holds for that batch size and context alone.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from labkit.device.costs import Linear, Profile
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.experiments import sizes_for, synthetic_prompts
from labkit.model.toy import ToyModel
from labkit.switches import Switches
from labkit.trace.events import PHASES, Trace


def host_ns(trace: Trace) -> dict[str, float]:
    """Host time of each phase, median over the steps, without the host's waits, ns."""
    waited = {(span.step, span.phase): span.duration_ns for span in trace.of_kind("synchronize")}
    times: dict[str, list[int]] = {}
    for span in trace.of_kind("phase"):
        times.setdefault(span.name, []).append(span.duration_ns - waited.get((span.step, span.name), 0))
    return {name: float(median(times[name])) for name in PHASES if name in times}


def gpu_ns(trace: Trace) -> float:
    """Time of a step on the compute lane, from the start of its first operation to the end of its last, median, ns."""
    ends: dict[int, tuple[int, int]] = {}
    for span in trace.lane("compute"):
        start, end = ends.get(span.step, (span.start_ns, span.end_ns))
        ends[span.step] = min(start, span.start_ns), max(end, span.end_ns)
    if not ends:
        raise InvalidArgument("trace", repr(trace), "a trace with operations on the compute lane")
    return float(median(end - start for start, end in ends.values()))


def step_ns(trace: Trace) -> float:
    """Time from step to step, median, ns: from the start of one step on the compute lane to the start of the next."""
    starts = [min(span.start_ns for span in trace.lane("compute") if span.step == step) for step in _steps(trace)]
    if len(starts) < 2:
        raise InvalidArgument("trace", repr(trace), "a trace of two steps or more")
    return float(median(after - before for before, after in pairwise(starts)))


def _steps(trace: Trace) -> list[int]:
    return sorted({span.step for span in trace.lane("compute")})


def profile_of(trace: Trace, name: str = "from a recording") -> Profile:
    """Phases cost what the host spent in them, calls included; the forward pass costs the whole step of the GPU."""
    phases = {phase: Linear(ns) for phase, ns in host_ns(trace).items()}
    return Profile(name, phases=phases, kernels={"forward": Linear(gpu_ns(trace))})


def virtual_run(profile: Profile, switches: Switches, *, requests: int, steps: int) -> Trace:
    """Steps of the virtual GPU at these costs, the prompts' step not counted."""
    model = ToyModel()
    prompts, params = synthetic_prompts(model, requests, 4), SamplingParams(max_new_tokens=steps + 1)
    sizes = sizes_for(model, prompts, params, token_budget=4 * requests)
    with Engine(model, switches=switches, profile=profile, sizes=sizes) as engine:
        trace = engine.generate(prompts, params).trace
    assert trace is not None
    return trace
