"""Where the time of a steady decode step goes, kernel group by kernel group, beside what each group must read.

    python benchmarks/kernel_groups.py [--contexts 512,4096] [--batch 32] [--shape 8B] [--form compiled] [--out DIR]

The asynchronous loop with one graph a step (rung 6). ``torch.profiler`` records the device's own activities: every
kernel of a graph replay, copies, and the host's CUDA calls. Groups are told apart by their place in the step: the
matrix products of a layer follow one another as QKV, O, gate-up, down. A group's floor is the bytes of its weights (of
attention: K and V of the whole context) over the bandwidth of a large copy in the same run; other groups work on what
is in the caches, and have none. Profiling makes the gaps between kernels longer, so "gaps and the rest" is the step's
time without the profiler minus the time in which a kernel runs.

The prompts are not computed: K and V of the context are random numbers (``labkit.bench.decode.Prefilled``), which takes
the kernels just as long. With --out, four steps are saved as a labkit trace and as the profiler's file of these steps.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from gpu_common import about, header, shaped, table, took

from labkit.analysis.kernels import with_kernels
from labkit.analysis.occupancy import report
from labkit.bench.decode import Decode, Prefilled
from labkit.device.cuda import CudaDevice
from labkit.device.cuda_rig import CudaRig
from labkit.device.traced import TracedDevice
from labkit.errors import InvalidArgument
from labkit.model.fused import FusedModel
from labkit.model.hf import HFModel
from labkit.switches import ladder
from labkit.trace.events import Span, Trace
from labkit.trace.profiler import load_profile_trace

STEPS = 8
MATRICES = ("QKV product", "O product", "gate-up product", "down product")
HEAD, ATTENTION, WRITE, BETWEEN = "lm head", "attention", "rotary, KV write", "norms, SwiGLU, residuals"
START, END, COPIES = "carry-over, embedding, start", "sampling, end", "copies and memsets"
_PRODUCT = re.compile(r"gemm|nvjet|gemv|cublas", re.IGNORECASE)
_KEPT = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver")
_KEPT_ARGS = ("stream", "correlation", "device", "bytes", "graph id", "graph node id", "grid", "block")


def profiled(work: Callable[[], object], path: Path, warm_up: Callable[[], object] = lambda: None) -> Trace:
    """Run ``work`` under the profiler; its device activities and CUDA calls. ``warm_up`` runs under it too and is left
    out: the first calls under a profiler are slow."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    torch.cuda.synchronize()
    with torch.profiler.profile(
        activities=activities, schedule=torch.profiler.schedule(wait=0, warmup=1, active=1), acc_events=True
    ) as profiler:
        warm_up()
        torch.cuda.synchronize()
        profiler.step()
        work()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(path))
    return load_profile_trace(path)


def graph_steps(profile: Trace, steps: int) -> list[list[Span]]:
    """The device events of each graph launch, in order of start. Where the profiler does not say which launch an event
    belongs to, the compute lane in that many equal parts."""
    spans = {span.id: span for span in profile.spans}
    launched: dict[int, list[Span]] = {}
    for edge in profile.edges:
        if "GraphLaunch" in spans[edge.before].name:
            launched.setdefault(edge.before, []).append(spans[edge.after])
    if launched:
        return [sorted(step, key=lambda span: span.start_ns) for step in launched.values()]
    print("  no kernel names its graph launch: the compute lane is cut into equal parts")
    events = sorted(profile.lane("compute"), key=lambda span: span.start_ns)
    length = len(events) // steps
    return [events[at : at + length] for at in range(0, length * steps, length)]


def groups(step: list[Span], layers: int) -> list[str]:
    """The group of each kernel of one step."""
    products = [n for n, kernel in enumerate(step) if is_product(kernel.name)]
    products = products[-(4 * layers + 1) :]  # before them the rotary tables may take one
    place = {number: MATRICES[n % 4] if n < 4 * layers else HEAD for n, number in enumerate(products)}
    if len(products) != 4 * layers + 1:
        place = dict.fromkeys(products, f"{len(products)} products, not {4 * layers + 1}: which is which is not known")
    found, last = [], START
    for number, kernel in enumerate(step):
        last = place.get(number, last)
        found.append(place.get(number) or other_group(kernel, last, number > products[-1], number < products[0]))
    return found


def is_product(name: str) -> bool:
    return bool(_PRODUCT.search(name)) and not any(part in name for part in ("flash", "triton", "splitKreduce"))


def other_group(kernel: Span, last: str, after: bool, before: bool) -> str:
    """The group of a kernel that is no matrix product; a split-K reduction belongs to the product before it."""
    if kernel.kind == "copy" or kernel.name.startswith(("Memset", "Memcpy")):
        return COPIES
    if before or after:
        return END if after else START
    if "splitKreduce" in kernel.name:
        return last
    if "flash" in kernel.name:
        return ATTENTION
    return WRITE if "index_put" in kernel.name else BETWEEN


def floors(model: HFModel, batch: int, context: int) -> dict[str, int]:
    """Bytes that each group must read in a step."""
    config, width = model.module.config, model.module.dtype.itemsize
    layers, hidden, inner = config.num_hidden_layers, config.hidden_size, config.intermediate_size
    size = config.head_dim or hidden // config.num_attention_heads
    queries, keys = config.num_attention_heads * size, config.num_key_value_heads * size
    return {
        MATRICES[0]: layers * (queries + 2 * keys) * hidden * width,
        MATRICES[1]: layers * hidden * queries * width,
        MATRICES[2]: layers * 2 * inner * hidden * width,
        MATRICES[3]: layers * hidden * inner * width,
        ATTENTION: layers * batch * context * 2 * keys * width,
        HEAD: config.vocab_size * hidden * width,
    }


def rows_of(steps: list[list[Span]], step_ms: float, floor: dict[str, int], gbps: float, layers: int) -> Iterator[Any]:
    """The table's lines, the group farthest from its floor first."""
    yield "group", "kernels", "ms", "floor ms", "above floor ms"
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for step in steps:
        for kernel, group in zip(step, groups(step, layers), strict=True):
            times[group] += kernel.duration_ns
            counts[group] += 1
    lines = []
    for group, ns in times.items():
        ms, least = ns / len(steps) / 1e6, floor.get(group, 0) / gbps / 1e6
        lines.append((group, counts[group] / len(steps), ms, least, ms - least))
    yield from sorted(lines, key=lambda line: -line[-1])
    running = sum(times.values()) / len(steps) / 1e6
    least = sum(floor.values()) / gbps / 1e6
    yield "all kernels", sum(counts.values()) / len(steps), running, least, running - least
    yield "gaps and the rest", 0.0, step_ms - running, 0.0, step_ms - running
    yield "step without the profiler", 0.0, step_ms, least, step_ms - least


def calls_per_step(profile: Trace, steps: int) -> str:
    """The host's CUDA calls per step, by name."""
    counts = Counter(span.name for span in profile.spans if span.lane == "CPU" and span.name != "cudaDeviceSynchronize")
    return ", ".join(f"{name} {count / steps:g}" for name, count in counts.most_common())


def save(trace: Trace, profile: Path, name: str, out: Path) -> None:
    """The labkit trace, and the profiler's file with what is not read left out."""
    trace.save(str(out / f"{name}.json.gz"))
    content = json.loads(profile.read_text())
    kept = [e for e in content["traceEvents"] if e.get("cat") in _KEPT]
    for event in kept:
        event["args"] = {key: value for key, value in event.get("args", {}).items() if key in _KEPT_ARGS}
    content["traceEvents"] = kept
    packed = gzip.compress(json.dumps(content, separators=(",", ":")).encode(), mtime=0)
    (out / f"{name}-profiler.json.gz").write_bytes(packed)
    print(f"  saved {name}.json.gz and {name}-profiler.json.gz ({len(packed) / 1024:.0f} KiB)")


def one_context(model: Any, base: HFModel, batch: int, context: int, gbps: float, scratch: Path) -> None:
    """The groups of a step at one context length, and the host's calls."""
    size = model.preferred_block_size
    with Decode(
        Prefilled(model, size), ladder("cuda_graphs"), CudaDevice(), batch=batch, longest=context + 128, block_size=size
    ) as decode:
        steady = decode.steady(context, 20)
        decode.start(context - STEPS // 2, STEPS + 4)
        decode.steps(4)
        profile = profiled(lambda: decode.steps(STEPS), scratch / "groups.json", lambda: decode.steps(2))
    steps, layers = graph_steps(profile, STEPS), base.module.config.num_hidden_layers
    print(f"context {context}, batch {batch}: {len(steps)} steps under the profiler")
    table(list(rows_of(steps, steady.ms, floors(base, batch, context), gbps, layers)))
    period = [(b[0].start_ns - a[0].start_ns) / 1e6 for a, b in pairwise(steps)]
    print(f"  step under the profiler {statistics.median(period):.3f} ms; host calls per step: ", end="")
    print(calls_per_step(profile, STEPS), flush=True)


def both_levels(model: Any, batch: int, context: int, out: Path | None, scratch: Path) -> None:
    """The same steps as a labkit trace and as a profile: GPU active at stream level and at kernel level."""
    size = model.preferred_block_size
    device = TracedDevice(CudaDevice(timing=True))
    with Decode(
        Prefilled(model, size), ladder("cuda_graphs"), device, batch=batch, longest=context + 128, block_size=size
    ) as decode:
        decode.start(context, 24)
        decode.steps(4)
        path = scratch / "levels.json"
        profile = profiled(lambda: decode.steps(4), path, lambda: (decode.steps(2), device.take()))
        switches = ladder("cuda_graphs").with_(compiled=model.is_compiled)
        meta = {"source": "live", "model": model.name, "switches": list(switches.on), "batch": batch}
        trace = device.take(**meta, **{key: value for key, value in about().items() if key != "gpu"})
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save(trace, path, f"kernels-{context}", out)
    try:
        merged = with_kernels(trace, profile)
    except InvalidArgument as error:
        print(f"context {context}: {error}")
        return
    found, kernels = report(merged), merged.meta["kernels"]
    print(f"context {context}: the same {trace.steps} steps, from an idle device on")
    print(f"  stream active {found.stream_active:.2%}: an operation (graph replay) is under way, from CUDA events")
    print(f"  GPU active    {found.gpu_active:.2%}: a kernel runs, from the profiler")
    print(f"  {kernels['count']} kernels, {kernels['outside']} in no operation")
    print(f"  clocks aligned by {kernels['pairs']} calls to within {kernels['error_ns'] / 1000:.1f} us", flush=True)


def main(argv: Sequence[str] | None = None, base: HFModel | None = None) -> None:
    """Print the tables. ``base``: a model that is there already, so that several benchmarks share it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="8B")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--contexts", default="512,4096")
    parser.add_argument("--form", default="compiled", choices=["merged", "compiled"])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    header()
    with tempfile.TemporaryDirectory() as scratch:
        with took("the profiler's own start"):
            profiled(lambda: torch.ones(1, device="cuda").add_(1), Path(scratch) / "first.json")
        with took("model"):
            base = base or shaped(arguments.shape)
            model = base.compiled() if arguments.form == "compiled" else FusedModel(base)
            gbps = CudaRig().read_bandwidth()
        print(f"{base.name}, {arguments.form}, copy bandwidth {gbps:.0f} GB/s (read and written)")
        contexts = [int(context) for context in arguments.contexts.split(",")]
        for context in contexts:
            with took(f"context {context}"):
                one_context(model, base, arguments.batch, context, gbps, Path(scratch))
        with took("both levels"):
            both_levels(model, arguments.batch, contexts[0], arguments.out, Path(scratch))


if __name__ == "__main__":
    main()
