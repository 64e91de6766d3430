"""A virtual GPU with easy numbers, on the bench."""

import pytest

from labkit.device.calibrate import VirtualRig
from labkit.device.costs import Linear, Link, Profile
from labkit.device.virtual import VirtualDevice

US = 1000
TRUTH = Profile(
    "truth",
    launch_ns=7 * US,
    copy_ns=6 * US,
    record_ns=3 * US,
    wait_ns=2 * US,
    query_ns=1 * US,
    sync_return_ns=4 * US,
    graph_launch_ns=5 * US,
    latency_ns=2 * US,
    node_gap_ns=1 * US,
    h2d=Link(4 * US, 50.0, 8.0, 10.0),
    d2h=Link(3 * US, 40.0, 8.0, 8.0),
    phases={
        "plan": Linear(50 * US, 2000),
        "fill": Linear(40 * US, 900, 25),
        "compute": Linear(11 * US),
        "settle": Linear(30 * US, 1500),
    },
    kernels={
        "carry_over": Linear(6 * US, launches=4),
        "forward": Linear(2000 * US, 9000, 8000, 40, free_tokens=300, launches=200, launch_ns=12_000),
        "sample": Linear(30 * US, 200, launches=3),
    },
    graph_kernels={"forward": Linear(2300 * US, 9000, 8000, 40, free_tokens=300)},
)


@pytest.fixture(scope="session")
def truth() -> Profile:
    return TRUTH


@pytest.fixture
def rig() -> VirtualRig:
    return VirtualRig(VirtualDevice(TRUTH))
