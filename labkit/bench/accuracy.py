"""The virtual GPU against a real one: step time, idle share, and what asynchrony gains, case by case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labkit.bench.predict import Case, Measured

STEP_MEDIAN, STEP_P95, POINTS = 0.05, 0.10, 0.05  # what is asked of a calibrated profile


@dataclass(frozen=True)
class Compared:
    """One case, measured and predicted."""

    case: Case
    real: Measured
    virtual: Measured

    @property
    def step_error(self) -> float:
        """Relative, positive where the prediction is too slow."""
        return self.virtual.ns / self.real.ns - 1

    @property
    def idle_error(self) -> float:
        return self.virtual.idle - self.real.idle

    def row(self) -> str:
        """A line of the table."""
        return (
            f"{self.case.batch:>5}{self.case.context:>8}  {self.case.name:<13}"
            f"{self.real.ns / 1e6:>9.3f}{self.virtual.ns / 1e6:>9.3f}{self.step_error:>+8.1%}"
            f"{self.real.idle:>11.1%}{self.virtual.idle:>9.1%}{self.idle_error * 100:>+8.1f}"
            f"{self.real.steady.p95 / 1e6:>9.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "batch": self.case.batch,
            "context": self.case.context,
            "mode": self.case.name,
            **{
                side: {"ms": one.ns / 1e6, "idle": one.idle, "blocks_ms": [b / 1e6 for b in one.steady.blocks]}
                for side, one in (("real", self.real), ("virtual", self.virtual))
            },
        }


HEADER = (
    f"{'batch':>5}{'context':>8}  {'mode':<13}{'real ms':>9}{'virtual':>9}{'error':>8}"
    f"{'real idle':>11}{'virtual':>9}{'points':>8}{'real p95':>9}"
)


@dataclass(frozen=True)
class Gain:
    """Step time saved by asynchrony, as a share of the synchronous step."""

    batch: int
    context: int
    graphs: bool
    real: float
    virtual: float

    @property
    def error(self) -> float:
        return self.virtual - self.real

    @property
    def wrong_sign(self) -> bool:
        """One says gain, the other loss, and neither is too small to tell (1 % of a step)."""
        return self.real * self.virtual < 0 and min(abs(self.real), abs(self.virtual)) > 0.01


def gains(compared: Iterable[Compared]) -> list[Gain]:
    """Synchronous against asynchronous, where both were run."""
    by_case = {(c.case.batch, c.case.context, c.case.switches.cuda_graphs, c.case.name[:4]): c for c in compared}
    found = []
    for (batch, context, graphs, loop), sync in by_case.items():
        other = by_case.get((batch, context, graphs, "asyn"))
        if loop == "sync" and other is not None:
            real, virtual = (1 - getattr(other, s).ns / getattr(sync, s).ns for s in ("real", "virtual"))
            found.append(Gain(batch, context, graphs, real, virtual))
    return found


@dataclass(frozen=True)
class Verdict:
    """Errors over all cases; times relative, shares in points of 1."""

    cases: int
    step_median: float
    step_p95: float
    step_worst: float
    idle_worst: float
    gain_worst: float
    wrong_signs: int

    @property
    def good(self) -> bool:
        """Whether the aims are met."""
        steps = self.step_median <= STEP_MEDIAN and self.step_p95 <= STEP_P95
        return steps and max(self.idle_worst, self.gain_worst) <= POINTS and not self.wrong_signs

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self) | {"good": self.good}

    def __str__(self) -> str:
        return (
            f"{self.cases} cases: step time off by {self.step_median:.1%} (median), {self.step_p95:.1%} (95th "
            f"percentile), {self.step_worst:.1%} (worst)\n"
            f"idle share off by {self.idle_worst * 100:.1f} points at most; gain of async over sync by "
            f"{self.gain_worst * 100:.1f} points at most, of the wrong sign {self.wrong_signs} times\n"
            f"aims (5 %, 10 %, 5 points, 5 points, never): {'met' if self.good else 'NOT met'}"
        )


def verdict(compared: Sequence[Compared]) -> Verdict:
    """The errors in one object."""
    errors = np.abs([one.step_error for one in compared])
    pairs = gains(compared)
    return Verdict(
        cases=len(compared),
        step_median=float(np.median(errors)),
        step_p95=float(np.quantile(errors, 0.95)),
        step_worst=float(errors.max()),
        idle_worst=max(abs(one.idle_error) for one in compared),
        gain_worst=max((abs(pair.error) for pair in pairs), default=0.0),
        wrong_signs=sum(pair.wrong_sign for pair in pairs),
    )
