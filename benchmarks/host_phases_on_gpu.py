"""Host time of the six phases and calls to the device, per steady step, on a real GPU.

    python benchmarks/host_phases_on_gpu.py [--model llama-8b] [--batches 32,256] [--device cuda]

The full asynchronous engine with graphs (rung 6) decodes; 200 steps are measured, without the host's wait in settle.
``plain`` is an engine without a trace, ``traced`` one that records every operation with timing events around it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import torch

from labkit.collector import no_collection
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.experiments import synthetic_prompts
from labkit.model import load_model
from labkit.sizes import Sizes
from labkit.trace.events import PHASES

STEPS, WARM_UP, PROMPT = 200, 30, 128
CALLS = ("launch", "copy", "replay", "record", "wait", "synchronize", "query")


class Stopwatch:
    """Times the phases of an engine and counts its calls to the device."""

    def __init__(self, engine: Engine) -> None:
        self.ns: dict[str, list[int]] = defaultdict(list)
        self.calls: Counter[str] = Counter()
        core: Any = engine.core
        for phase in PHASES:
            setattr(core, phase, self._timed(phase, getattr(core, phase)))
        # the order of the streams is a frozen dataclass
        object.__setattr__(core.order, "before_read", self._timed("wait", core.order.before_read))
        for call in CALLS:
            setattr(engine.device, call, self._counted(call, getattr(engine.device, call)))

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return function(*arguments)
            finally:
                self.ns[name].append(time.perf_counter_ns() - start)

        return timed

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return function(*arguments, **options)

        return counted

    def clear(self) -> None:
        """Forget what was seen."""
        self.ns.clear()
        self.calls.clear()


def measure(model: Any, batch: int, traced: bool, device: str) -> tuple[dict[str, float], Counter[str]]:
    """Median ms of each phase (settle without its wait), and the calls of all measured steps."""
    size = model.preferred_block_size
    longest = PROMPT + WARM_UP + STEPS + 50
    blocks = batch * -(-longest // size)
    sizes = Sizes(
        max_rows=batch,
        token_budget=8192,
        block_size=size,
        max_model_len=longest,
        num_blocks=blocks,
        graph_rows=(batch,),
    )
    with Engine(model, switches="cuda_graphs", device=device, sizes=sizes, trace=traced) as engine, no_collection():
        for prompt in synthetic_prompts(model, batch, PROMPT):
            engine.submit(prompt, SamplingParams(max_new_tokens=longest - PROMPT, eos_token_ids=()))
        watch = Stopwatch(engine)
        for step in range(WARM_UP + batch * PROMPT // 8192 + STEPS):
            if step == WARM_UP + batch * PROMPT // 8192:
                watch.clear()
            engine.step()
        medians = {phase: statistics.median(watch.ns[phase]) / 1e6 for phase in PHASES}
        medians["settle"] -= statistics.median(watch.ns["wait"]) / 1e6
        return medians, watch.calls


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama-8b")
    parser.add_argument("--batches", default="32,256")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    model: Any = load_model(arguments.model, **_options(arguments))
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
    print(f"{where}, torch {torch.__version__}, {arguments.model}; ms a step, median of {STEPS}")
    print(
        f"{'batch':>5} {'engine':<8}" + "".join(f"{phase:>10}" for phase in PHASES) + f"{'all six':>10}  calls a step"
    )
    for batch in map(int, arguments.batches.split(",")):
        for traced in (False, True):
            medians, calls = measure(model, batch, traced, arguments.device)
            cells = "".join(f"{medians[phase]:>10.3f}" for phase in PHASES)
            seen = ", ".join(f"{count / STEPS:.2f} {call}" for call, count in calls.items())
            name = "traced" if traced else "plain"
            print(f"{batch:>5} {name:<8}{cells}{sum(medians.values()):>10.3f}  {seen}", flush=True)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {} if arguments.model == "toy" else {"dtype": torch.bfloat16, "device": arguments.device}


if __name__ == "__main__":
    main()
