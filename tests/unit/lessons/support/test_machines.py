"""The machines cost what they say, and measuring on them gives it back."""

from __future__ import annotations

import pytest

from labkit.bench.models import bench_model, open_rig
from labkit.bench.table import bench
from labkit.device.costs import load_profile, scaled_host
from labkit.lessons.support.machines import (
    LAUNCH_MACHINES,
    LINKS,
    SIZES,
    STEP_MACHINES,
    Bench,
    LaunchMachine,
    copies,
    link_copies,
    small_model,
)


@pytest.mark.parametrize("machine", LAUNCH_MACHINES)
def test_launches_cost_what_the_machine_says_whatever_the_kernel_takes(machine):
    bench = machine.bench()
    assert bench.launches == 0
    start = bench.now_ns()
    for _ in range(10):
        bench.launch()
    assert (bench.now_ns() - start, bench.launches) == (10 * machine.launch_ns, 10)


def test_a_kernel_that_takes_longer_than_a_launch_is_waited_for():
    bench = LaunchMachine(4_000, 25_000).bench()
    start = bench.now_ns()
    for _ in range(10):
        bench.launch()
    bench.wait()
    assert bench.now_ns() - start >= 10 * 25_000


def test_one_machine_launches_faster_than_its_kernels_run():
    assert any(machine.kernel_ns > machine.launch_ns for machine in LAUNCH_MACHINES)


@pytest.mark.parametrize("link", LINKS)
def test_copies_take_latency_and_bytes(link):
    sizes, times = link_copies(link)
    assert sizes == SIZES
    assert times == tuple(round(link.latency_ns + nbytes / link.pinned) for nbytes in sizes)


def test_copies_go_both_ways():
    rig = open_rig("virtual", "toy-u")
    assert copies(rig, upload=True) == copies(rig, upload=False), "toy-u has the same link in both directions"


def test_the_bench_names_its_machine():
    assert Bench(open_rig("virtual", "toy-u")).about == "virtual (toy-u)"


def test_of_the_step_machines_the_host_is_slower_on_one_and_faster_on_others():
    slower = []
    for machine in STEP_MACHINES:
        sync, ahead = machine.rows()
        assert (sync.mode, ahead.mode) == ("sync-graphs", "async-graphs")
        assert ahead.ns < sync.ns
        slower.append(sum(sync.host_ns.values()) > sync.busy_ns)
    assert sorted(slower) == [False, False, True]


def test_the_small_model_has_the_host_of_the_large_one():
    small, large = small_model(), load_profile("h200-8b")
    assert (small.phases, small.launch_ns) == (scaled_host(large, 1).phases, large.launch_ns)
    assert small_model(2).launch_ns == 2 * small.launch_ns


def test_the_host_is_slower_than_the_small_model_with_graphs_too():
    machine, model = open_rig("virtual", small_model()), bench_model("toy", "hf", "virtual")
    (row,) = bench(machine, model, "toy", ("sync-graphs",), (8,), (512,), bandwidth=4000, steps=6, blocks=2)
    assert 0 < row.busy_ns < 100_000 < sum(row.host_ns.values())
