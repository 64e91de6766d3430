"""What calibration needs beyond ``labkit.device.api``: kernels of a known length, durations, allocations that miss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from labkit.device.api import Device, Event, Work
from labkit.device.virtual import VirtualDevice

Launch = tuple[Callable[[], None], Work]  # what ``Device.launch`` takes


class Rig(Protocol):
    """A device on the bench."""

    about: str  # what was measured: GPU and versions

    @property
    def device(self) -> Device:
        """The device."""

    def tiny(self) -> Launch:
        """The smallest kernel there is."""

    def busy(self, ns: int) -> Launch:
        """A kernel that takes about so long and reads and writes nothing."""

    def timing(self, on: bool) -> None:
        """Whether operations enqueued from now on can tell their duration. Telling costs host time on a real GPU."""

    def duration(self, op: Any) -> tuple[int, int]:
        """ns from start to end of an operation that is done, and of them those in which a kernel ran."""

    def blocking_event(self) -> Event:
        """An event whose ``synchronize`` puts the thread to sleep."""

    def malloc(self, nbytes: int) -> Any:
        """Device memory that no cache has."""

    def pinned_malloc(self, nbytes: int) -> Any:
        """Pinned memory that no cache has."""

    def release(self) -> int:
        """Give cached device memory back; returns how many blocks that was."""

    def launches(self, kernel: str, fn: Callable[[], None]) -> int:
        """Kernels that ``fn`` launches; ``kernel`` names it in a cost profile. 0: cannot tell."""

    def read_bandwidth(self) -> float:
        """Bytes per ns at which a kernel can stream device memory."""


class VirtualRig:
    """The virtual GPU on the bench: its clock has no noise, and every duration is exact."""

    def __init__(self, device: VirtualDevice, bandwidth: float = 4000.0) -> None:
        self.device, self._bandwidth = device, bandwidth
        self.about = device.name
        self._stream = device.stream("allocations")

    def tiny(self) -> Launch:
        return _nothing, Work("fixed")

    def busy(self, ns: int) -> Launch:
        return _nothing, Work("fixed", fixed_ns=ns)

    def timing(self, on: bool) -> None:
        """Asking costs nothing here."""

    def duration(self, op: Any) -> tuple[int, int]:
        start, end, busy = self.device.op_times(op)
        return end - start, busy

    def blocking_event(self) -> Event:
        return self.device.event("asleep", blocking=True)

    def malloc(self, nbytes: int) -> Any:
        buffer = self.device.buffer("block", (nbytes,), torch.uint8, "device", stream=self._stream)
        return _Owned(self.device, buffer)

    def pinned_malloc(self, nbytes: int) -> Any:
        return self.device.buffer("pinned", (nbytes,), torch.uint8, "pinned", stream=self._stream)

    def release(self) -> int:
        before = self.device.allocator.reserved
        self.device.allocator.empty_cache()
        return int(before > self.device.allocator.reserved)

    def launches(self, kernel: str, fn: Callable[[], None]) -> int:
        return self.device.costs.kernel(Work(kernel))[1]

    def read_bandwidth(self) -> float:
        return self._bandwidth


class _Owned:
    """A buffer that is freed with its last reference, as a tensor is."""

    def __init__(self, device: VirtualDevice, buffer: Any) -> None:
        self._device, self._buffer = device, buffer

    def __del__(self) -> None:
        self._device.free(self._buffer)


def _nothing() -> None: ...
