"""Whole steps against the sum of their parts, and which part gets the rest.

synchronous, graphs   nothing hides behind anything: the rest is host time that no phase and no call contains, and
                      the hops from stream to stream; it goes to ``plan``
asynchronous, eager   where the host is the bottleneck: a launch costs more, or less, than when it was timed alone
synchronous, eager    what then is left is how far the GPU is behind when the last kernel has been launched
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from labkit.bench.decode import Decode, Prefilled
from labkit.bench.predict import Case, Measured, predict
from labkit.bench.step_costs import Grid
from labkit.device.calibrate.rig import Rig
from labkit.device.costs import Linear, Profile
from labkit.model.api import Model
from labkit.switches import Switches, ladder

SYNC, ASYNC = ladder("events"), ladder("carry_over")
HOST_BOUND = 0.05  # idle share from which the host is taken to be the bottleneck of an eager step
GPU_BOUND = 0.01  # idle share up to which the GPU is
STEPS, BLOCKS = 8, 5


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
    shortest, found = grid.contexts[0], []

    def expected(switches: Switches, rows: int, context: int) -> Measured:
        size, longest = model.preferred_block_size, grid.longest(rows)
        return predict(
            profile, Case(rows, context, switches), block_size=size, longest=longest, steps=STEPS, blocks=BLOCKS
        )

    def rest(switches: Switches, rows: int, context: int) -> Rest:
        case = Case(rows, context, switches)
        measured = _whole_step_ns(model, rig, case, grid)
        one = Rest(case, measured, expected(switches, rows, context).ns)
        found.append(one)
        return one

    graphs = SYNC.with_(cuda_graphs=True)
    profile = with_plan_rest(profile, [rest(graphs, rows, shortest) for rows in grid.few_rows])
    late = [rows for rows in grid.few_rows if expected(ASYNC, rows, shortest).idle > HOST_BOUND]
    if late:
        profile = with_launch_rest(profile, [rest(ASYNC, rows, shortest) for rows in late])
        profile = with_tail_rest(profile, [rest(SYNC, rows, shortest) for rows in late])
    last = grid.few_rows[-1]
    longest = grid.contexts_of(last)[-1]
    if expected(ASYNC, last, longest).idle < GPU_BOUND:
        profile = with_head_rest(profile, rest(SYNC, last, longest))
    return profile, tuple(found)


def _whole_step_ns(model: Model, rig: Rig, case: Case, grid: Grid) -> float:
    size = model.preferred_block_size
    longest, prefilled = grid.longest(case.batch), Prefilled(model, size)
    with Decode(prefilled, case.switches, rig.device, batch=case.batch, longest=longest, block_size=size) as decode:
        ns = decode.steady(case.context, STEPS, BLOCKS).ns
    rig.release()
    return ns


def with_plan_rest(profile: Profile, rests: list[Rest]) -> Profile:
    """Their median, added to ``plan``."""
    plan = profile.phases.get("plan", Linear())
    base = plan.base_ns + statistics.median(one.ns for one in rests)
    return replace(profile, phases={**profile.phases, "plan": replace(plan, base_ns=round(max(0.0, base), 1))})


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


def with_head_rest(profile: Profile, rest: Rest) -> Profile:
    """Added to how long the forward pass takes to begin in earnest: it shows where the GPU is the bottleneck."""
    forward = profile.kernels["forward"]
    return _with_forward(profile, replace(forward, head_ns=round(max(0.0, forward.head_ns + rest.ns), 1)))


def _with_forward(profile: Profile, forward: Linear) -> Profile:
    return replace(profile, kernels={**profile.kernels, "forward": forward})
