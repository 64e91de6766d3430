"""A GPU on a virtual clock, with CUDA's ordering rules."""

from labkit.device.virtual.gpu import VirtualDevice

__all__ = ["VirtualDevice"]
