"""Profiles, and the adversary that bends them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from labkit.device.api import Work
from labkit.device.costs import (
    Adversary,
    Costs,
    Linear,
    Link,
    Profile,
    load_profile,
    profile_names,
    scaled_gpu,
    scaled_host,
)
from labkit.device.virtual import VirtualDevice
from labkit.errors import InvalidArgument

U = load_profile("toy-u")


@pytest.mark.parametrize("name", profile_names())
def test_a_shipped_profile_survives_its_file(name: str, tmp_path: Path) -> None:
    profile = load_profile(name)
    path = tmp_path / "copy.json"
    path.write_text(profile.to_json())
    assert load_profile(path) == profile
    assert profile.name == name
    assert profile.source


def test_the_constants_of_profile_u() -> None:
    assert (U.launch_ns, U.latency_ns, U.record_ns, U.wait_ns, U.query_ns) == (5000, 2000, 1000, 1000, 1000)
    assert (U.sync_return_ns, U.sync_blocking_return_ns, U.graph_launch_ns, U.node_gap_ns) == (
        3000,
        20_000,
        10_000,
        1000,
    )


@pytest.mark.parametrize(
    ("content", "named"),
    [('{"name": "x", "speed": 3}', "speed"), ('{"h2d": {"width": 1}, "name": "x"}', "width"), ("{", "JSON")],
)
def test_a_bad_file_is_named(content: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InvalidArgument, match=named):
        load_profile(path)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("null", "one JSON object"),
        ("{}", "the field name"),
        ('{"name": 3}', "name=3: a text"),
        ('{"name": "x", "launch_ns": -1}', "launch_ns=-1: an integer from 0"),
        ('{"name": "x", "launch_ns": 1.5}', "launch_ns=1.5: an integer"),
        ('{"name": "x", "copy_ns": Infinity}', "copy_ns=inf: an integer"),
        ('{"name": "x", "graph_launch_per_node_ns": NaN}', "graph_launch_per_node_ns=nan: a number from 0"),
        ('{"name": "x", "h2d": {"pinned": 0}}', "h2d: pinned=0: a number from 1e-06"),
        ('{"name": "x", "kernels": [1]}', r"kernels=\[1\]: an object"),
        ('{"name": "x", "kernels": {"forward": {"launches": 0}}}', "kernels.forward: launches=0: an integer from 1"),
        ('{"name": "x", "kernels": {"forward": {"points": [[1, 2]]}}}', r"points=\[\[1, 2\]\]: a list of"),
        ('{"name": "x", "phases": {"plan": {"base_ns": "3"}}}', "phases.plan: base_ns='3': a number"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(content: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InvalidArgument, match=named):
        load_profile(path)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match=r"bad.json.*not JSON"):
        load_profile(path)


def test_an_unknown_profile_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgument, match=r"nonsense.*toy-u"):
        load_profile("nonsense")


def test_a_cost_is_linear_above_the_free_tokens() -> None:
    cost = Linear(base_ns=100, per_row_ns=10, per_token_ns=2, per_context_ns=0.5, free_tokens=8)
    assert cost(rows=3, tokens=8, context=10) == 135
    assert cost(rows=3, tokens=10, context=10) == 139


POINTS = Linear(
    points=((2, 10, 100.0), (2, 20, 200.0), (4, 10, 300.0), (4, 30, 700.0), (8, 10, 500.0)),
    per_token_ns=5,
    free_tokens=10,
)


@pytest.mark.parametrize(
    ("rows", "each", "ns"),
    [
        (2, 10, 100),
        (2, 15, 150),  # on the way to (20, 200)
        (2, 25, 250),  # and beyond
        (2, 5, 50),
        (4, 20, 500),
        (3, 20, (200 + 500) / 2),
        (6, 10, 400),
        (1, 10, 0),
        (8, 999, 500),  # one context alone: the same at any
    ],
)
def test_measured_points_take_the_place_of_base_and_slopes(rows: int, each: int, ns: float) -> None:
    assert POINTS(rows, rows, rows * each) == ns
    assert replace(POINTS, base_ns=1e9, per_row_ns=1e9, per_context_ns=1e9)(rows, rows, rows * each) == ns


def test_beyond_the_last_point_the_second_half_of_them_tells_the_direction() -> None:
    """Of (1, 10), (2, 20), (3, 30), (4, 60) the chord from the second to the last, not the last two alone."""
    cost = Linear(points=((1, 0, 10.0), (2, 0, 20.0), (3, 0, 30.0), (4, 0, 60.0)))
    assert cost(6, 6, 0) == 20 + 20 * 4
    assert Linear(points=((1, 0, 10.0), (2, 0, 20.0)))(5, 5, 0) == 50


def test_tokens_beyond_the_free_ones_cost_extra_with_points_too() -> None:
    assert POINTS(4, 12, 40) == 310


def test_one_point_is_a_constant() -> None:
    assert Linear(points=((4, 100, 2.0),))(9, 9, 10) == 2


def test_a_kernel_inside_a_graph_may_take_another_time() -> None:
    costs = Costs(Profile("x", kernels={"a": Linear(5), "b": Linear(7)}, graph_kernels={"a": Linear(9)}))
    assert [costs.kernel(Work(name))[0] for name in "ab"] == [5, 7]
    assert [costs.kernel(Work(name), in_graph=True)[0] for name in "ab"] == [9, 7]


def test_each_launch_of_a_series_costs_what_it_says_or_else_what_any_launch_costs() -> None:
    costs = Costs(Profile("x", launch_ns=10, kernels={"a": Linear(launches=5, launch_ns=3.5), "b": Linear(launches=5)}))
    assert [costs.launch_ns(Work(kind)) for kind in ("a", "b", "fixed")] == [3.5, 10, 10]


def test_a_series_is_launched_at_its_own_pace() -> None:
    profile = Profile("x", launch_ns=10, kernels={"a": Linear(base_ns=1, launches=5, launch_ns=3.5)})
    device = VirtualDevice(profile)
    device.launch(None, device.stream("s"), work=Work("a"), label="a")
    assert device.now_ns() == 10 + 14


def test_a_series_ends_no_earlier_than_its_tail_after_the_last_launch() -> None:
    kernel = Linear(base_ns=100, launches=5)
    for tail, end in ((0, 500 + 20), (60, 500 + 60), (900, 500 + 100)):
        device = VirtualDevice(Profile("x", launch_ns=100, kernels={"a": replace(kernel, tail_ns=tail)}))
        item = device.launch(None, device.stream("s"), work=Work("a"), label="a")
        device.synchronize()
        assert item is not None
        assert item.end == end, tail


def test_a_series_begins_in_earnest_after_its_head_unless_the_device_is_busy_until_then() -> None:
    kernel = Linear(base_ns=1000, launches=2, head_ns=70)
    device = VirtualDevice(Profile("x", launch_ns=10, kernels={"a": kernel}))
    stream = device.stream("s")
    first, second = (device.launch(None, stream, work=Work("a"), label="a") for _ in range(2))
    device.synchronize()
    assert first is not None and second is not None
    assert (first.start, first.end) == (80, 1080)
    assert (second.start, second.end) == (1080, 2080)


def test_points_survive_a_file(tmp_path: Path) -> None:
    profile = Profile("x", kernels={"forward": POINTS}, graph_kernels={"forward": POINTS})
    path = tmp_path / "x.json"
    path.write_text(profile.to_json())
    assert load_profile(path) == profile


def test_copies_are_latency_and_bandwidth() -> None:
    link = Link(latency_ns=5, pinned=2.0, pageable=1.0, stage=4.0)
    costs = Costs(Profile("x", h2d=link, d2h=link))
    assert costs.copy(100, upload=True, host_place="pinned") == 55
    assert costs.copy(100, upload=True, host_place="pageable") == 55, "staged, then as fast as pinned"
    assert costs.copy(100, upload=False, host_place="pageable") == 105
    assert costs.stage(100) == 25


def test_an_adversary_is_the_same_for_the_same_seed() -> None:
    def draw(seed: int) -> list[int]:
        costs = Adversary(U, seed)
        return [costs.kernel(Work("fixed", fixed_ns=1000))[0] for _ in range(20)]

    assert draw(1) == draw(1) != draw(2)
    assert min(draw(1)) < 1000 < max(draw(1)) <= 8000


def test_a_slow_host_has_the_same_gpu() -> None:
    kernels = {"forward": Linear(launch_ns=7, head_ns=11)}
    slow = scaled_host(replace(U, phases={"plan": Linear(base_ns=10)}, kernels=kernels), 3)
    assert (slow.kernels["forward"].launch_ns, slow.kernels["forward"].head_ns) == (21, 33)
    assert (slow.launch_ns, slow.phases["plan"].base_ns, slow.latency_ns) == (15_000, 30, U.latency_ns)


def test_scaled_gpu_changes_what_the_forward_pass_takes_and_nothing_of_the_host():
    forward = Linear(base_ns=100, per_token_ns=2, launches=7, launch_ns=5, tail_ns=4, points=((1, 8, 40), (2, 8, 60)))
    profile = replace(U, kernels={"forward": forward, "sample": Linear(base_ns=9)}, graph_kernels={"forward": forward})
    half = scaled_gpu(profile, 0.5)
    for table in (half.kernels, half.graph_kernels):
        assert table["forward"] == Linear(
            base_ns=50, per_token_ns=1, launches=7, launch_ns=5, tail_ns=2, points=((1, 8, 20), (2, 8, 30))
        )
    assert half.kernels["sample"] == profile.kernels["sample"]
    assert (half.launch_ns, half.phases) == (profile.launch_ns, profile.phases)
