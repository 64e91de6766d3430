"""A calibrated profile predicts the device that it was calibrated on, at sizes it has not seen."""

from dataclasses import replace

import pytest

from labkit.bench.calibrate import Left, _with_rest, calibrate
from labkit.bench.predict import Case, predict
from labkit.bench.step_costs import Grid
from labkit.device.calibrate import VirtualRig
from labkit.device.costs import Linear, Profile, load_profile
from labkit.device.virtual import VirtualDevice
from labkit.model.toy import ToyModel
from labkit.switches import ladder

GRID = Grid(rows=(1, 4, 12), contexts=(32, 64, 200), chunks=(400, 800), steps=6)
MODES = [ladder(rung).with_(cuda_graphs=graphs) for rung in ("events", "carry_over") for graphs in (False, True)]


@pytest.fixture(scope="module")
def calibrated():
    truth = load_profile("h200-8b")
    said = []
    profile, left = calibrate(
        VirtualRig(VirtualDevice(truth)),
        ToyModel(),
        "copy",
        command="make",
        grid=GRID,
        quick=True,
        progress=said.append,
    )
    return truth, profile, left, said


@pytest.mark.parametrize("switches", MODES)
@pytest.mark.parametrize(("batch", "context"), [(2, 40), (7, 150), (20, 100)])
def test_unseen_sizes_are_predicted(calibrated, switches, batch, context):
    truth, profile, _, _ = calibrated
    case = Case(batch, context, switches)
    true, said = (predict(each, case, block_size=16, longest=300) for each in (truth, profile))
    assert said.ns == pytest.approx(true.ns, rel=1e-3)
    assert said.idle == pytest.approx(true.idle, abs=2e-3)


def test_nothing_is_left_unexplained_on_a_device_without_secrets(calibrated):
    _, _, left, _ = calibrated
    assert [one.rows for one in left] == [1, 4, 12]
    assert max(abs(one.ns) for one in left) < 100


def test_the_source_says_where_it_comes_from(calibrated, tmp_path):
    _, profile, _, said = calibrated
    assert profile.source.startswith("measured: virtual (h200-8b), toy (ToyModel), 20")
    assert profile.source.endswith(": make")
    assert said == ["device", "1 rows", "4 rows", "12 rows", "prompts", "whole steps"]
    path = tmp_path / "copy.json"
    path.write_text(profile.to_json())
    assert load_profile(path) == profile


def test_what_the_parts_leave_goes_to_plan():
    profile = Profile("x", phases={"plan": Linear(1000, 10), "fill": Linear(7)})
    phases = _with_rest(profile, (Left(1, 150, 100), Left(11, 250, 180)))
    assert phases["plan"].base_ns == pytest.approx(1048, abs=1)
    assert phases["plan"].per_row_ns == pytest.approx(12, abs=0.1)
    assert phases["fill"] == Linear(7)


def test_a_phase_never_costs_less_than_nothing():
    profile = replace(Profile("x"), phases={"plan": Linear(1000, 10)})
    assert _with_rest(profile, (Left(1, 0, 5000), Left(11, 0, 5000)))["plan"].base_ns == 0
