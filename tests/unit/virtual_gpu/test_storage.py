"""Where a tensor is, and which bytes it has."""

from __future__ import annotations

import torch

import labkit


def test_a_tensor_says_where_it_is() -> None:
    gpu = labkit.VirtualGPU()
    device, pinned, pageable = gpu.zeros(2, 3, device="cuda"), gpu.zeros(2, pin_memory=True), gpu.zeros(2)
    assert (device.device, device.is_cuda, device.is_pinned()) == ("cuda:0", True, False)
    assert (pinned.device, pinned.is_cuda, pinned.is_pinned()) == ("cpu", False, True)
    assert (pageable.device, pageable.is_pinned()) == ("cpu", False)
    assert (device.shape, device.numel(), device.nbytes, len(device)) == (torch.Size([2, 3]), 6, 24, 2)


def test_views_share_bytes() -> None:
    gpu = labkit.VirtualGPU()
    x = gpu.zeros(4, 6, device="cuda")
    column, row = x[0:4, 1], x[2]
    assert (row.access.start, row.access.stop) == (48, 72)
    assert (column.access.start, column.access.stop) == (4, 80), "from its first element to its last"
    assert row.data_ptr() == x.data_ptr() + 48
    assert x.view(24).shape == torch.Size([24])
    assert (x[0:0].access.start, x[0:0].access.stop) == (0, 0)


def test_copies_of_parts_are_accesses_to_parts() -> None:
    gpu = labkit.VirtualGPU()
    x, h = gpu.zeros(8, device="cuda"), gpu.ones(8, pin_memory=True)
    x[2:4].copy_(h[0:2], non_blocking=True)
    assert x.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    (copy,) = (span for span in gpu.trace().of_kind("copy") if span.lane == "H2D")
    assert [(touch.start, touch.stop) for touch in (*copy.reads, *copy.writes)] == [(0, 8), (8, 16)]
