"""Moving values between places."""

from __future__ import annotations

import pytest
import torch

import labkit
from labkit.errors import InvalidArgument


def test_to_copies_only_where_it_must() -> None:
    gpu = labkit.VirtualGPU()
    x, h = gpu.tensor([1.0, 2.0], device="cuda"), gpu.tensor([3.0], pin_memory=True)
    assert x.to("cuda") is x
    assert h.to("cpu") is h
    assert x.cpu().tolist() == [1, 2]
    assert h.cuda().is_cuda
    assert h.pin_memory().tolist() == [3]


def test_values_as_python_objects() -> None:
    gpu = labkit.VirtualGPU()
    x = gpu.tensor([3, 0], device="cuda")
    assert (x[0].item(), int(x[0]), float(x[1]), bool(x[1])) == (3, 3, 0.0, False)
    assert x.cpu().numpy().tolist() == [3, 0]
    assert repr(x) == "tensor([3, 0], device='cuda:0')"
    assert repr(x.cpu()) == "tensor([3, 0])"
    with pytest.raises(InvalidArgument, match=r"\.cpu\(\)"):
        x.numpy()


def test_shapes_must_agree() -> None:
    gpu = labkit.VirtualGPU()
    with pytest.raises(InvalidArgument, match=r"shape \(3,\)"):
        gpu.zeros(3).copy_(gpu.zeros(2))


def test_dtypes_stay() -> None:
    gpu = labkit.VirtualGPU()
    assert gpu.tensor([1], dtype=torch.int32).to("cuda").dtype == torch.int32
