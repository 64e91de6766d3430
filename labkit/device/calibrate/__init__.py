"""Microbenchmarks that turn a device into a cost profile (docs/semantics.md, calibration).

They see a device through ``labkit.device.api`` and its clock alone, so they measure a real GPU and the virtual one
alike; on the virtual one they must give back the profile that it was made with, which is how they are tested.
"""

from __future__ import annotations

from dataclasses import replace

from labkit.device.calibrate.allocations import measure_allocations
from labkit.device.calibrate.calls import measure_calls
from labkit.device.calibrate.links import measure_links
from labkit.device.calibrate.rig import Rig, VirtualRig
from labkit.device.costs import Profile

__all__ = ["Rig", "VirtualRig", "measure_device"]


def measure_device(rig: Rig, name: str = "measured", *, quick: bool = False) -> Profile:
    """API calls, links and allocations: everything of a profile but phases and kernels. Seconds on a real GPU."""
    fields = measure_calls(rig, rounds=5 if quick else 15)
    fields |= measure_allocations(rig, repeats=2 if quick else 5)
    profile = replace(Profile(name), **fields)
    return replace(profile, **measure_links(rig, profile, repeats=3 if quick else 7))
