"""A calibrated profile predicts the device that it was calibrated on, at sizes it has not seen."""

from dataclasses import replace

import pytest

from labkit.bench.calibrate import calibrate
from labkit.bench.predict import Case, predict
from labkit.bench.step_costs import Grid
from labkit.device.calibrate import VirtualRig
from labkit.device.costs import Adversary, load_profile
from labkit.device.virtual import VirtualDevice
from labkit.model.toy import ToyModel
from labkit.switches import ladder

GRID = Grid(rows=(1, 4, 12), contexts=(32, 64, 200), chunks=(400, 800), steps=6)
MODES = [ladder(rung).with_(cuda_graphs=graphs) for rung in ("events", "carry_over") for graphs in (False, True)]


@pytest.fixture(scope="module")
def calibrated(truth):
    said = []
    found = calibrate(
        VirtualRig(VirtualDevice(truth)),
        ToyModel(),
        "copy",
        command="make",
        grid=GRID,
        quick=True,
        progress=said.append,
    )
    return truth, found.profile, found.rests, said


@pytest.mark.parametrize("switches", MODES)
@pytest.mark.parametrize(("batch", "context"), [(2, 40), (7, 150), (20, 100)])
def test_unseen_sizes_are_predicted(calibrated, switches, batch, context):
    truth, profile, _, _ = calibrated
    case = Case(batch, context, switches)
    true, said = (predict(each, case, block_size=16, longest=300) for each in (truth, profile))
    assert said.ns == pytest.approx(true.ns, rel=1e-3)
    assert said.idle == pytest.approx(true.idle, abs=2e-3)


def test_nothing_is_left_unexplained_on_a_device_without_secrets(calibrated):
    _, _, rests, _ = calibrated
    assert [(one.case.name, one.case.batch) for one in rests] == [
        *(("sync graphs", rows) for rows in (1, 4, 12)),
        *(("async eager", rows) for rows in (1, 4, 12)),
        *(("sync eager", rows) for rows in (1, 4, 12)),
    ]
    assert max(abs(one.ns) for one in rests) < 200


def test_the_source_says_where_it_comes_from(calibrated, tmp_path):
    _, profile, _, said = calibrated
    assert profile.source.startswith("measured: virtual (truth), toy (ToyModel), 20")
    assert profile.source.endswith(": make")
    assert said == ["device", "1 rows", "4 rows", "12 rows", "prompts", "whole steps"]
    path = tmp_path / "copy.json"
    path.write_text(profile.to_json())
    assert load_profile(path) == profile


def test_a_noisy_device_is_calibrated_to_within_its_noise(truth):
    """Every kernel, copy and phase of it takes up to 10 % more or less than it should, each time anew."""
    noisy = VirtualRig(VirtualDevice(Adversary(truth, seed=3, low=0.9, high=1.1)))
    profile = calibrate(
        noisy, ToyModel(), "noisy", grid=replace(GRID, contexts=(32, 150, 600), steps=20), quick=True
    ).profile
    for switches in MODES:
        for batch, context in ((3, 100), (8, 150)):
            case = Case(batch, context, switches)
            true, said = (predict(each, case, block_size=16, longest=400) for each in (truth, profile))
            assert said.ns == pytest.approx(true.ns, rel=0.05)
            assert said.idle == pytest.approx(true.idle, abs=0.05)
