"""A cost profile from measurements: API calls and links, the steps of a model, and what is left unexplained."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from labkit.bench.decode import Decode, Prefilled
from labkit.bench.predict import Case, predict
from labkit.bench.step_costs import Grid, measure_steps
from labkit.device.calibrate import Rig, measure_device
from labkit.device.costs import Linear, Profile
from labkit.model.api import Model
from labkit.switches import ladder

SYNC_GRAPHS = ladder("events").with_(cuda_graphs=True)
QUICK = Grid(rows=(1, 16, 64), contexts=(128, 2048), chunks=(1024, 4096), steps=8)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Left:
    """What a synchronous step takes beyond what its parts add up to, ns, at a number of rows."""

    rows: int
    measured_ns: float
    predicted_ns: float

    @property
    def ns(self) -> float:
        return self.measured_ns - self.predicted_ns


def calibrate(
    rig: Rig,
    model: Model,
    name: str,
    *,
    command: str = "",
    grid: Grid | None = None,
    quick: bool = False,
    progress: Progress = lambda what: None,
) -> tuple[Profile, tuple[Left, ...]]:
    """A profile of ``rig`` and ``model``, and what a step's parts left unexplained (it is added to ``plan``).

    Measured with the device idle but for this; another program on the host or the GPU shows up in the costs.
    """
    grid = grid or (QUICK if quick else Grid())
    profile = measure_device(rig, name, quick=quick)
    progress("device")
    profile = measure_steps(model, rig, profile, grid, progress)
    left = _unexplained(model, rig, profile, grid)
    progress("whole steps")
    today = datetime.date.today().isoformat()
    source = f"measured: {rig.about}, {model.name} ({type(model).__name__}), {today}: {command}"
    return replace(profile, source=source, phases=_with_rest(profile, left)), left


def _unexplained(model: Model, rig: Rig, profile: Profile, grid: Grid) -> tuple[Left, ...]:
    """Whole steps of a plain engine, against the same on the virtual GPU, where both are synchronous: no part of a
    step hides behind another there."""
    size, context = model.preferred_block_size, grid.contexts[len(grid.contexts) // 2]
    found = []
    for rows in dict.fromkeys((grid.rows[0], grid.rows[len(grid.rows) // 2], grid.rows[-1])):
        prefilled = Prefilled(model, size)
        with Decode(
            prefilled,
            SYNC_GRAPHS,
            rig.device,
            batch=rows,
            longest=grid.longest,
            block_size=size,
        ) as decode:
            measured = decode.steady(context, grid.steps).ns
        rig.release()
        case = Case(rows, context, SYNC_GRAPHS)
        predicted = predict(profile, case, block_size=size, longest=grid.longest, steps=grid.steps, blocks=3)
        found.append(Left(rows, measured, predicted.ns))
    return tuple(found)


def _with_rest(profile: Profile, left: tuple[Left, ...]) -> dict[str, Linear]:
    """The phases with the rest in ``plan``, which no phase may fall below zero for."""
    slope, base = np.polyfit([one.rows for one in left], [one.ns for one in left], 1) if len(left) > 1 else (0, 0)
    plan = profile.phases.get("plan", Linear())
    changed = replace(
        plan,
        base_ns=round(max(0.0, plan.base_ns + float(base)), 1),
        per_row_ns=round(max(0.0, plan.per_row_ns + float(slope)), 3),
    )
    return {**profile.phases, "plan": changed}
