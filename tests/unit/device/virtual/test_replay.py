"""Nodes of a graph become items; prices of a batch."""

from __future__ import annotations

from labkit.device.api import Work
from labkit.device.costs import Linear, Profile
from labkit.device.virtual import VirtualDevice


def test_a_replay_can_be_priced_for_its_batch() -> None:
    profile = Profile("x", kernels={"forward": Linear(base_ns=100, per_row_ns=10)})
    device = VirtualDevice(profile)
    s = device.stream("s")
    with device.capture("g", s) as graph:
        device.launch(None, s, work=Work("forward", rows=8), label="forward")
        device.launch(None, s, work=Work("fixed", fixed_ns=7), label="tail")
    first, second = graph.replay(s), graph.replay(s, Work("forward", rows=2))
    assert (first, second) == (None, None)
    device.synchronize()
    assert device.now_ns() == 180 + 7 + 120 + 7


def test_an_empty_graph_takes_no_time() -> None:
    device = VirtualDevice("zero")
    s = device.stream("s")
    with device.capture("g", s) as graph:
        pass
    item = device.replay(graph, s)
    device.synchronize()
    assert device.op_times(item) == (0, 0, 0)
