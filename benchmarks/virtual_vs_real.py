"""How well the virtual GPU predicts a real one, on cases that calibration has not seen.

    python benchmarks/virtual_vs_real.py [--model 8b] [--form fused] [--profile FILE] [--out FILE] [--json FILE]

Without --profile it calibrates first, in the same process: a host that others use too is not equally fast all day.
--out keeps that profile. Each case is a batch and a context, synchronous and asynchronous, eager and with graphs; the
synchronous loop is rung 2 (streams and events), the asynchronous one rung 5.

Step time is the median of the quietest of three stretches of steps. Idle is the share of a step in which the GPU waits:
1 minus what the step's kernels take back to back (measured with a kernel in front of them that holds them back until
all are launched) over the step time. Gain is the share of the synchronous step that asynchrony saves.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from labkit.bench.accuracy import HEADER, Compared, gains, verdict
from labkit.bench.calibrate import calibrate
from labkit.bench.decode import Decode, Prefilled
from labkit.bench.models import FORMS, bench_model, open_rig
from labkit.bench.predict import Case, measure, predict
from labkit.bench.probe import ProbeDevice
from labkit.device.calibrate.calls import per_call
from labkit.device.calibrate.rig import Rig
from labkit.device.costs import Profile, load_profile
from labkit.model.api import Model
from labkit.switches import ladder

PAIRS = "1x300,8x1500,24x300,24x3000,32x1500,48x3000"
MODES = [ladder(rung).with_(cuda_graphs=graphs) for graphs in (False, True) for rung in ("events", "carry_over")]
STEPS, BLOCKS = 10, 3


def main() -> int:
    """Print the table; status 1 if the aims are not met."""
    arguments = _arguments()
    clock = Clock()
    rig = open_rig(arguments.device, arguments.true_profile)
    model = bench_model(arguments.model, arguments.form, arguments.device)
    clock.tell(f"{rig.about}, {arguments.model} {arguments.form}: model ready")
    if arguments.profile:
        profile = load_profile(arguments.profile)
    else:
        command = " ".join(["python", *sys.argv])
        profile, rests = calibrate(rig, model, "calibrated", command=command, quick=arguments.quick)
        print("\n".join(map(str, rests)))
        clock.tell("calibrated")
    if arguments.out:
        arguments.out.write_text(profile.to_json())
    speed = launch_ns(rig)
    found = []
    print(HEADER)
    for pair in arguments.pairs.split(","):
        batch, context = map(int, pair.split("x"))
        for one in compare(rig, model, profile, batch, context):
            found.append(one)
            print(one.row(), flush=True)
    clock.tell("cases")
    print(f"a tiny launch took the host {speed / 1e3:.2f} us before and {launch_ns(rig) / 1e3:.2f} us after the cases")
    for gain in gains(found):
        kind = "graphs" if gain.graphs else "eager"
        print(f"gain {gain.batch:>3} x {gain.context:<5}{kind:<7} real {gain.real:>6.1%}  virtual {gain.virtual:>6.1%}")
    result = verdict(found)
    print(result)
    if arguments.json:
        cases = [one.to_dict() for one in found]
        arguments.json.write_text(json.dumps({"about": rig.about, "cases": cases, "verdict": result.to_dict()}))
    return 0 if result.good else 1


def compare(rig: Rig, model: Model, profile: Profile, batch: int, context: int) -> list[Compared]:
    """The four modes of a batch and context."""
    size, longest = model.preferred_block_size, context + 4 * STEPS * BLOCKS
    prefilled, found, busy = Prefilled(model, size), [], {}
    for switches in MODES:
        case, probe, graphs = Case(batch, context, switches), ProbeDevice(rig), switches.cuda_graphs
        with Decode(prefilled, switches, probe, batch=batch, longest=longest, block_size=size) as decode:
            real = measure(decode, probe, case, STEPS, BLOCKS, busy_ns=busy.get(graphs, 0.0))
        rig.release()
        busy[graphs] = real.busy_ns  # the same kernels in both loops but for the carry-over
        virtual = predict(profile, case, block_size=size, longest=longest, steps=STEPS, blocks=BLOCKS)
        found.append(Compared(case, real, virtual))
    return found


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
