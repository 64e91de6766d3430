"""Record the traces that come with the lab: steady windows, and whole runs in numbers.

    python benchmarks/record.py --out DIR [--names sync-eager-512,...] [--steps 14] [--whole 8192]

Windows: the 8B shape in bfloat16, random weights, batch 32. ``eager`` is transformers' modules, kernel by kernel;
``graphs`` is the compiled form, one graph a step; sync and async differ in the loop alone. The prompts are not
computed: K and V of the context are random numbers (``labkit.bench.decode.Prefilled``). --whole runs the article's
experiment (prompt 128, that many new tokens) synchronously and asynchronously with graphs, with real prompts, and
writes its numbers to whole_runs.json. What it writes belongs into labkit/trace/recordings.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpu_common import about, header, shaped, table, took

from labkit.analysis.occupancy import report
from labkit.bench.decode import Decode, Prefilled
from labkit.device import open_device
from labkit.device.traced import TracedDevice
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.experiments import synthetic_prompts
from labkit.model.api import Model
from labkit.sizes import Sizes
from labkit.switches import Switches, ladder
from labkit.trace.events import Trace
from labkit.trace.recorded import NAMES, WHOLE_RUNS, WholeRun

BATCH, PROMPT = 32, 128
STRETCHES = 64
MODES: dict[str, Switches] = {
    "sync-eager": ladder("events"),
    "async-eager": ladder("carry_over"),
    "sync-graphs": ladder("events").with_(cuda_graphs=True, compiled=True),
    "async-graphs": ladder("cuda_graphs").with_(compiled=True),
}
HOW = "K and V of the context are random numbers; the first step follows an idle device"


def windows(model: Any, mode: str, contexts: Sequence[int], steps: int, device: str) -> dict[str, Trace]:
    """A window of steady steps at each context length, all from one engine."""
    switches = MODES[mode]
    chosen, size = model.compiled() if switches.compiled else model, model.preferred_block_size
    traced = TracedDevice(open_device(device))
    meta = {"source": "recorded", "model": model.name, "switches": list(switches.on), "batch": BATCH, "how": HOW}
    found = {}
    with Decode(
        Prefilled(chosen, size),  # type: ignore[arg-type]
        switches.with_(compiled=False),  # the model is in that form already
        traced,
        batch=BATCH,
        longest=max(contexts) + steps + 32,
        block_size=size,
    ) as decode:
        for context in contexts:
            decode.start(context - 2, steps + 4)
            traced.take()
            decode.steps(steps)
            found[f"{mode}-{context}"] = traced.take(**meta, context=context, **about())
    return found


def whole_run(model: Model, mode: str, new_tokens: int, device: str) -> WholeRun:
    """The article's experiment, traced, in numbers."""
    size, longest = model.preferred_block_size, PROMPT + new_tokens
    sizes = Sizes(
        max_rows=BATCH,
        token_budget=4096,
        block_size=size,
        max_model_len=longest,
        num_blocks=BATCH * -(-longest // size),
        graph_rows=(BATCH,),
    )
    prompts = synthetic_prompts(model, BATCH, PROMPT)
    with Engine(model, switches=MODES[mode], device=device, sizes=sizes) as engine:
        engine.generate(prompts, SamplingParams(max_new_tokens=4, eos_token_ids=()))
        run = engine.generate(prompts, SamplingParams(max_new_tokens=new_tokens, eos_token_ids=()))
    assert run.trace is not None
    found = report(run.trace)
    seconds = round(found.window_ns / 1e9, 3)
    host = {name: phase.mean_ns / 1e6 for name, phase in found.phases.items()}
    stretches = list(stretches_of(run.trace))
    contexts, times = zip(*stretches, strict=True)
    return WholeRun(mode, seconds, found.steps, found.stream_active, host, contexts, times, about())


def stretches_of(trace: Trace) -> list[tuple[int, float]]:
    """(context length, median ms of a step) of stretches of equal length."""
    ends: dict[int, int] = {}
    for span in trace.lane("compute"):
        ends[span.step] = max(ends.get(span.step, 0), span.end_ns)
    times = [(step, (ends[step] - ends[before]) / 1e6) for before, step in pairwise(sorted(ends))]
    length, first = max(1, len(times) // STRETCHES), min(ends)
    parts = [times[at : at + length] for at in range(0, len(times) - length + 1, length)]
    return [
        (PROMPT + part[len(part) // 2][0] - first, round(statistics.median(ms for _, ms in part), 4)) for part in parts
    ]


def save(traces: dict[str, Trace], out: Path) -> list[tuple[object, ...]]:
    """Write the windows; a line of the table for each."""
    lines: list[tuple[object, ...]] = []
    for name, trace in traces.items():
        path = out / f"{name}.json.gz"
        trace.save(str(path))
        found = report(trace)
        share = round(found.stream_active, 4)
        lines.append((name, trace.steps, len(trace), found.ns_per_step / 1e6, share, round(path.stat().st_size / 1024)))
    return lines


def main(argv: Sequence[str] | None = None, base: Any = None) -> None:
    """Record, and print what was recorded. ``base``: a model that is there already."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--names", default=",".join(NAMES))
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--whole", type=int, default=0, help="new tokens of the whole runs; 0: none")
    parser.add_argument("--whole-modes", default="sync-graphs,async-graphs")
    parser.add_argument("--shape", default="8B")
    parser.add_argument("--device", default="cuda", choices=["cuda", "virtual"])
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    header()
    model = base or shaped(arguments.shape)
    lines: list[tuple[object, ...]] = [("window", "steps", "spans", "ms per step", "stream active", "KiB")]
    names = [name for name in arguments.names.split(",") if name]
    for mode in MODES:
        contexts = [int(name.rpartition("-")[2]) for name in names if name.rpartition("-")[0] == mode]
        if contexts:
            with took(mode):
                lines += save(windows(model, mode, contexts, arguments.steps, arguments.device), arguments.out)
    if len(lines) > 1:
        table(lines)
    runs = []
    for mode in arguments.whole_modes.split(",") if arguments.whole else ():
        with took(f"whole run {mode}"):
            runs.append(whole_run(model, mode, arguments.whole, arguments.device))
        run, host = runs[-1], sum(ms for name, ms in runs[-1].host_ms.items() if name != "settle")
        print(
            f"{run.name}: {run.seconds:.1f} s, {run.steps} steps, {run.seconds / run.steps * 1e3:.3f} ms a step, "
            f"stream active {run.stream_active:.2%}, host without settle {host:.3f} ms a step",
            flush=True,
        )
        (arguments.out / WHOLE_RUNS).write_text(json.dumps([asdict(one) for one in runs]) + "\n")


if __name__ == "__main__":
    main()
