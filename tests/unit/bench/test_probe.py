"""A probe notes what calls, phases and kernels take, and changes nothing else."""

import pytest

from labkit.bench.probe import ProbeDevice
from labkit.device.costs import load_profile
from labkit.device.virtual import VirtualDevice
from labkit.engine.assemble import assemble
from labkit.engine.sampling import SamplingParams
from labkit.experiments import sizes_for, synthetic_prompts
from labkit.model.toy import ToyModel
from labkit.switches import RUNG_NAMES, ladder

PARAMS = SamplingParams(max_new_tokens=6)


def run(device, rung):
    model = ToyModel()
    prompts = synthetic_prompts(model, 3, 5)
    core = assemble(ladder(rung), sizes_for(model, prompts, PARAMS), device, model, unsafe=True)
    requests = [core.submit(prompt, PARAMS) for prompt in prompts]
    while core.busy:
        core.step()
    return [request.output for request in requests], device.now_ns()


@pytest.mark.parametrize("rung", RUNG_NAMES)
def test_tokens_and_times_are_those_of_the_device_itself(rig, truth, rung):
    assert run(ProbeDevice(rig), rung) == run(VirtualDevice(truth), rung)


def test_phases_without_calls_and_calls_without_phases(rig, truth):
    probe = ProbeDevice(rig)
    run(probe, "carry_over")
    decode = [sample for sample in probe.phases["fill"] if sample[0] == sample[1] == 3]
    assert {own for *_, own, _ in decode} == {truth.phases["fill"](3, 3, 0)}
    assert {own for *_, own, _ in probe.phases["upload"]} == {0}
    assert set(probe.calls["copy upload"]) == {truth.copy_ns}
    forward = truth.kernels["forward"]
    series = truth.launch_ns + (forward.launches - 1) * forward.launch_ns
    assert set(probe.calls["launch forward"]) == {series}


def test_host_time_has_the_calls_in_it_and_not_the_waits(rig, truth):
    probe = ProbeDevice(rig)
    run(probe, "cuda_graphs")
    host = probe.host(3)
    assert set(host["upload"]) == {truth.copy_ns + truth.record_ns}
    assert set(host["settle"]) == {truth.phases["settle"](3, 3, 0)}
    assert max(probe.calls["synchronize"]) > 1_000_000, "the wait itself is elsewhere"


def test_held_kernels_are_timed_without_the_launches_between_them(rig, truth):
    probe = ProbeDevice(rig)
    with probe.holding(10_000_000) as steps:
        run(probe, "carry_over")
    for step in steps[1:]:
        assert [name for name, *_ in step] == ["carry_over", "forward", "sample"]
        for name, work, ns, busy in step:
            assert ns == busy == truth.kernels[name](work.rows, work.tokens, work.context)
    again = len(steps)
    probe.clear()
    run(probe, "carry_over")
    assert len(steps) == again, "nothing is held afterwards"


def test_a_held_graph_is_one_time(rig, truth):
    probe = ProbeDevice(rig)
    with probe.holding(10_000_000) as steps:
        run(probe, "cuda_graphs")
    [(name, work, ns, busy)] = steps[-1]
    parts = (truth.kernels["carry_over"], truth.graph_kernels["forward"], truth.kernels["sample"])
    assert busy == sum(part(work.rows, work.tokens, work.context) for part in parts)
    assert (name, ns) == ("graph", busy + 2 * truth.node_gap_ns)


@pytest.mark.parametrize("rung", ["events", "cuda_graphs"])
def test_a_probe_out_of_the_way_hears_nothing_and_hears_again_afterwards(rig, truth, rung):
    probe = ProbeDevice(rig)
    probe.listen(False)
    assert run(probe, rung) == run(VirtualDevice(truth), rung)
    assert not probe.calls and not probe.phases
    assert probe.launch == rig.device.launch
    probe.listen(True)
    run(probe, rung)
    assert probe.calls["copy upload"] and probe.phases["plan"]


def test_other_calls_go_through(rig):
    probe = ProbeDevice(rig)
    assert probe.profile is rig.device.profile
    assert load_profile(probe.profile) is rig.device.profile
