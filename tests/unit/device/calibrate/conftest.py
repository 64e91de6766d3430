"""A virtual GPU on the bench, with every cost different, so that no two can be mistaken for one another."""

import pytest

from labkit.device.calibrate import VirtualRig
from labkit.device.costs import Link, Profile
from labkit.device.virtual import VirtualDevice

TRUTH = Profile(
    "truth",
    launch_ns=7300,
    copy_ns=6100,
    record_ns=2900,
    wait_ns=1700,
    query_ns=600,
    sync_return_ns=4100,
    sync_blocking_return_ns=23000,
    malloc_ns=150_000,
    free_ns=90_000,
    pinned_malloc_ns=400_000,
    graph_launch_ns=5300,
    graph_launch_per_node_ns=3.0,
    latency_ns=2100,
    node_gap_ns=1300,
    stage_only_bytes=96 * 1024,
    h2d=Link(latency_ns=3900, pinned=50.0, stage=10.0),
    d2h=Link(latency_ns=2700, pinned=40.0, pageable=8.0),
)


@pytest.fixture
def truth() -> Profile:
    return TRUTH


@pytest.fixture
def rig() -> VirtualRig:
    return VirtualRig(VirtualDevice(TRUTH))
