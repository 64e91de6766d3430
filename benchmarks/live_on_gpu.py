"""The engine of the Live panel on a real GPU, without widgets: it runs on and on while its switches are flipped.

    python benchmarks/live_on_gpu.py [--device cuda] [--seconds 2]

Needs plotly, which draws each stretch as the panel would. The flips are gone through twice, so that the second round
must end in as much GPU memory as the first. After each flip the run goes on for the given seconds, in the panel's
bursts; a line says what it did: steps since the flip, tokens/s and GPU active of the last steps, finished requests and
how many of them differ from rung 0's, and the bars of the picture. A combination that cannot be right may give wrong
tokens and never an error. Status 1 if a right one gives a wrong token, a flip is not marked, or memory grows.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

import torch

from labkit.switches import ladder
from labkit.viz.panels.live_figure import live_figure
from labkit.viz.panels.running import Running

BURST = 8
FLIPS: tuple[dict[str, bool], ...] = (
    {"cuda_graphs": True},
    {"events": False},
    {"events": True},
    {"carry_over": False},
    {"carry_over": True, "cuda_graphs": False},
    {"lookahead": False, "double_buffering": False, "carry_over": False},
    {"streams": False, "events": False},
    dict.fromkeys(ladder("carry_over").on, True),
)


def stretch(running: Running, flips: dict[str, bool], seconds: float) -> list[str]:
    """Flip, run for so many seconds, print a line; what is wrong about it."""
    last = list(running.flips)[-1:]
    running.want(**flips)
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        running.advance(BURST)
    now, picture = running.report(), live_figure(running.trace, running.flips)
    bars = sum(len(trace["x"]) for trace in picture["data"] if trace["type"] == "bar")
    print(
        f"{_name(flips):<58}{running.steps:>7}{running.tokens_per_s:>12,.0f}{now.gpu_active:>9.1%}"
        f"{running.finished:>7}{running.wrong:>7}{bars:>6}  {'host held' if running.held else ''}"
    )
    return list(_wrong(running, bool(flips), list(running.flips)[-1:] != last))


def _wrong(running: Running, flipped: bool, marked: bool) -> list[str]:
    name = ", ".join(running.switches.on)
    found = {
        f"{name}: {running.wrong} wrong requests": running.explanation.right and running.wrong,
        f"{name}: no request finished": not running.finished,
        f"{name}: the flip is not marked": marked != flipped,
        f"{name}: flips still wait": bool(running.pending),
    }
    return [text for text, bad in found.items() if bad]


def _name(flips: dict[str, bool]) -> str:
    return ", ".join(f"{name} {'on' if on else 'off'}" for name, on in flips.items()) or "carry_over, the start"


def allocated(device: str) -> int:
    """Bytes of GPU memory in use, Python's cycles collected: a closed device is one, its memory is freed before."""
    gc.collect()
    return torch.cuda.memory_allocated() if device == "cuda" else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "virtual"])
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    running = Running(ladder("carry_over"), device=options.device)
    print(f"{running.device_name}, torch {torch.__version__}")
    print(f"{'flip':<58}{'steps':>7}{'tokens/s':>12}{'active':>9}{'ended':>7}{'wrong':>7}{'bars':>6}")
    bad, memory = stretch(running, {}, options.seconds), []
    for _ in range(2):
        for flips in FLIPS:
            bad += stretch(running, flips, options.seconds)
        memory.append(allocated(options.device))
    drains = ", ".join(f"{(flip.end_ns - flip.start_ns) / 1e6:.2f}" for flip in running.flips)
    print(f"drain and rebuild of each flip: {drains} ms on the run's clock")
    print(f"GPU memory in use after each round: {memory[0]:,} and {memory[1]:,} bytes")
    if memory[1] > memory[0]:
        bad.append(f"memory grew from {memory[0]} to {memory[1]} bytes")
    running.close()
    print("\n".join(bad) or "all as it should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
