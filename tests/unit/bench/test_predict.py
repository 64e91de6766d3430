"""Predictions: the same engine, on the virtual GPU."""

import pytest

from labkit.bench.decode import Decode, Prefilled, Steady
from labkit.bench.predict import Case, Measured, busy_of, measure, predict
from labkit.bench.probe import ProbeDevice
from labkit.device.api import Work
from labkit.model.toy import ToyModel
from labkit.switches import ladder

MODES = [ladder(rung).with_(cuda_graphs=graphs) for rung in ("events", "carry_over") for graphs in (False, True)]
ROOM = {"block_size": 16, "longest": 300}


def test_a_case_says_what_it_is():
    names = [Case(1, 1, switches).name for switches in MODES]
    assert names == ["sync eager", "sync graphs", "async eager", "async graphs"]


@pytest.mark.parametrize("switches", MODES)
def test_the_virtual_gpu_predicts_itself_to_the_nanosecond(rig, truth, switches):
    case = Case(5, 150, switches)
    model = Prefilled(ToyModel(max_model_len=600), 16)
    probe = ProbeDevice(rig)
    with Decode(model, switches, probe, batch=5, **ROOM) as decode:
        measured = measure(decode, probe, case, steps=8, blocks=2)
    assert predict(truth, case, **ROOM) == measured


def test_a_large_graph_step_is_the_kernels_alone(truth):
    found = predict(truth, Case(5, 200, ladder("cuda_graphs")), **ROOM)
    assert found.ns == pytest.approx(found.busy_ns, rel=0.005)
    assert found.idle < 0.005


def test_a_synchronous_step_adds_the_host(truth):
    both = [predict(truth, Case(5, 200, one), **ROOM) for one in (MODES[1], MODES[3])]
    host = sum(truth.phases[name](5, 5, 0) for name in ("plan", "fill", "settle"))
    assert both[0].ns - both[1].ns > host
    assert both[0].idle > host / both[0].ns


def test_host_time_per_phase_comes_with_it(truth):
    host = predict(truth, Case(5, 200, ladder("cuda_graphs")), **ROOM).host_ns
    assert host["plan"] == truth.phases["plan"](5, 0, 0)
    assert list(host) == ["plan", "fill", "upload", "compute", "download", "settle"]


def test_idle_is_never_below_zero():
    assert Measured(Steady((100.0,), 100.0), 103.0).idle == 0
    assert Measured(Steady((100.0,), 100.0), 60.0).idle == 0.4


def test_busy_is_the_median_of_the_inner_steps():
    held = [[("graph", Work("x"), 9, ns)] for ns in (1000, 7, 5, 6, 2)]
    assert busy_of(held) == 6
