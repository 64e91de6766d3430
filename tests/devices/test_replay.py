"""Rules 52 to 56 and 60: what a replay does."""

from __future__ import annotations

from typing import Any

from tests.devices.program import contract_profile


def test_rule_52_a_replay_follows_the_dag_and_not_the_streams(dev: Any) -> None:
    s, t, g = dev.Stream(), dev.Stream(), dev.CUDAGraph()
    with dev.graph(g, stream=s):
        dev.kernel(10, s, fraction=0.4, name="A")
        t.wait_stream(s)
        dev.kernel(20, s, fraction=0.4, name="B")
        dev.kernel(30, t, fraction=0.4, name="C")
        s.wait_stream(t)
        dev.kernel(5, s, fraction=0.4, name="D")
    if dev.real:  # a first replay also uploads the graph
        dev.replay(g, s)
        dev.synchronize()
    begin = dev.now
    work = dev.replay(g, dev.Stream())
    dev.synchronize()
    assert dev.now - begin == dev.about(45)
    assert work.end - work.start == dev.about(45)


def test_rule_53_a_replay_is_one_item_of_its_stream(dev: Any) -> None:
    g = dev.CUDAGraph()
    with dev.graph(g):
        dev.kernel(10)
        dev.kernel(20)
    for s in (dev.Stream(), dev.default_stream()):
        first, replay, last = dev.kernel(30, s), dev.replay(g, s), dev.kernel(10, s)
        dev.synchronize()
        zero = first.start
        assert (replay.start - zero, replay.end - zero) == (dev.about(30), dev.about(60))
        assert (last.start - zero, last.end - zero) == (dev.about(60), dev.about(70))


def test_rule_54_one_instance_of_a_graph_at_a_time(dev: Any) -> None:
    g1, g2 = dev.CUDAGraph(), dev.CUDAGraph()
    for g in (g1, g2):
        with dev.graph(g):
            dev.kernel(30, fraction=0.3)
    a, b, c = (dev.Stream() for _ in range(3))
    first, again, other = dev.replay(g1, a), dev.replay(g1, b), dev.replay(g2, c)
    dev.synchronize()
    zero = first.start
    assert [work.end - zero for work in (first, again, other)] == [dev.about(30), dev.about(60), dev.about(30)]


def test_rule_54_orders_the_two_replays_for_the_detector_too(dev: Any) -> None:
    g, x = dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.graph(g):
        dev.fill(x, 1, 10)
    dev.replay(g, dev.Stream())
    dev.replay(g, dev.Stream())
    dev.synchronize()
    dev.expect_races(0)


def test_rule_55_addresses_and_host_numbers_are_frozen_and_memory_is_not(dev: Any) -> None:
    s, g = dev.Stream(), dev.CUDAGraph()
    x, h, y, number = dev.tensor_of(1, "device", 0), dev.tensor_of(1, "pinned", 0), dev.tensor_of(1, "device", 0), 3
    with dev.graph(g, stream=s):
        x.copy_(h, non_blocking=True)
        y.fill_(number)
    number = 4
    for value in (5, 6):
        dev.host_fill(h, value)
        dev.replay(g, s)
        dev.synchronize()
        assert (dev.peek(x), dev.peek(y)) == (value, 3)
    dev.expect_races(0)


def test_rule_55_overwriting_the_source_after_launching_the_replay(dev: Any) -> None:
    s, g, x, h = dev.Stream(), dev.CUDAGraph(), dev.tensor_of(1, "device", 0), dev.tensor_of(1, "pinned", 5)
    with dev.graph(g, stream=s):
        x.copy_(h, non_blocking=True)
    dev.kernel(100, s)
    dev.replay(g, s)
    dev.host_fill(h, 6)
    dev.synchronize()
    assert dev.peek(x) == 6
    dev.expect_races(1)


def static_input(dev: Any, ordered: bool) -> tuple[float, float]:
    """A replay reads x for 30 units; x is overwritten on another stream. What the replay read, when the copy began."""
    s, t, g = dev.Stream(), dev.Stream(), dev.CUDAGraph()
    x, h, seen = dev.tensor_of(10, "device", 1), dev.tensor_of(10, "pinned", 2), dev.tensor_of(10, "device", 0)
    with dev.graph(g, stream=s):
        dev.kernel(30, reads=[x], writes=[seen], fn=lambda a, b: b.copy_(a))
    dev.synchronize()
    replay = dev.replay(g, s)
    if ordered:
        t.wait_stream(s)
    copy = dev.copy(x, h, t)
    dev.synchronize()
    return float(seen.data[-1] if not dev.real else seen[-1].item()), copy.start - replay.start


def test_rule_56_a_static_input_is_overwritten_under_the_replay(dev: Any) -> None:
    value, start = static_input(dev, ordered=False)
    assert start == dev.about(0)
    assert value == (2 if dev.real else 1), "every second element is as it was, the others as they became"
    dev.expect_races(1)


def test_rule_56_the_wait_that_makes_it_safe(dev: Any) -> None:
    value, start = static_input(dev, ordered=True)
    assert (value, start) == (1, dev.about(30))
    dev.expect_races(0)


def test_rule_60_launch_arithmetic(dev: Any) -> None:
    dev = dev.with_("toy-u")
    s = dev.Stream()
    works = [dev.kernel(2, s) for _ in range(100)]
    assert dev.now == 500
    s.synchronize()
    assert (works[-1].end, dev.now) == (504, 507)


def test_rule_60_one_graph_instead_of_a_hundred_launches(dev: Any) -> None:
    dev = dev.with_("toy-u")
    s, g = dev.Stream(), dev.CUDAGraph()
    with dev.graph(g, stream=s):
        for _ in range(100):
            dev.kernel(2)
    begin = dev.now
    dev.replay(g, s)
    assert dev.now - begin == 10
    s.synchronize()
    assert dev.now - begin == 10 + 2 + 2 + 99 * (2 + 1) + 3 == 314


def test_rule_60_a_graph_launch_has_a_small_cost_per_node(dev: Any) -> None:
    dev = dev.with_(contract_profile(graph_launch_ns=10_000, graph_launch_per_node_ns=3.4))
    costs = []
    for nodes in (1, 1001):
        g = dev.CUDAGraph()
        with dev.graph(g):
            for _ in range(nodes):
                dev.kernel(0)
        begin = dev.now
        g.replay()
        costs.append(dev.now - begin)
    assert round(costs[1] - costs[0], 3) == 3.4
