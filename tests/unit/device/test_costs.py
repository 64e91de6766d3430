"""Profiles, and the adversary that bends them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from labkit.device.api import Work
from labkit.device.costs import Adversary, Costs, Linear, Link, Profile, load_profile, profile_names, scaled_host
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


def test_an_unknown_profile_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgument, match=r"nonsense.*toy-u"):
        load_profile("nonsense")


def test_a_cost_is_linear_above_the_free_tokens() -> None:
    cost = Linear(base_ns=100, per_row_ns=10, per_token_ns=2, per_context_ns=0.5, free_tokens=8)
    assert cost(rows=3, tokens=8, context=10) == 135
    assert cost(rows=3, tokens=10, context=10) == 139


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
    slow = scaled_host(replace(U, phases={"plan": Linear(base_ns=10)}), 3)
    assert (slow.launch_ns, slow.phases["plan"].base_ns, slow.latency_ns) == (15_000, 30, U.latency_ns)
