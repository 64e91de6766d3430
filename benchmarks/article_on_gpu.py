"""The article's experiment on a real GPU: 8B shape, batch 32, prompt 128, greedy, no end of sequence.

    python benchmarks/article_on_gpu.py [--new-tokens 8192] [--runs sync,async,peer-sync,peer-async] [--out DIR]

sync and async differ in the loop alone: both run the fused, compiled model with one graph a step. The peers are
transformers' own ``generate_batch`` on the same weights (before they are merged) with flash-attn 2. Total time is from
the first submit to the last token, everything compiled and captured before. GPU active is at stream level: the share
of the run in which a launch or graph replay is under way on the compute stream, from CUDA events. With --out,
windows of 12 steps at three points of each labkit run are saved as traces.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from labkit.analysis.occupancy import report
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.experiments import synthetic_prompts
from labkit.model import load_model
from labkit.model.fused import FusedModel
from labkit.sizes import Sizes
from labkit.switches import ladder
from labkit.trace.events import Trace

BATCH, PROMPT = 32, 128
SWITCHES = {"sync": ladder("events").with_(cuda_graphs=True), "async": ladder("cuda_graphs")}


def labkit_run(model: FusedModel, name: str, new_tokens: int, out: Path | None) -> dict[str, Any]:
    """One labkit run, traced."""
    size = model.preferred_block_size
    longest = PROMPT + new_tokens
    blocks = BATCH * -(-longest // size)
    sizes = Sizes(
        max_rows=BATCH,
        token_budget=4096,
        block_size=size,
        max_model_len=longest,
        num_blocks=blocks,
        graph_rows=(BATCH,),
    )
    prompts = synthetic_prompts(model, BATCH, PROMPT)
    with Engine(model, switches=SWITCHES[name], device="cuda", sizes=sizes) as engine:
        engine.generate(prompts, SamplingParams(max_new_tokens=4))
        start = time.perf_counter()
        run = engine.generate(prompts, SamplingParams(max_new_tokens=new_tokens))
        seconds = time.perf_counter() - start
    assert run.trace is not None
    if out is not None:
        save_windows(run.trace, name, out)
    found = report(run.trace)
    phases = {phase: time.mean_ns / 1e6 for phase, time in found.phases.items()}
    print_gaps(run.trace)
    return {
        "seconds": found.window_ns / 1e9,
        "wall": seconds,
        "active": found.stream_ns / found.window_ns,
        "waits": found.host_waits_per_step,
        "host ms": sum(phases.values()) - wait_ms(run.trace),
        "tokens": run.tokens,
    }


def print_gaps(trace: Trace) -> None:
    """Where the compute stream stood still: the common gap between two steps, and the longest ones."""
    busy = sorted((span.start_ns, span.end_ns, span.step) for span in trace.lane("compute"))
    gaps = sorted((start - end, step) for (_, end, _), (start, _, step) in pairwise(busy))
    total = sum(max(0, gap) for gap, _ in gaps)
    middle = statistics.median(gap for gap, _ in gaps) / 1e3
    longest = ", ".join(f"{gap / 1e6:.1f} ms before step {step}" for gap, step in gaps[:-9:-1])
    print(f"  between operations: median {middle:.1f} us, together {total / 1e6:.0f} ms; longest: {longest}")


def wait_ms(trace: Trace) -> float:
    """Mean time of the host's waits, ms."""
    waits = [span.duration_ns / 1e6 for span in trace.of_kind("synchronize")]
    return statistics.fmean(waits) if waits else 0.0


def save_windows(trace: Trace, name: str, out: Path) -> None:
    """Twelve steps at the start, at context about 512 and near the end."""
    for label, first in (("start", 0), ("512", 384), ("end", trace.steps - 20)):
        spans = [span for span in trace.spans if first <= span.step < first + 12]
        if spans:
            window = trace.window(min(s.start_ns for s in spans), max(s.end_ns for s in spans))
            window.save(str(out / f"{name}-{label}.json.gz"))


def peer_run(module: Any, use_async: bool, new_tokens: int) -> dict[str, Any]:
    """transformers' generate_batch."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    prompts = synthetic_prompts(load_model("toy"), BATCH, PROMPT)
    config = ContinuousBatchingConfig(use_async_batching=use_async)

    def generate(count: int) -> Any:
        generation = GenerationConfig(max_new_tokens=count, do_sample=False, eos_token_id=-1, pad_token_id=0)
        return module.generate_batch(
            inputs=prompts, generation_config=generation, continuous_batching_config=config, progress_bar=False
        )

    generate(8)
    start = time.perf_counter()
    outputs = generate(new_tokens)
    seconds = time.perf_counter() - start
    tokens = [output.generated_tokens for output in outputs.values()]
    assert [len(t) for t in tokens] == [new_tokens] * BATCH, "the peer did not generate every token"
    return {"seconds": seconds, "wall": seconds, "tokens": tokens}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new-tokens", type=int, default=8192)
    parser.add_argument("--runs", default="sync,async,peer-sync,peer-async")
    parser.add_argument("--model", default="llama-8b")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    base = load_model(arguments.model, dtype=torch.bfloat16, device="cuda")
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments.model}, {arguments.new_tokens} tokens"
    )
    print(f"{'run':<12}{'seconds':>9}{'ms/step':>9}{'GPU active':>12}{'host ms':>9}{'waits/step':>12}", flush=True)
    fused: FusedModel | None = None
    for name in sorted(arguments.runs.split(","), key=lambda name: not name.startswith("peer")):
        if name.startswith("peer"):
            base.module.set_attn_implementation("flash_attention_2")
            result = peer_run(base.module, name == "peer-async", arguments.new_tokens)
            torch.cuda.empty_cache()
        else:
            fused = fused or FusedModel(base, compiled=True)
            result = labkit_run(fused, name, arguments.new_tokens, arguments.out)
        cells = f"{result['seconds']:>9.1f}{result['seconds'] / arguments.new_tokens * 1e3:>9.2f}"
        if "active" in result:
            cells += f"{result['active']:>12.2%}{result['host ms']:>9.2f}{result['waits']:>12.2f}"
        print(f"{name:<12}{cells}", flush=True)


if __name__ == "__main__":
    main()
