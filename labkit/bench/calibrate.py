"""A cost profile from measurements: API calls and links, the steps of a model, and whole steps against their parts."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace

from labkit.bench.rests import Rest, explain_rests
from labkit.bench.step_costs import Grid, measure_steps
from labkit.device.calibrate import Rig, measure_device
from labkit.device.costs import Profile
from labkit.model.api import Model

QUICK = Grid(rows=(1, 16, 64), contexts=(128, 2048), chunks=(1024, 4096), steps=8)


def calibrate(
    rig: Rig,
    model: Model,
    name: str,
    *,
    command: str = "",
    grid: Grid | None = None,
    quick: bool = False,
    progress: Callable[[str], None] = lambda what: None,
) -> tuple[Profile, tuple[Rest, ...]]:
    """A profile of ``rig`` and ``model``, and what whole steps took beyond their parts (it is in the profile).

    Nothing else should run on the GPU or its host meanwhile: it would show up in the costs.
    """
    grid = grid or (QUICK if quick else Grid())
    profile = measure_device(rig, name, quick=quick)
    progress("device")
    profile = measure_steps(model, rig, profile, grid, progress)
    profile, rests = explain_rests(model, rig, profile, grid)
    progress("whole steps")
    today = datetime.date.today().isoformat()
    source = f"measured: {rig.about}, {model.name} ({type(model).__name__}), {today}: {command}"
    return replace(profile, source=source), rests
