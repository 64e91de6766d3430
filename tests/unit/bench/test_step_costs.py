"""Phases and kernels of the virtual GPU, measured from outside, are those of its profile."""

from dataclasses import replace

import pytest

from labkit.bench.step_costs import Grid, measure_steps
from labkit.device.calibrate import VirtualRig
from labkit.device.virtual import VirtualDevice
from labkit.model.toy import ToyModel

GRID = Grid(rows=(1, 3, 8), contexts=(32, 64, 200), chunks=(400, 800, 1600), steps=6)


@pytest.fixture(scope="module")
def measured(truth):
    rig = VirtualRig(VirtualDevice(truth))
    return measure_steps(ToyModel(), rig, replace(truth, phases={}, kernels={}, graph_kernels={}), GRID)


@pytest.mark.parametrize("rows", [1, 2, 5, 8])
@pytest.mark.parametrize("each", [40, 150, 1000])
def test_decode_kernels_come_back_between_and_beyond_the_measured_sizes(measured, truth, rows, each):
    for name in ("carry_over", "forward", "sample"):
        args = (rows, rows, rows * each)
        assert measured.kernels[name](*args) == pytest.approx(truth.kernels[name](*args), rel=1e-4)
    assert measured.graph_kernels["forward"](*args) == pytest.approx(truth.graph_kernels["forward"](*args), rel=1e-4)


def test_prompts_cost_what_they_cost(measured, truth):
    for tokens in (200, 500, 3000):
        args = (1, tokens, tokens)
        assert measured.kernels["forward"](*args) == pytest.approx(truth.kernels["forward"](*args), rel=2e-3)


def test_launches_come_back(measured, truth):
    for name, kernel in truth.kernels.items():
        assert measured.kernels[name].launches == kernel.launches
        each = kernel.launch_ns or truth.launch_ns
        assert measured.kernels[name].launch_ns == pytest.approx(each, abs=1)


@pytest.mark.parametrize(("rows", "tokens"), [(1, 1), (8, 8), (30, 30), (2, 4000)])
def test_phases_come_back(measured, truth, rows, tokens):
    for name in ("plan", "fill", "upload", "compute", "download", "settle"):
        true = truth.phases[name](rows, tokens, 0) if name in truth.phases else 0
        assert measured.phases[name](rows, tokens, 0) == pytest.approx(true, rel=1e-3, abs=2)


def test_prompts_that_the_model_cannot_take_are_left_out(rig, truth):
    grid = replace(GRID, rows=(1,), contexts=(32, 64), chunks=(100, 200, 900))
    found = measure_steps(ToyModel(max_model_len=500), rig, truth, grid).kernels["forward"]
    assert found(1, 200, 200) == pytest.approx(truth.kernels["forward"](1, 200, 200), rel=1e-3)


def test_api_costs_stay(measured, truth):
    assert (measured.launch_ns, measured.h2d) == (truth.launch_ns, truth.h2d)
