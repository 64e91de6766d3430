"""Kernels of one's own."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize("us", [-1, float("nan"), float("inf"), "3", None])
def test_a_duration_that_no_clock_could_pass(us: Any) -> None:
    gpu = labkit.VirtualGPU()
    for call in (lambda: gpu.kernel("k", us), lambda: gpu.host(us), lambda: gpu.kernel("k", 1, fraction=us)):
        with pytest.raises(InvalidArgument, match=r"(us|fraction)="):
            call()
    gpu.synchronize()


@pytest.mark.parametrize("fraction", [0, 5])
def test_a_part_of_the_gpu_that_could_never_be_free(fraction: float) -> None:
    with pytest.raises(InvalidArgument, match="fraction"):
        labkit.VirtualGPU().kernel("k", 1, fraction=fraction)


def test_a_wrong_operand_is_an_error_of_the_call_and_nothing_after_it() -> None:
    gpu = labkit.VirtualGPU()
    x, y = gpu.ones(4, device="cuda"), gpu.ones(5, device="cuda")
    with pytest.raises(RuntimeError, match="size of tensor a"):
        x.add_(y)
    with pytest.raises(TypeError, match="must be Tensor"):
        x.mul_("3")
    assert x.add_(2).mul_(x).tolist() == [9] * 4


def test_tensors_of_another_machine_are_refused() -> None:
    gpu, earlier = labkit.VirtualGPU(), labkit.VirtualGPU()
    x, old = gpu.ones(4, device="cuda"), earlier.ones(4, device="cuda")
    for call in (lambda: x.add_(old), lambda: x + old, lambda: x.copy_(old), lambda: gpu.kernel("k", 1, reads=[old])):
        with pytest.raises(InvalidArgument, match="of another"):
            call()
    with pytest.raises(InvalidArgument, match="tensor=3: a tensor"):
        gpu.kernel("k", 1, reads=[3])
    assert x.tolist() == [1] * 4


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
