"""Where asynchrony does not pay: what it saves of a step over batch size, for a small model, a large one, a busy host.

    python benchmarks/batch_curve.py [--models 135m,8b] [--batches 1,2,4,...,256] [--busy-host-us 2000] [--json FILE]

Both loops run on the same streams and kernels, both with graphs and both eager: rung 2 against rung 5. The busy host
spins for so many microseconds in every step. Step time is the median of the quietest of three stretches, in eager
curves of three passes over all batch sizes: a host that others use too is disturbed for seconds, then is not, and an
eager step is the host's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from labkit.bench.decode import Decode, Prefilled
from labkit.bench.gain import BusyHost, GainPoint, crossover
from labkit.bench.models import FORMS, bench_model, open_rig
from labkit.device.calibrate.rig import Rig
from labkit.switches import Switches, ladder

PAIR = (ladder("events"), ladder("carry_over"))  # they differ in the loop, and what it needs
BLOCKS, EAGER_PASSES = 3, 3


def main() -> int:
    """Print the curves and their sentences."""
    arguments = _arguments()
    rig, begun = open_rig(arguments.device, arguments.profile), time.perf_counter()
    batches, curves, sentences = [int(b) for b in arguments.batches.split(",")], {}, []
    print(f"{rig.about}, {arguments.form} form, context {arguments.context}")
    for name in arguments.models.split(","):
        model = bench_model(name, arguments.form, arguments.device)
        prefilled = Prefilled(model, model.preferred_block_size)
        for graphs, busy_ns, what in settings(arguments):
            title = f"{name}, {what}"
            steps = arguments.steps if graphs else max(3, arguments.steps // 2)
            points = curve(rig, prefilled, graphs, busy_ns, batches, arguments.context, steps)
            curves[title] = [point.to_dict() for point in points]
            sentences.append(crossover(title, points))
            print(f"{title}  [{time.perf_counter() - begun:.0f} s]")
            print(table(points), flush=True)
        del model, prefilled
        rig.release()
    print("\n".join(sentences))
    if arguments.json:
        whole = {"about": rig.about, "command": " ".join(["python", *sys.argv]), "curves": curves}
        arguments.json.write_text(json.dumps(whole | {"sentences": sentences}, indent=1))
    return 0


def settings(arguments: argparse.Namespace) -> list[tuple[bool, int, str]]:
    """With graphs or not, ns of more work on the host, and what to call it."""
    busy = arguments.busy_host_us
    found = [(True, 0, "graphs"), (False, 0, "eager")]
    return [*found, (True, busy * 1000, f"graphs, {busy} us more on the host")] if busy else found


def curve(
    rig: Rig, model: Prefilled, graphs: bool, busy_ns: int, batches: list[int], context: int, steps: int
) -> list[GainPoint]:
    """Both loops at every batch size."""
    times: dict[tuple[int, Switches], list[float]] = {}
    for _ in range(1 if graphs else EAGER_PASSES):
        for batch in batches:
            for one in PAIR:
                ns = step_ns(rig, model, one.with_(cuda_graphs=graphs), busy_ns, batch, context, steps)
                times.setdefault((batch, one), []).append(ns)
    return [GainPoint(batch, *(min(times[batch, one]) for one in PAIR)) for batch in batches]


def step_ns(
    rig: Rig, model: Prefilled, switches: Switches, busy_ns: int, batch: int, context: int, steps: int
) -> float:
    """Step time of one engine."""
    observers = (BusyHost(rig.device, busy_ns),) if busy_ns else ()
    with Decode(
        model,
        switches,
        rig.device,
        batch=batch,
        longest=context + 4 * steps * BLOCKS,
        block_size=model.block_size,
        observers=observers,
    ) as decode:
        steady = decode.steady(context, steps, BLOCKS)
    rig.release()
    return steady.ns


def table(points: list[GainPoint]) -> str:
    """Three rows over the batch sizes."""
    rows = (
        ("batch", [f"{p.batch:>8}" for p in points]),
        ("sync ms", [f"{p.sync_ns / 1e6:>8.2f}" for p in points]),
        ("async ms", [f"{p.async_ns / 1e6:>8.2f}" for p in points]),
        ("gain", [f"{p.gain:>8.1%}" for p in points]),
    )
    return "\n".join(f"  {name:<9}{''.join(cells)}" for name, cells in rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="135m,8b")
    parser.add_argument("--form", default="fused", choices=FORMS)
    parser.add_argument("--batches", default="1,2,4,8,16,32,64,128,256")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--busy-host-us", type=int, default=2000, help="0: leave the busy host out")
    parser.add_argument("--steps", type=int, default=12, help="in each of three stretches; eager half as many")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--device", default="cuda", help="virtual: the profile takes the place of the models")
    parser.add_argument("--profile", default="h200-8b")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
