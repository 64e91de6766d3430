"""Graphs as torch.cuda has them; what a capture forbids is in tests/devices/test_capture.py."""

from __future__ import annotations

import pytest

import labkit
from labkit.errors import CaptureError, DeviceError


def test_a_graph_before_and_after_its_life() -> None:
    gpu = labkit.VirtualGPU()
    g, x = gpu.CUDAGraph(), gpu.zeros(2, device="cuda")
    for call in (g.replay, g.pool, g.capture_end):
        with pytest.raises(DeviceError):
            call()
    with gpu.graph(g):
        x.add_(1)
    g.replay()
    g.replay()
    assert x.tolist() == [2, 2]
    g.reset()
    with pytest.raises(DeviceError):
        g.replay()
    with gpu.graph(g):
        x.add_(10)
    g.replay()
    assert x.tolist() == [12, 12]


def test_an_error_in_the_block_ends_the_capture_and_is_not_hidden() -> None:
    gpu = labkit.VirtualGPU()
    g = gpu.CUDAGraph()
    with pytest.raises(KeyError), gpu.graph(g):
        raise KeyError
    assert not gpu.machine.captures_under_way
    with gpu.graph(g):
        gpu.kernel("a", 1)
    g.replay()


def test_the_capture_errors_own_message_is_the_one_that_is_raised() -> None:
    gpu = labkit.VirtualGPU()
    g, x = gpu.CUDAGraph(), gpu.zeros(1, device="cuda")
    with pytest.raises(CaptureError, match="blocking copy") as caught, gpu.graph(g):
        x.item()
    assert caught.value.code == 900
    assert x.item() == 0


def test_a_pool_is_shared_by_handle_or_by_graph() -> None:
    gpu = labkit.VirtualGPU()
    pool, graphs = gpu.graph_pool_handle(), [gpu.CUDAGraph() for _ in range(3)]
    with gpu.graph(graphs[0], pool=pool):
        gpu.kernel("a", 1)
    with gpu.graph(graphs[1], pool=graphs[0].pool()):
        gpu.kernel("b", 1)
    with gpu.graph(graphs[2]):
        gpu.kernel("c", 1)
    assert graphs[0].pool() is graphs[1].pool() is pool
    assert graphs[2].pool() is not pool


def test_kernels_in_a_graph_are_nodes_in_the_trace() -> None:
    gpu = labkit.VirtualGPU()
    g, x = gpu.CUDAGraph(), gpu.zeros(2, device="cuda")
    with gpu.graph(g):
        x.add_(1)
        x.mul_(2)
    g.replay()
    nodes = gpu.trace().graphs[g.name]
    assert [(node.name, node.parents) for node in nodes] == [("add", ()), ("mul", (0,))]
