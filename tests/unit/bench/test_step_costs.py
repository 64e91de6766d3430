"""What is measured of a model, and where."""

from dataclasses import replace

import pytest

from labkit.bench.step_costs import Grid, measure_steps
from labkit.device.calibrate import VirtualRig
from labkit.device.virtual import VirtualDevice
from labkit.model.toy import ToyModel

GRID = Grid(rows=(1, 3, 8), contexts=(32, 64, 200), chunks=(400, 800), steps=6)


@pytest.fixture(scope="module")
def samples(truth):
    said = []
    found = measure_steps(ToyModel(), VirtualRig(VirtualDevice(truth)), GRID, said.append)
    assert said == ["1 rows", "3 rows", "8 rows", "prompts"]
    return found


def test_contexts_that_do_not_fit_are_left_out():
    grid = Grid()
    assert grid.contexts_of(1) == grid.contexts
    assert grid.contexts_of(256)[-1] * 256 <= 300_000 < 2 * grid.contexts_of(256)[-1] * 256
    assert replace(grid, contexts=(4096, 8192)).contexts_of(256) == (4096,), "the shortest stays"
    assert grid.longest(256) < grid.longest(1)


def test_few_rows_are_the_first_a_middle_one_and_the_last_up_to_64():
    assert Grid().few_rows == (1, 24, 64)
    assert Grid(rows=(4, 8)).few_rows == (4, 8)
    assert Grid(rows=(128, 256)).few_rows == (128,)


def test_graphs_are_measured_everywhere_in_stretches(samples, truth):
    places = [(stretch[0][0], round(stretch[0][2] / stretch[0][0])) for stretch in samples.graphs]
    assert [rows for rows, _ in places] == [1] * 3 + [3] * 3 + [8] * 3
    for (_, context), asked in zip(places, GRID.contexts * 3, strict=True):
        assert asked <= context <= asked + 25
    rows, tokens, context, ns = samples.graphs[0][0]
    parts = (truth.kernels["carry_over"], truth.graph_kernels["forward"], truth.kernels["sample"])
    assert ns == 2 * truth.node_gap_ns + sum(part(rows, tokens, context) for part in parts)


def test_eager_kernels_are_measured_one_by_one(samples, truth):
    for name, kernel in truth.kernels.items():
        assert {sample[0] for sample in samples.kernels[name]} == {1, 3, 8}
        assert all(ns == kernel(r, t, c) for r, t, c, ns in samples.kernels[name])
        assert samples.launches[name] == kernel.launches
        series = truth.launch_ns + (kernel.launches - 1) * (kernel.launch_ns or truth.launch_ns)
        assert set(samples.host[name]) == {series}


def test_prompts_are_measured_too(samples):
    assert [(rows, tokens) for rows, tokens, _, _ in samples.kernels["chunk"]] == [(1, 400), (1, 800)]
    assert {sample[1] for sample in samples.phases["fill"]} >= {1, 3, 8, 400, 800}


def test_prompts_that_the_model_cannot_take_are_left_out(rig):
    grid = replace(GRID, rows=(1,), contexts=(32, 64), chunks=(100, 200, 900))
    found = measure_steps(ToyModel(max_model_len=500), rig, grid)
    assert [tokens for _, tokens, _, _ in found.kernels["chunk"]] == [100, 200]


def test_samples_are_plain_numbers(samples):
    import json

    assert json.loads(json.dumps(samples.to_dict()))["launches"]["forward"] == 200
