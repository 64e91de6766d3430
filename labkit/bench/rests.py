"""Whole steps against the sum of their parts, and which part gets the rest.

synchronous, graphs   nothing hides behind anything: the rest is host time that no phase and no call contains, and
                      the hops from stream to stream; it goes to ``plan``
asynchronous, eager   where the host is the bottleneck: a launch costs more, or less, than when it was timed alone
synchronous, eager    what then is left is how far the GPU is behind when the last kernel has been launched
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

import numpy as np

from labkit.bench.decode import Decode, Prefilled
from labkit.bench.predict import Case, Measured, predict
from labkit.bench.step_costs import Grid
from labkit.device.calibrate.rig import Rig
from labkit.device.costs import Linear, Profile
from labkit.model.api import Model
from labkit.switches import Switches, ladder

SYNC, ASYNC = ladder("events"), ladder("carry_over")
HOST_BOUND = 0.05  # idle share from which the host is taken to be the bottleneck of an eager step


@dataclass(frozen=True)
class Rest:
    """A whole step, ns, and what its parts add up to."""

    case: Case
    measured_ns: float
    predicted_ns: float

    @property
    def ns(self) -> float:
        return self.measured_ns - self.predicted_ns

    def __str__(self) -> str:
        return (
            f"{self.case.name}, {self.case.batch} rows: {self.measured_ns / 1e6:.3f} ms, the parts add up to "
            f"{self.predicted_ns / 1e6:.3f} ms; rest {self.ns / 1e3:+.0f} us"
        )


def explain_rests(model: Model, rig: Rig, profile: Profile, grid: Grid) -> tuple[Profile, tuple[Rest, ...]]:
    """Run whole steps at sizes of the grid, and give their rests to the profile."""
    rows = tuple(dict.fromkeys((grid.rows[0], grid.rows[len(grid.rows) // 2], grid.rows[-1])))
    shortest, middle = grid.contexts[0], grid.contexts[len(grid.contexts) // 2]
    found = []

    def rest(switches: Switches, rows: int, context: int) -> tuple[Rest, Measured]:
        case = Case(rows, context, switches)
        size = model.preferred_block_size
        predicted = predict(profile, case, block_size=size, longest=grid.longest, steps=grid.steps, blocks=3)
        one = Rest(case, _whole_step_ns(model, rig, case, grid), predicted.ns)
        found.append(one)
        return one, predicted

    graphs = SYNC.with_(cuda_graphs=True)
    profile = with_plan_rest(profile, [rest(graphs, count, middle)[0] for count in rows])
    eager = [rest(ASYNC, count, shortest) for count in rows]
    late = [one for one, predicted in eager if predicted.idle > HOST_BOUND]
    if late:
        profile = with_launch_rest(profile, late)
        profile = with_tail_rest(profile, [rest(SYNC, one.case.batch, shortest)[0] for one in late])
    return profile, tuple(found)


def _whole_step_ns(model: Model, rig: Rig, case: Case, grid: Grid) -> float:
    size = model.preferred_block_size
    prefilled = Prefilled(model, size)
    with Decode(
        prefilled, case.switches, rig.device, batch=case.batch, longest=grid.longest, block_size=size
    ) as decode:
        ns = decode.steady(case.context, grid.steps).ns
    rig.release()
    return ns


def with_plan_rest(profile: Profile, rests: list[Rest]) -> Profile:
    """A line over the rows, added to ``plan``."""
    counts, left = [one.case.batch for one in rests], [one.ns for one in rests]
    slope, base = np.polyfit(counts, left, 1) if len(rests) > 1 else (0.0, left[0])
    plan = profile.phases.get("plan", Linear())
    changed = replace(
        plan,
        base_ns=round(max(0.0, plan.base_ns + float(base)), 1),
        per_row_ns=round(max(0.0, plan.per_row_ns + float(slope)), 3),
    )
    return replace(profile, phases={**profile.phases, "plan": changed})


def with_launch_rest(profile: Profile, rests: list[Rest]) -> Profile:
    """Their median, shared out among the launches of the forward pass."""
    forward = profile.kernels["forward"]
    if forward.launches < 2:
        return profile
    left = statistics.median(one.ns for one in rests)
    each = max(1.0, (forward.launch_ns or profile.launch_ns) + left / (forward.launches - 1))
    return _with_forward(profile, replace(forward, launch_ns=round(each, 1)))


def with_tail_rest(profile: Profile, rests: list[Rest]) -> Profile:
    """Their median, added to the time that the forward pass goes on after its last launch."""
    forward, case = profile.kernels["forward"], rests[len(rests) // 2].case
    average = forward(case.batch, case.batch, case.batch * case.context) / forward.launches
    tail = (forward.tail_ns or average) + statistics.median(one.ns for one in rests)
    return _with_forward(profile, replace(forward, tail_ns=round(max(0.0, tail), 1)))


def _with_forward(profile: Profile, forward: Linear) -> Profile:
    return replace(profile, kernels={**profile.kernels, "forward": forward})
