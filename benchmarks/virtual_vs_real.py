"""How well the virtual GPU predicts a real one, on cases that calibration has not seen.

    python benchmarks/virtual_vs_real.py [--model 8b] [--form fused] [--profile FILE] [--out FILE] [--json FILE]

Without --profile it calibrates first, in the same process: a host that others use too is not equally fast all day.
--out keeps that profile. Each case is a batch and a context, synchronous and asynchronous, eager and with graphs; the
synchronous loop is rung 2 (streams and events), the asynchronous one rung 5.

Step time is the median of the quietest of five stretches of steps, eager cases in two passes some time apart: their
time is the host's, and a host that others use too is disturbed for a while, then is not. Idle is the share of a step in
which the GPU waits: 1 minus what the step's kernels take back to back (measured with a kernel in front of them that
holds them back until all are launched) over the step time. Gain is the share of the synchronous step that asynchrony
saves. All engines have room for the same context, as those of the calibration have: flash-attn splits a decode step by
what the block table could hold, not by what it holds. --json keeps every measurement, those of the calibration too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from labkit.bench.accuracy import HEADER, Compared, gains, verdict
from labkit.bench.calibrate import Calibration, calibrate
from labkit.bench.decode import Decode, Prefilled
from labkit.bench.models import FORMS, bench_model, open_rig
from labkit.bench.predict import Case, Measured, measure, predict
from labkit.bench.probe import ProbeDevice
from labkit.bench.step_costs import Grid
from labkit.device.calibrate.calls import per_call
from labkit.device.calibrate.rig import Rig
from labkit.device.costs import load_profile
from labkit.model.api import Model
from labkit.switches import Switches, ladder

PAIRS = "1x300,6x1500,12x3000,20x300,24x3000,30x1500,44x3000,48x1500"
EAGER = (ladder("events"), ladder("carry_over"))
GRAPHS = tuple(switches.with_(cuda_graphs=True) for switches in EAGER)
STEPS, BLOCKS = 8, 5


def main() -> int:
    """Print the table; status 1 if the aims are not met."""
    arguments = _arguments()
    clock = Clock()
    rig = open_rig(arguments.device, arguments.true_profile)
    model = bench_model(arguments.model, arguments.form, arguments.device)
    clock.tell(f"{rig.about}, {arguments.model} {arguments.form}: model ready")
    calibration = None if arguments.profile else calibrated(rig, model, arguments)
    profile = load_profile(arguments.profile) if calibration is None else calibration.profile
    clock.tell("calibrated")
    pairs = [tuple(map(int, pair.split("x"))) for pair in arguments.pairs.split(",")]
    speed = [launch_ns(rig)]
    found = run_cases(rig, model, pairs, GRAPHS + EAGER)
    clock.tell("cases, first pass")
    speed.append(launch_ns(rig))
    busy = {case: one.busy_ns for case, one in found.items()}
    for case, again in run_cases(rig, model, pairs, EAGER, busy).items():
        if again.ns < found[case].ns:
            found[case] = replace(found[case], steady=again.steady)
    clock.tell("eager cases, second pass")
    speed.append(launch_ns(rig))
    size = model.preferred_block_size
    compared = [
        Compared(case, real, predict(profile, case, block_size=size, longest=room(case), steps=STEPS, blocks=BLOCKS))
        for case, real in sorted(found.items(), key=lambda item: (item[0].batch, item[0].context, item[0].name))
    ]
    clock.tell("predictions")
    tell(compared, speed)
    if arguments.json:
        whole: dict[str, Any] = {"about": rig.about, "command": command()}
        whole["cases"] = [one.to_dict() for one in compared]
        whole |= {"profile": json.loads(profile.to_json()), "verdict": verdict(compared).to_dict()}
        whole["samples"] = None if calibration is None else calibration.samples.to_dict()
        arguments.json.write_text(json.dumps(whole))
    return 0 if verdict(compared).good else 1


def calibrated(rig: Rig, model: Model, arguments: argparse.Namespace) -> Calibration:
    """Calibrate, and say what was left."""
    name = arguments.out.stem if arguments.out else "calibrated"
    found = calibrate(rig, model, name, command=command(), quick=arguments.quick)
    if arguments.out:
        arguments.out.write_text(found.profile.to_json())
    print("\n".join(map(str, found.rests)))
    return found


def run_cases(
    rig: Rig,
    model: Model,
    pairs: list[tuple[int, ...]],
    modes: tuple[Switches, ...],
    busy: dict[Case, float] | None = None,
) -> dict[Case, Measured]:
    """Every mode of every batch and context. ``busy``: kernel times that are known already."""
    size, found = model.preferred_block_size, {}
    for batch, context in pairs:
        prefilled = Prefilled(model, size)
        known: dict[bool, float] = {}  # both loops run the same kernels but for the carry-over
        for switches in modes:
            case, probe, graphs = Case(batch, context, switches), ProbeDevice(rig), switches.cuda_graphs
            with Decode(prefilled, switches, probe, batch=batch, longest=room(case), block_size=size) as decode:
                busy_ns = (busy or {}).get(case, known.get(graphs, 0.0))
                found[case] = measure(decode, probe, case, STEPS, BLOCKS, busy_ns=busy_ns)
            known[graphs] = found[case].busy_ns
            rig.release()
    return found


def room(case: Case) -> int:
    """Tokens that each request of a case has room for."""
    return max(Grid().longest(case.batch), case.context + 3 * STEPS * BLOCKS)


def tell(compared: list[Compared], speed: list[int]) -> None:
    """Print all that was found."""
    print(HEADER)
    for one in compared:
        print(one.row())
    for gain in gains(compared):
        kind = "graphs" if gain.graphs else "eager"
        print(f"gain {gain.batch:>3} x {gain.context:<5}{kind:<7} real {gain.real:>6.1%}  virtual {gain.virtual:>6.1%}")
    print("a tiny launch took the host " + ", ".join(f"{ns / 1e3:.1f}" for ns in speed) + " us before, between, after")
    print(verdict(compared), flush=True)


def command() -> str:
    """How this program was called."""
    return " ".join(["python", *sys.argv])


def launch_ns(rig: Rig) -> int:
    """Host time of a tiny launch: how fast the host is just now."""
    stream, (fn, work) = rig.device.stream("speed"), rig.tiny()
    return per_call(rig, lambda: rig.device.launch(fn, stream, reads=(), writes=(), work=work, label="tiny"), rounds=5)


class Clock:
    """Says how long each part took."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def tell(self, what: str) -> None:
        now = time.perf_counter()
        print(f"[{now - self._last:5.1f} s] {what}", flush=True)
        self._last = now


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="8b")
    parser.add_argument("--form", default="fused", choices=FORMS)
    parser.add_argument("--profile", help="a profile from `labkit calibrate` instead of calibrating now")
    parser.add_argument("--quick", action="store_true", help="calibrate on a smaller grid")
    parser.add_argument("--pairs", default=PAIRS, help="BATCHxCONTEXT, by comma")
    parser.add_argument("--out", type=Path, help="write the calibrated profile here")
    parser.add_argument("--json", type=Path, help="write all cases here")
    parser.add_argument("--device", default="cuda", help="virtual: to try this program; then the truth is known")
    parser.add_argument("--true-profile", default="h200-8b", help="costs of the device to predict, with virtual")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
