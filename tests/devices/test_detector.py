"""Rules 65 to 68: what a verdict may depend on. Only the virtual GPU's programs say what they touch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.devices.program import Virtual, contract_profile


@pytest.mark.parametrize("first", [0, 1, 1000])
@pytest.mark.parametrize("second", [0, 1, 1000])
@pytest.mark.parametrize("pause", [0, 500])
def test_rule_65_a_verdict_does_not_depend_on_durations_or_pauses(first: float, second: float, pause: float) -> None:
    dev = Virtual()
    x = dev.tensor_of(1, "device", 0)
    dev.fill(x, 8, first, dev.Stream())
    dev.host(pause)
    dev.read(x, second, dev.Stream())
    dev.expect_races(1)


@pytest.mark.parametrize(("start", "races"), [(32, 1), (64, 0)])
def test_rule_66_byte_ranges_and_not_pointers(start: int, races: int) -> None:
    dev = Virtual()
    x = dev.empty(96, dtype=torch.uint8, device="cuda")
    dev.kernel(10, dev.Stream(), writes=[x[0:64]])
    dev.kernel(10, dev.Stream(), reads=[x[start:96]])
    dev.expect_races(races)


def test_rule_66_the_host_is_an_agent() -> None:
    dev = Virtual()
    s, x, h = dev.Stream(), dev.tensor_of(1, "device", 0), dev.tensor_of(1, "pinned", 1)
    dev.copy(x, h, s)
    h[0:2].fill_(5)
    (race,) = dev.report().races
    assert (race.second.stream, race.second.start, race.second.stop) == ("host", 0, 8)


def graph_of_two(dev: Any, joined: bool) -> Any:
    """A graph in which two nodes write x; with an edge between them or without."""
    s, t, g, x = dev.Stream(), dev.Stream(), dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.graph(g, stream=s):
        dev.kernel(1, s)
        t.wait_stream(s)
        dev.fill(x, 1, 10, s)
        if joined:
            t.wait_stream(s)
        dev.fill(x, 2, 10, t)
        s.wait_stream(t)
    return g


@pytest.mark.parametrize(("joined", "races"), [(True, 0), (False, 1)])
def test_rule_67_only_edges_order_the_nodes_of_a_graph(joined: bool, races: int) -> None:
    dev = Virtual()
    g = graph_of_two(dev, joined)
    dev.expect_races(0)
    g.replay()
    dev.expect_races(races)


def test_rule_67_nodes_touch_memory_at_every_replay() -> None:
    dev = Virtual()
    s, t, g, x = dev.Stream(), dev.Stream(), dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.graph(g, stream=s):
        dev.fill(x, 1, 10, s)
    dev.replay(g, s)
    t.wait_stream(s)
    dev.read(x, 10, t)
    dev.expect_races(0)
    dev.read(x, 10, t)
    dev.replay(g, s)
    dev.expect_races(1)


def download(dev: Any) -> tuple[Any, Any, Any]:
    s, x, h = dev.Stream(), dev.tensor_of(1, "device", 8), dev.tensor_of(1, "pinned", 0)
    dev.copy(h, x, s)
    return s, x, h


HOST_EDGES = {
    "stream synchronize": lambda dev, s: s.synchronize(),
    "device synchronize": lambda dev, s: dev.synchronize(),
    "event synchronize": lambda dev, s: s.record_event().synchronize(),
    "a blocking copy": lambda dev, s: dev.copy(
        dev.tensor_of(1, "device", 0), dev.tensor_of(1, "pinned", 0), s, non_blocking=False
    ),
    "a pageable download": lambda dev, s: dev.copy(dev.tensor_of(1, "pageable", 0), dev.tensor_of(1, "device", 0), s),
}
NO_EDGES = {
    "nothing": lambda dev, s: None,
    "time": lambda dev, s: dev.host(10_000),
    "another stream": lambda dev, s: dev.Stream().synchronize(),
    "a wait of another stream": lambda dev, s: dev.Stream().wait_stream(s),
    "the default stream, which ignores torch streams": lambda dev, s: dev.default_stream().synchronize(),
}


@pytest.mark.parametrize("edge", HOST_EDGES.values(), ids=HOST_EDGES)
def test_rule_68_edges_to_the_host(edge: Any) -> None:
    dev = Virtual()
    s, _, h = download(dev)
    edge(dev, s)
    assert dev.host_read(h) == 8
    dev.expect_races(0)


@pytest.mark.parametrize("no_edge", NO_EDGES.values(), ids=NO_EDGES)
def test_rule_68_what_is_no_edge_to_the_host(no_edge: Any) -> None:
    dev = Virtual()
    s, _, h = download(dev)
    no_edge(dev, s)
    dev.host_read(h)
    dev.expect_races(1)


def test_rule_68_item_is_an_edge_to_the_host() -> None:
    dev = Virtual()
    s, x, h = download(dev)
    with dev.stream(s):
        x[0].item()
    dev.host_read(h)
    dev.expect_races(0)


def test_rule_68_a_true_query_is_an_edge_and_a_false_one_is_not() -> None:
    for wait, races in ((50, 0), (0, 1)):
        dev = Virtual(contract_profile(query_ns=1))
        s, x, h, e = dev.Stream(), dev.tensor_of(1, "device", 8), dev.tensor_of(1, "pinned", 0), dev.Event()
        dev.kernel(30, s)
        dev.copy(h, x, s)
        e.record(s)
        dev.host(wait)
        assert e.query() == (not races)
        dev.host_read(h)
        dev.expect_races(races)


def test_rule_68_a_submission_carries_the_hosts_clock() -> None:
    dev = Virtual()
    s, t, x = dev.Stream(), dev.Stream(), dev.tensor_of(1, "device", 0)
    dev.fill(x, 8, 30, s)
    s.synchronize()
    dev.read(x, 10, t)
    dev.expect_races(0)


@pytest.mark.parametrize(("blocking", "races"), [(True, 0), (False, 1)])
def test_rule_68_legacy_edges_are_for_blocking_streams_only(blocking: bool, races: int) -> None:
    dev = Virtual()
    x = dev.tensor_of(1, "device", 0)
    dev.fill(x, 8, 30, dev.foreign_stream(blocking=blocking), fraction=0.3)
    dev.read(x, 10, dev.default_stream(), fraction=0.3)
    dev.expect_races(races)


def test_rule_68_a_report_names_both_accesses_and_the_missing_edge() -> None:
    dev = Virtual()
    s, t, x = dev.Stream(), dev.Stream(), dev.tensor_of(1, "device", 0)
    dev.fill(x, 8, 30, s, name="A")
    dev.read(x, 10, t, name="B")
    (race,) = dev.report().races
    assert (race.first.operation, race.first.stream) == ("A", s.name)
    assert (race.second.operation, race.second.stream) == ("B", t.name)
    assert race.first.source.startswith("program.py:")
    assert race.missing_edge == f"record after `A` on {s.name}; {t.name} waits on it before `B` starts"
