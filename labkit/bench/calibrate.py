"""A cost profile from measurements: API calls and links, the steps of a model, and whole steps against their parts."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace

from labkit.bench.rests import Rest, explain_rests
from labkit.bench.step_costs import Grid, Samples, measure_steps
from labkit.bench.step_fit import fit_steps
from labkit.device.calibrate import Rig, measure_device
from labkit.device.costs import Profile
from labkit.model.api import Model

QUICK = Grid(rows=(1, 8, 16, 24, 32, 48), contexts=(128, 1024, 4096), chunks=(1024, 4096), steps=6)


@dataclass(frozen=True)
class Calibration:
    """A profile, and what it was made of: measured steps, and what whole steps took beyond their parts."""

    profile: Profile
    samples: Samples
    rests: tuple[Rest, ...]


def calibrate(
    rig: Rig,
    model: Model,
    name: str,
    *,
    command: str = "",
    grid: Grid | None = None,
    quick: bool = False,
    progress: Callable[[str], None] = lambda what: None,
) -> Calibration:
    """Measure ``rig`` and ``model``.

    Nothing else should run on the GPU or its host meanwhile: it would show up in the costs.
    """
    grid = grid or (QUICK if quick else Grid())
    profile = measure_device(rig, name, quick=quick)
    progress("device")
    samples = measure_steps(model, rig, grid, progress)
    profile, rests = explain_rests(model, rig, fit_steps(profile, samples), grid)
    progress("whole steps")
    today = datetime.date.today().isoformat()
    source = f"measured: {rig.about}, {model.name} ({type(model).__name__}), {today}: {command}"
    return Calibration(replace(profile, source=source), samples, rests)
