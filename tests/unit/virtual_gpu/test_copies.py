"""The sync debug mode, and what copies are called in a trace."""

from __future__ import annotations

import pytest

import labkit
from labkit.errors import DeviceError


def test_the_debug_mode_warns_or_refuses() -> None:
    gpu = labkit.VirtualGPU()
    x = gpu.ones(1, device="cuda")
    gpu.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="synchronizing CUDA operation: item"):
        x.item()
    gpu.set_sync_debug_mode("error")
    with pytest.raises(DeviceError, match="item"):
        x.item()
    gpu.set_sync_debug_mode("default")
    assert x.item() == 1


def test_copies_are_named_after_the_device_tensor() -> None:
    gpu = labkit.VirtualGPU()
    x, h = gpu.empty(4, device="cuda", name="weights"), gpu.zeros(4, pin_memory=True)
    x.copy_(h, non_blocking=True)
    h.copy_(x, non_blocking=True)
    x.copy_(gpu.empty(4, device="cuda", name="other"))
    spans = [(span.name, span.lane) for span in gpu.trace().of_kind("copy", "kernel")]
    assert spans == [("upload weights", "H2D"), ("download weights", "D2H"), ("copy other", "compute")]
