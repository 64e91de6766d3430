"""Tensors give their memory back: when the last one goes, or when told to."""

from __future__ import annotations

import pytest

import labkit
from labkit.errors import InvalidArgument


def test_memory_goes_back_with_the_last_view() -> None:
    gpu = labkit.VirtualGPU()
    x = gpu.zeros(100, device="cuda")
    view, address = x[10:], x.data_ptr()
    del x
    assert gpu.empty(100, device="cuda").data_ptr() != address
    del view
    assert gpu.empty(100, device="cuda").data_ptr() == address


def test_a_freed_tensor_is_refused() -> None:
    gpu = labkit.VirtualGPU()
    x = gpu.zeros(4, device="cuda")
    x.free()
    x.free()
    with pytest.raises(InvalidArgument, match="tensor 1"):
        x.add_(1)
