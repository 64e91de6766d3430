"""A GPU and its host: the interface, a real one, a virtual one. ``open_device`` gets one by name."""

from __future__ import annotations

from pathlib import Path

from labkit.device.api import Device
from labkit.device.costs import Costs, Profile
from labkit.errors import InvalidArgument

__all__ = ["check_device", "open_device"]


def check_device(device: str | Device) -> None:
    """Say at once whether ``open_device`` would find it: weights can take minutes to load.

    Raises:
        InvalidArgument: an unknown name. DeviceError: "cuda" where there is no GPU.
    """
    if device == "cuda":
        from labkit.device.cuda import require_gpu

        require_gpu()
    elif device != "virtual" and (isinstance(device, str) or not hasattr(device, "default_stream")):
        raise InvalidArgument("device", device, '"virtual", "cuda", or a Device')


def open_device(
    device: str | Device, profile: str | Path | Profile | Costs = "h200-8b", *, timing: bool = True
) -> Device:
    """A device by name; ``timing`` lets a real one tell when its operations ran.

    Raises:
        InvalidArgument: an unknown name. DeviceError: "cuda" where there is no GPU.
    """
    check_device(device)
    if not isinstance(device, str):
        return device
    if device == "virtual":
        from labkit.device.virtual import VirtualDevice

        return VirtualDevice(profile)
    from labkit.device.cuda import CudaDevice

    return CudaDevice(timing=timing)
