"""Copies of the virtual GPU, measured from outside."""

import pytest

from labkit.device.calibrate.links import measure_links
from labkit.device.calibrate.rig import VirtualRig
from labkit.device.virtual import VirtualDevice
from labkit.device.virtual.hardware import Hardware


@pytest.fixture
def found(rig, truth):
    return measure_links(rig, truth, repeats=2)


def test_bandwidth_and_latency_come_back(found, truth):
    for name in ("h2d", "d2h"):
        link, true = found[name], getattr(truth, name)
        assert link.pinned == pytest.approx(true.pinned, rel=1e-3)
        assert link.latency_ns == pytest.approx(true.latency_ns, abs=2)
    assert found["h2d"].stage == pytest.approx(truth.h2d.stage, rel=1e-3)
    assert found["d2h"].pageable == pytest.approx(truth.d2h.pageable, rel=1e-3)


def test_a_pageable_upload_is_as_slow_as_staging_and_copying_in_turn(found):
    assert found["h2d"].pageable == pytest.approx(1 / (1 / 50 + 1 / 10), rel=1e-3)


def test_the_largest_upload_that_does_not_wait_is_found(found, truth):
    assert found["stage_only_bytes"] == truth.stage_only_bytes


@pytest.mark.parametrize(("staging", "size"), [("sync_stage", 0), ("stage_only", 1 << 25)])
def test_a_driver_that_always_or_never_waits(truth, staging, size):
    rig = VirtualRig(VirtualDevice(truth, hardware=Hardware(staging=staging)))
    assert measure_links(rig, truth, repeats=1)["stage_only_bytes"] == size
