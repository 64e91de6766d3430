"""What the host and the kernels of a step cost, over rows and context: phases and kernels of a cost profile.

Engines run on a measured device (``probe.py``). An eager one, whose launches are timed one by one, and whose kernels
are held back until the host has launched them all; one with graphs, whose replay is one time. All are asynchronous, so
that every kernel and every branch of a phase occurs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from labkit.bench.decode import WARM, Decode, Prefilled, prefill_steps
from labkit.bench.probe import Kernels, PhaseSample, ProbeDevice
from labkit.device.calibrate.fit import line
from labkit.device.calibrate.rig import Rig
from labkit.device.costs import Linear, Point, Profile
from labkit.engine.sampling import SamplingParams
from labkit.experiments import synthetic_prompts
from labkit.model.api import BatchShape, Model
from labkit.switches import Switches, ladder

EAGER, GRAPHS = ladder("carry_over"), ladder("cuda_graphs")
SMALL = ("carry_over", "sample")  # kernels whose time does not depend on the context
SLACK_NS = 500_000  # how much longer than the host's launches a step is held


@dataclass(frozen=True)
class Grid:
    """Where a model is measured."""

    rows: tuple[int, ...] = (1, 4, 16, 32, 64)
    contexts: tuple[int, ...] = (128, 1024, 4096)
    chunks: tuple[int, ...] = (512, 2048, 8192)  # tokens of a step that takes in a prompt
    steps: int = 12

    @property
    def longest(self) -> int:
        return max(self.contexts) + 8 * self.steps + 4 * WARM


@dataclass
class Samples:
    """What was seen. Kernel samples: (rows, tokens, context summed over the rows, ns)."""

    kernels: dict[str, list[tuple[int, int, int, int]]] = field(default_factory=dict)
    gaps: dict[str, list[int]] = field(default_factory=dict)  # ns of a series in which no kernel ran
    graphs: list[tuple[int, int, int, int]] = field(default_factory=list)
    host: dict[str, list[int]] = field(default_factory=dict)  # kernel -> host ns of its launch
    phases: dict[str, list[PhaseSample]] = field(default_factory=dict)
    launches: dict[str, int] = field(default_factory=dict)


def measure_steps(
    model: Model, rig: Rig, profile: Profile, grid: Grid, progress: Callable[[str], None] = lambda what: None
) -> Profile:
    """``profile`` with the phases and kernels of this model. Its API costs must have been measured."""
    samples = Samples()
    decoding = Prefilled(model, model.preferred_block_size)
    for rows in grid.rows:
        _measure_rows(decoding, rig, grid, rows, EAGER, samples)
        rig.release()
        _measure_rows(decoding, rig, grid, rows, GRAPHS, samples)
        rig.release()
        progress(f"{rows} rows")
    _measure_chunks(model, rig, grid, samples)
    rig.release()
    progress("prompts")
    return _profile(profile, samples)


def _measure_rows(model: Prefilled, rig: Rig, grid: Grid, rows: int, switches: Switches, samples: Samples) -> None:
    """One engine, all contexts."""
    probe = ProbeDevice(rig)
    size = model.block_size
    with Decode(model, switches, probe, batch=rows, longest=grid.longest, block_size=size) as decode:
        for context in grid.contexts:
            decode.start(context, 4 * grid.steps)
            if context == grid.contexts[0] and switches is EAGER and not samples.launches:
                samples.launches = _count_launches(decode, rig, rows)
            _free_run(decode, probe, grid, switches, samples)
            hold = _launch_ns(probe) + SLACK_NS
            with probe.holding(hold) as steps:
                decode.steps(grid.steps)
                decode.finish()
            _sort(steps[1:-1], samples)  # the first and last of a stretch may be of another batch


def _free_run(decode: Decode, probe: ProbeDevice, grid: Grid, switches: Switches, samples: Samples) -> None:
    """Undisturbed steps: host time of phases (with graphs: so an engine is meant to run) and of launches."""
    probe.clear()
    decode.steps(grid.steps)
    if switches is GRAPHS:
        for name, seen in probe.phases.items():
            samples.phases.setdefault(name, []).extend(seen)
    for name, times in probe.calls.items():
        if name.startswith("launch "):
            samples.host.setdefault(name.removeprefix("launch "), []).append(round(statistics.median(times)))


def _launch_ns(probe: ProbeDevice) -> int:
    """Host time to launch a step."""
    times = (times for name, times in probe.calls.items() if name.startswith(("launch ", "replay")))
    return round(sum(statistics.median(t) for t in times))


def _count_launches(decode: Decode, rig: Rig, rows: int) -> dict[str, int]:
    slot, shape = decode.core.slots.slots[0], BatchShape(rows, rows, rows, 1, decode.core.sizes.max_model_len)
    counts: dict[str, int] = {}

    def forward_first(fns: Iterable[Callable[[], None]]) -> None:
        for fn in fns:
            fn()

    kernels = {kernel.name: kernel.fn for kernel in decode.core.launcher.kernels.build(slot, shape, False, False)}
    for name, fn in kernels.items():
        if name == "sample":  # it takes what the forward pass left
            both = rig.launches(name, lambda: forward_first((kernels["forward"], kernels["sample"])))
            counts[name] = both - counts["forward"] if counts["forward"] and both > counts["forward"] else both
        else:
            counts[name] = rig.launches(name, fn)
    return counts


def _sort(steps: Iterable[Kernels], samples: Samples) -> None:
    for step in steps:
        for name, work, ns, busy in step:
            sample = (work.rows, work.tokens, work.context, busy)
            if name == "graph":
                samples.graphs.append((work.rows, work.tokens, work.context, ns))
            else:
                samples.kernels.setdefault(name, []).append(sample)
                samples.gaps.setdefault(name, []).append(ns - busy)


def _measure_chunks(model: Model, rig: Rig, grid: Grid, samples: Samples) -> None:
    """Steps that take in one prompt each, on the model itself: first undisturbed, then held back."""
    probe = ProbeDevice(rig)
    size, longest = model.preferred_block_size, max(grid.chunks) + 16
    longest = min(longest, model.max_model_len - prefill_steps(1, longest))
    with Decode(model, EAGER, probe, batch=1, longest=longest, block_size=size) as decode:
        for tokens in (chunk for chunk in grid.chunks if chunk < longest):
            probe.clear()
            _take_in(decode, tokens)
            for name, seen in probe.phases.items():
                samples.phases.setdefault(name, []).extend(s for s in seen if s[1] > s[0])
            with probe.holding(_launch_ns(probe) + SLACK_NS) as steps:
                _take_in(decode, tokens)
            samples.kernels.setdefault("chunk", []).extend(
                (work.rows, work.tokens, work.context, busy) for n, work, _, busy in steps[0] if n == "forward"
            )


def _take_in(decode: Decode, tokens: int) -> None:
    """Run one prompt, whose first token ends it."""
    [prompt] = synthetic_prompts(decode.core.model, 1, tokens)
    decode.core.submit(prompt, SamplingParams(max_new_tokens=1, eos_token_ids=()))
    decode.run_out()


# -- from samples to a profile -----------------------------------------------------------------------------------------


def _profile(profile: Profile, samples: Samples) -> Profile:
    kernels = {name: _small(samples.kernels[name]) for name in SMALL if name in samples.kernels}
    kernels["forward"] = _per_rows(samples.kernels["forward"])
    kernels = {name: replace(kernel, **_launching(name, profile, samples)) for name, kernel in kernels.items()}
    inner = 2 * profile.node_gap_ns  # a graph of carry-over, forward pass and sampling
    graphs = [
        (rows, tokens, context, ns - inner - sum(kernels[name](rows, tokens, context) for name in SMALL))
        for rows, tokens, context, ns in samples.graphs
    ]
    in_graph = _per_rows(graphs)
    chunk = _chunk(samples.kernels.get("chunk", []), kernels["forward"])
    forward = replace(kernels["forward"], **chunk)
    profile = replace(profile, kernels=kernels | {"forward": forward}, graph_kernels={"forward": in_graph})
    return replace(profile, phases={name: _phase(seen) for name, seen in samples.phases.items()})


def _per_rows(samples: list[tuple[int, int, int, int]]) -> Linear:
    """A line over the context for each row count that was measured."""
    points: list[Point] = []
    for rows in sorted({sample[0] for sample in samples}):
        own = [sample for sample in samples if sample[0] == rows]
        start, slope = line([s[2] for s in own], [s[3] for s in own])
        points.append((rows, round(start, 1), round(slope, 4)))
    return Linear(points=tuple(points))


def _small(samples: list[tuple[int, int, int, int]]) -> Linear:
    base, per_row = line([s[0] for s in samples], [s[3] for s in samples])
    return Linear(base_ns=round(base, 1), per_row_ns=round(per_row, 2))


def _launching(name: str, profile: Profile, samples: Samples) -> dict[str, Any]:
    """How many kernels, and host time for each after the first. The quietest row count: the others are disturbed."""
    host = min(samples.host[name])
    count = samples.launches.get(name, 0) or max(1, round(host / max(1, profile.launch_ns)))
    if count == 1:
        return {"launches": 1}
    each = (host - profile.launch_ns) / (count - 1)
    return {"launches": count, "launch_ns": round(max(1.0, each), 1)}


def _chunk(samples: list[tuple[int, int, int, int]], forward: Linear) -> dict[str, Any]:
    """Time per token beyond those that the weights' bytes hide, from what is above a decode step's time."""
    if len(samples) < 2:
        return {}
    above = [(tokens, ns - forward(rows, 0, context)) for rows, tokens, context, ns in samples]
    (low, first), (high, last) = above[-2], above[-1]
    per_token = max(0.0, (last - first) / (high - low))
    free = high - last / per_token if per_token else 0
    return {"per_token_ns": round(per_token, 2), "free_tokens": max(0, round(free))}


def _phase(samples: list[PhaseSample]) -> Linear:
    """Host time over rows, from decode steps; per token, from what a prompt's step takes beyond that."""
    decode = [s for s in samples if s[1] <= s[0]]
    counts = sorted({s[0] for s in decode})
    base, slope = line(counts, [statistics.median(s[2] for s in decode if s[0] == rows) for rows in counts])
    longer = [(s[2] - base - slope * s[0]) / (s[1] - s[0]) for s in samples if s[1] > s[0]]
    per_token = min(slope, max(0.0, statistics.median(longer))) if longer else 0.0
    return Linear(round(base, 1), round(slope - per_token, 3), round(per_token, 3))
