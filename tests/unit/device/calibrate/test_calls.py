"""API costs of the virtual GPU, measured from outside, are those it was made with."""

import pytest

from labkit.device.api import Work
from labkit.device.calibrate.calls import behind, measure_calls, per_call

EXACT = ("launch_ns", "copy_ns", "record_ns", "wait_ns", "query_ns", "graph_launch_ns", "node_gap_ns")


def test_the_profile_comes_back(rig, truth):
    found = measure_calls(rig, rounds=3)
    assert {name: found[name] for name in EXACT} == {name: getattr(truth, name) for name in EXACT}
    assert found["graph_launch_per_node_ns"] == pytest.approx(truth.graph_launch_per_node_ns, abs=0.01)


def test_polling_shares_a_round_trip_out_to_within_a_fraction_of_a_query(rig, truth):
    found = measure_calls(rig, rounds=3)
    for name in ("latency_ns", "sync_return_ns", "sync_blocking_return_ns"):
        assert found[name] == pytest.approx(getattr(truth, name), abs=truth.query_ns / 5)
    both = found["latency_ns"] + found["sync_return_ns"]
    assert both == pytest.approx(truth.latency_ns + truth.sync_return_ns, abs=1), "their sum is exact"


def test_a_call_costs_its_median_round(rig):
    costs = iter([5, *[10] * 4, *[30] * 4, *[10] * 4])  # a first call that does not count, then three rounds of four
    assert per_call(rig, lambda: rig.device.spend(next(costs)), rounds=3, calls=4) == 10


def test_an_operation_behind_a_kernel_is_timed_without_its_launch(rig):
    stream = rig.device.stream("s")
    work = Work("fixed", fixed_ns=12_345)
    enqueue = lambda: rig.device.launch(None, stream, work=work, label="k")  # noqa: E731
    assert behind(rig, stream, enqueue, repeats=2) == (12_345, 12_345)
