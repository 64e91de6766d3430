"""What the virtual GPU says of a steady state: the toy model's tokens, at the costs of a profile."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from labkit.bench.decode import Decode, Prefilled, Steady
from labkit.bench.probe import Kernels, ProbeDevice
from labkit.device.calibrate.rig import VirtualRig
from labkit.device.costs import Profile
from labkit.device.virtual import VirtualDevice
from labkit.model.toy import ToyModel
from labkit.switches import Switches

HELD_STEPS = 6


@dataclass(frozen=True)
class Case:
    """A steady state to measure or to predict."""

    batch: int
    context: int
    switches: Switches

    @property
    def name(self) -> str:
        """For a table: sync or async, eager or graphs."""
        loop = "async" if self.switches.lookahead else "sync"
        return f"{loop} {'graphs' if self.switches.cuda_graphs else 'eager'}"


@dataclass(frozen=True)
class Measured:
    """A steady state.

    busy_ns   what a step's kernels take back to back, the gaps between them included
    host_ns   host time of each phase, calls included and waits not
    """

    steady: Steady
    busy_ns: float
    host_ns: dict[str, float] = field(default_factory=dict)

    @property
    def ns(self) -> float:
        return self.steady.ns

    @property
    def idle(self) -> float:
        """Share of a step in which the GPU waits for the host or for a copy."""
        return max(0.0, 1 - self.busy_ns / self.ns)


def measure(
    decode: Decode, probe: ProbeDevice, case: Case, steps: int, blocks: int, *, busy_ns: float = 0.0
) -> Measured:
    """Step time, with the probe out of the way, and then what the probe hears; busy time unless it is known.

    ``probe`` is the device of the engine.
    """
    probe.listen(False)
    steady = decode.steady(case.context, steps, blocks)
    probe.listen(True)
    decode.start(case.context, 2 * HELD_STEPS)
    probe.clear()
    decode.steps(HELD_STEPS)
    host = {name: statistics.median(times) for name, times in probe.host(case.batch).items() if times}
    if not busy_ns:
        with probe.holding(round(1.3 * steady.ns)) as held:
            decode.steps(HELD_STEPS)
            decode.finish()
        busy_ns = busy_of(held)
    return Measured(steady, busy_ns, host)


def busy_of(held: list[Kernels]) -> float:
    """ns of a step's kernels, back to back: the median over held steps, the first and last left out."""
    totals = sorted(sum(busy for *_, busy in step) for step in held[1:-1])
    return float(totals[len(totals) // 2])


def predict(
    profile: Profile, case: Case, *, block_size: int, longest: int, steps: int = 8, blocks: int = 2
) -> Measured:
    """The virtual GPU's answer, with slots and blocks of the same sizes."""
    probe = ProbeDevice(VirtualRig(VirtualDevice(profile)))
    model = Prefilled(ToyModel(max_model_len=2 * longest), block_size)
    with Decode(model, case.switches, probe, batch=case.batch, longest=longest, block_size=block_size) as decode:
        return measure(decode, probe, case, steps, blocks)
