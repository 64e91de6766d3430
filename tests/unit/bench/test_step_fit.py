"""Phases and kernels of the virtual GPU, measured from outside, are those of its profile."""

from dataclasses import replace

import pytest

from labkit.bench.step_costs import Grid, Samples, measure_steps
from labkit.bench.step_fit import fit_steps
from labkit.device.calibrate import VirtualRig
from labkit.device.costs import Profile
from labkit.device.virtual import VirtualDevice
from labkit.model.toy import ToyModel

GRID = Grid(rows=(1, 3, 8), contexts=(32, 64, 200), chunks=(400, 800, 1600), steps=6)


@pytest.fixture(scope="module")
def fitted(truth):
    samples = measure_steps(ToyModel(), VirtualRig(VirtualDevice(truth)), GRID)
    return fit_steps(replace(truth, phases={}, kernels={}, graph_kernels={}), samples)


@pytest.mark.parametrize("rows", [1, 2, 5, 8, 12])
@pytest.mark.parametrize("each", [40, 150, 1000])
def test_decode_kernels_come_back_between_and_beyond_the_measured_sizes(fitted, truth, rows, each):
    """To a few parts in ten thousand: time grows with rows * context, and the straight pieces are over each."""
    args = (rows, rows, rows * each)
    for name in ("carry_over", "forward", "sample"):
        assert fitted.kernels[name](*args) == pytest.approx(truth.kernels[name](*args), rel=1e-3)
    assert fitted.graph_kernels["forward"](*args) == pytest.approx(truth.graph_kernels["forward"](*args), rel=1e-3)


def test_prompts_cost_what_they_cost(fitted, truth):
    for tokens in (200, 500, 3000):
        args = (1, tokens, tokens)
        assert fitted.kernels["forward"](*args) == pytest.approx(truth.kernels["forward"](*args), rel=2e-3)


def test_launches_come_back(fitted, truth):
    for name, kernel in truth.kernels.items():
        assert fitted.kernels[name].launches == kernel.launches
        assert fitted.kernels[name].launch_ns == pytest.approx(kernel.launch_ns or truth.launch_ns, abs=1)


@pytest.mark.parametrize(("rows", "tokens"), [(1, 1), (8, 8), (30, 30), (2, 4000)])
def test_phases_come_back(fitted, truth, rows, tokens):
    for name in ("plan", "fill", "upload", "compute", "download", "settle"):
        true = truth.phases[name](rows, tokens, 0) if name in truth.phases else 0
        assert fitted.phases[name](rows, tokens, 0) == pytest.approx(true, rel=1e-3, abs=2)


def test_api_costs_stay(fitted, truth):
    assert (fitted.launch_ns, fitted.h2d) == (truth.launch_ns, truth.h2d)


def samples(**changes):
    plain = {
        "kernels": {"forward": [(2, 2, 20, 1500)] * 3},
        "graphs": [[(2, 2, 20, 1000), (2, 2, 22, 1010), (2, 2, 24, 9000)]],
        "host": {"forward": [700, 500, 900]},
        "phases": {"plan": [(2, 0, 50, 60)]},
        "launches": {"forward": 5},
    }
    return Samples(**{**plain, **changes})


def test_a_stretch_of_steps_is_one_point_its_median():
    found = fit_steps(Profile("x"), samples())
    assert found.graph_kernels["forward"].points == ((2, 11.0, 1010.0),)


def test_eager_kernels_are_those_of_the_graph_and_the_gaps_between_launches():
    assert fit_steps(Profile("x"), samples()).kernels["forward"].points == ((2, 11.0, 1500.0),)


def test_launches_are_the_quietest_ones():
    found = fit_steps(Profile("x", launch_ns=100), samples()).kernels["forward"]
    assert (found.launches, found.launch_ns) == (5, 100.0)


def test_launches_that_cannot_be_counted_are_estimated():
    found = fit_steps(Profile("x", launch_ns=100), samples(launches={"forward": 0})).kernels["forward"]
    assert (found.launches, found.launch_ns) == (5, 100.0)
