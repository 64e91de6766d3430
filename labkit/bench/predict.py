"""What the virtual GPU says of a steady state: the toy model's tokens, at the costs of a profile."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.bench.decode import Decode, Prefilled, Steady
from labkit.bench.probe import Kernels, ProbeDevice
from labkit.device.calibrate.rig import Rig, VirtualRig
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
    """A steady state. ``busy_ns``: what a step's kernels take back to back, the gaps between them included."""

    steady: Steady
    busy_ns: float

    @property
    def ns(self) -> float:
        return self.steady.ns

    @property
    def idle(self) -> float:
        """Share of a step in which the GPU waits for the host or for a copy."""
        return max(0.0, 1 - self.busy_ns / self.ns)


def measure(decode: Decode, case: Case, steps: int, blocks: int, busy_ns: float = 0.0) -> Measured:
    """Step time and, unless it is known, busy time of a case on its engine, whose device is a ``ProbeDevice``."""
    steady = decode.steady(case.context, steps, blocks)
    if not busy_ns:
        decode.start(case.context, HELD_STEPS)
        with decode.device.holding(round(1.3 * steady.ns)) as held:  # type: ignore[attr-defined]
            decode.steps(HELD_STEPS)
            decode.finish()
        busy_ns = busy_of(held)
    return Measured(steady, busy_ns)


def busy_of(held: list[Kernels]) -> float:
    """ns of a step's kernels, back to back: the median over held steps, the first and last left out."""
    totals = sorted(sum(busy for *_, busy in step) for step in held[1:-1])
    return float(totals[len(totals) // 2])


def predict(
    profile: Profile, case: Case, *, block_size: int, longest: int, steps: int = 8, blocks: int = 2
) -> Measured:
    """The virtual GPU's answer, with slots and blocks of the same sizes."""
    rig: Rig = VirtualRig(VirtualDevice(profile))
    model = Prefilled(ToyModel(max_model_len=2 * longest), block_size)
    with Decode(
        model,
        case.switches,
        ProbeDevice(rig),
        batch=case.batch,
        longest=longest,
        block_size=block_size,
    ) as decode:
        return measure(decode, case, steps, blocks)
