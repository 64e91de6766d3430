"""Kernels of one's own."""

from __future__ import annotations

import pytest
import torch

import labkit
from labkit.errors import InvalidArgument


def test_a_kernel_gets_plain_tensors_and_runs_at_its_end() -> None:
    gpu = labkit.VirtualGPU("zero")
    x, y, seen = gpu.ones(2, device="cuda"), gpu.zeros(2, device="cuda"), []

    def body(a: torch.Tensor, b: torch.Tensor) -> None:
        seen.append(type(a))
        b.copy_(a * 3)

    gpu.synchronize()
    gpu.kernel("triple", 30, reads=[x], writes=[y], fn=body)
    gpu.host(29)
    assert y.data.tolist() == [0, 0]
    assert not seen
    gpu.synchronize()
    assert y.tolist() == [3, 3]
    assert seen == [torch.Tensor]


def test_two_small_kernels_overlap() -> None:
    gpu = labkit.VirtualGPU("zero")
    for fraction in (0.5, 0.5):
        gpu.kernel("half", 30, fraction=fraction, stream=gpu.Stream())
    gpu.synchronize()
    assert gpu.now_us == 30


def test_a_kernel_does_not_touch_pageable_memory() -> None:
    gpu = labkit.VirtualGPU()
    with pytest.raises(InvalidArgument, match="pinned"):
        gpu.kernel("bad", 1, reads=[gpu.zeros(2)])
    gpu.kernel("zero copy", 1, reads=[gpu.zeros(2, pin_memory=True)])


def test_an_error_in_a_kernel_surfaces_at_the_next_wait() -> None:
    gpu = labkit.VirtualGPU()

    def broken() -> None:
        raise ZeroDivisionError("in the kernel")

    gpu.kernel("broken", 1, fn=broken)
    with pytest.raises(ZeroDivisionError):
        gpu.synchronize()


def test_a_race_is_reported_with_the_learners_line() -> None:
    gpu = labkit.VirtualGPU()
    x = gpu.ones(4, device="cuda")
    gpu.kernel("late", 5, reads=[x], stream=gpu.Stream())
    sources = {span.source.split(":")[0] for span in gpu.trace().of_kind("kernel", "launch")}
    assert sources == {"test_kernels.py"}
