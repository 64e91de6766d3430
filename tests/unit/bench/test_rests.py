"""What whole steps take beyond their parts finds its place in the profile."""

from dataclasses import replace

import pytest

from labkit.bench.predict import Case, predict
from labkit.bench.rests import Rest, explain_rests, with_head_rest, with_launch_rest, with_plan_rest, with_tail_rest
from labkit.bench.step_costs import Grid
from labkit.device.calibrate import VirtualRig
from labkit.device.costs import Linear, Profile
from labkit.device.virtual import VirtualDevice
from labkit.model.toy import ToyModel
from labkit.switches import ladder

SYNC, ASYNC = ladder("events"), ladder("carry_over")
GRID = Grid(rows=(1, 4, 9), contexts=(40, 100, 200), steps=6)


def rest(rows, ns, switches=SYNC):
    return Rest(Case(rows, 40, switches), 1000.0 + ns, 1000.0)


def test_the_rest_of_synchronous_graphs_goes_to_plan():
    profile = Profile("x", phases={"plan": Linear(1000, 10), "fill": Linear(7)})
    phases = with_plan_rest(profile, [rest(1, 50), rest(4, 9000), rest(11, 60)]).phases
    assert phases == {"plan": Linear(1060, 10), "fill": Linear(7)}


def test_a_phase_never_costs_less_than_nothing():
    profile = Profile("x", phases={"plan": Linear(1000, 10)})
    assert with_plan_rest(profile, [rest(1, -5000)]).phases["plan"].base_ns == 0


def test_the_rest_of_eager_launches_is_shared_out():
    profile = Profile("x", launch_ns=9, kernels={"forward": Linear(1000, launches=101, launch_ns=20)})
    assert with_launch_rest(profile, [rest(1, 400), rest(4, 500), rest(8, 9000)]).kernels["forward"].launch_ns == 25
    assert with_launch_rest(profile, [rest(4, -9000)]).kernels["forward"].launch_ns == 1
    single = Profile("x", kernels={"forward": Linear(1000)})
    assert with_launch_rest(single, [rest(4, 500)]) is single


def test_a_tail_grows_from_an_average_kernel():
    profile = Profile("x", kernels={"forward": Linear(1000, launches=100)})
    assert with_tail_rest(profile, [rest(4, 70)]).kernels["forward"].tail_ns == 80
    assert with_tail_rest(profile, [rest(4, -70)]).kernels["forward"].tail_ns == 0


def test_a_head_grows_and_is_never_negative():
    profile = Profile("x", kernels={"forward": Linear(1000, launches=100, head_ns=10)})
    assert with_head_rest(profile, rest(4, 70)).kernels["forward"].head_ns == 80
    assert with_head_rest(profile, rest(4, -70)).kernels["forward"].head_ns == 0


def test_secrets_of_a_device_are_found_whole(truth):
    """A host that loses time outside every phase, dearer launches and a longer tail than the parts say."""
    forward = replace(truth.kernels["forward"], launch_ns=12_700, tail_ns=90_000)
    plan = replace(truth.phases["plan"], base_ns=truth.phases["plan"].base_ns + 33_000)
    real = replace(
        truth, kernels={**truth.kernels, "forward": forward}, phases={**truth.phases, "plan": plan}, record_ns=3200
    )
    found, rests = explain_rests(ToyModel(), VirtualRig(VirtualDevice(real)), truth, GRID)
    assert [one.ns > 10_000 for one in rests] == [True] * 9
    for graphs in (False, True):
        for loop in (SYNC, ASYNC):
            case = Case(3, 60, loop.with_(cuda_graphs=graphs))
            said, true = (predict(each, case, block_size=16, longest=300).ns for each in (found, real))
            assert said == pytest.approx(true, rel=0.001)


def test_where_the_gpu_is_the_bottleneck_launches_keep_their_cost_and_the_head_is_found(truth):
    slow = replace(truth.kernels["forward"], base_ns=9_000_000.0)
    profile = replace(truth, kernels={**truth.kernels, "forward": slow})
    real = replace(profile, kernels={**profile.kernels, "forward": replace(slow, head_ns=400_000)})
    found, rests = explain_rests(ToyModel(), VirtualRig(VirtualDevice(real)), profile, GRID)
    assert [one.case.name for one in rests] == ["sync graphs"] * 3 + ["sync eager"]
    assert found.kernels["forward"].head_ns == pytest.approx(400_000, rel=1e-3)
    assert found.kernels["forward"].launch_ns == slow.launch_ns
    assert "rest +400 us" in str(rests[-1])
