"""What the host and the kernels of a step take, over rows and context; ``step_fit.py`` makes costs of it.

Engines run on a measured device (``probe.py``). An eager one, whose launches are timed one by one, and whose kernels
are held back until the host has launched them all; one with graphs, whose replay is one time. All are asynchronous, so
that every kernel and every branch of a phase occurs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from labkit.bench.decode import WARM, Decode, Prefilled, prefill_steps
from labkit.bench.probe import Kernels, PhaseSample, ProbeDevice
from labkit.device.calibrate.rig import Rig
from labkit.engine.sampling import SamplingParams
from labkit.experiments import synthetic_prompts
from labkit.model.api import BatchShape, Model
from labkit.switches import Switches, ladder

EAGER, GRAPHS = ladder("carry_over"), ladder("cuda_graphs")
SMALL = ("carry_over", "sample")  # kernels whose time does not depend on the context
SLACK_NS = 500_000  # how much longer than the host's launches a step is held
KV_TOKENS = 300_000  # of all rows together: what fits beside the weights, and fills in a moment


@dataclass(frozen=True)
class Grid:
    """Where a model is measured."""

    rows: tuple[int, ...] = (1, 2, 4, 8, 16, 24, 32, 40, 48, 64, 128, 256)
    contexts: tuple[int, ...] = (128, 512, 1024, 2048, 4096)
    chunks: tuple[int, ...] = (512, 2048, 8192)  # tokens of a step that takes in a prompt
    steps: int = 10

    def contexts_of(self, rows: int) -> tuple[int, ...]:
        """Contexts for so many rows: those that fit, the shortest always."""
        return tuple(c for c in self.contexts if c == self.contexts[0] or c * rows <= KV_TOKENS)

    def longest(self, rows: int) -> int:
        """Room for each row."""
        return self.contexts_of(rows)[-1] + 10 * self.steps + 4 * WARM

    @property
    def few_rows(self) -> tuple[int, ...]:
        """The first row count, one in the middle and the last up to 64: for what hardly depends on the rows."""
        plain = [rows for rows in self.rows if rows <= 64] or list(self.rows[:1])
        return tuple(dict.fromkeys((plain[0], plain[len(plain) // 2], plain[-1])))


Sample = tuple[int, int, int, int]  # rows, tokens, context summed over the rows, ns


@dataclass
class Samples:
    """What was seen."""

    kernels: dict[str, list[Sample]] = field(default_factory=dict)  # eager; "chunk": forward passes over a prompt
    graphs: list[list[Sample]] = field(default_factory=list)  # whole replays, stretch by stretch of one context
    host: dict[str, list[int]] = field(default_factory=dict)  # kernel -> host ns of its launch
    phases: dict[str, list[PhaseSample]] = field(default_factory=dict)
    launches: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)


def measure_steps(model: Model, rig: Rig, grid: Grid, progress: Callable[[str], None] = lambda what: None) -> Samples:
    """Run the engines."""
    samples = Samples()
    decoding = Prefilled(model, model.preferred_block_size)
    for rows in grid.rows:
        _measure_rows(decoding, rig, grid, rows, GRAPHS, samples)
        if rows in grid.few_rows:
            _measure_rows(decoding, rig, grid, rows, EAGER, samples)
        progress(f"{rows} rows")
    _measure_chunks(model, rig, grid, samples)
    rig.release()
    progress("prompts")
    return samples


def _measure_rows(model: Prefilled, rig: Rig, grid: Grid, rows: int, switches: Switches, samples: Samples) -> None:
    """One engine. With graphs all contexts; eager the shortest, where the host is the bottleneck if anywhere."""
    probe, graphs = ProbeDevice(rig), switches is GRAPHS
    longest, size = grid.longest(rows), model.block_size
    with Decode(model, switches, probe, batch=rows, longest=longest, block_size=size) as decode:
        for number, context in enumerate(grid.contexts_of(rows) if graphs else grid.contexts[:1]):
            decode.start(context, 3 * grid.steps)
            if not graphs and not samples.launches:
                samples.launches = _count_launches(decode, rig, rows)
            if not number:
                _free_run(decode, probe, grid, graphs, samples)
            with probe.holding(_launch_ns(probe) + SLACK_NS) as steps:
                decode.steps(grid.steps)
                decode.finish()
            _sort(steps[1:-1], samples)  # the first and last of a stretch may be of another batch
    rig.release()


def _free_run(decode: Decode, probe: ProbeDevice, grid: Grid, graphs: bool, samples: Samples) -> None:
    """Undisturbed steps: host time of phases (with graphs: so an engine is meant to run) and of launches."""
    probe.clear()
    decode.steps(2 * grid.steps)
    if graphs:
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
    """Kernels of each launch of a step. Sampling takes what the forward pass left, so both are counted together."""
    slot, shape = decode.core.slots.slots[0], BatchShape(rows, rows, rows, 1, decode.core.sizes.max_model_len)
    fns = {kernel.name: kernel.fn for kernel in decode.core.launcher.kernels.build(slot, shape, False, False)}

    def forward_and_sample() -> None:
        fns["forward"]()
        fns["sample"]()

    counts = {name: rig.launches(name, fn) for name, fn in fns.items() if name != "sample"}
    both = rig.launches("sample", forward_and_sample)
    return counts | {"sample": both - counts["forward"] if both > counts["forward"] > 0 else both}


def _sort(steps: Iterable[Kernels], samples: Samples) -> None:
    """Graphs as they are; launches by name, their gaps left out."""
    replays: list[Sample] = []
    for step in steps:
        for name, work, ns, busy in step:
            if name == "graph":
                replays.append((work.rows, work.tokens, work.context, ns))
            else:
                samples.kernels.setdefault(name, []).append((work.rows, work.tokens, work.context, busy))
    if replays:
        samples.graphs.append(replays)


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
