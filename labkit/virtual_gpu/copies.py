"""Copies between places, and what each makes the host wait for (26 to 34, 36, 37)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from labkit.errors import DeviceError, InvalidArgument
from labkit.virtual_gpu.kernels import check_tensor
from labkit.virtual_gpu.reading import Reading

if TYPE_CHECKING:
    from labkit.virtual_gpu.gpu import VirtualGPU

DEBUG_MODES = ("default", "warn", "error")


class Copies:
    """Copies for a ``VirtualGPU``. ``debug_mode`` is torch.cuda's sync debug mode."""

    def __init__(self, gpu: VirtualGPU) -> None:
        self._gpu = gpu
        self.debug_mode = "default"

    def copy(self, dst: Reading, src: Reading, non_blocking: bool) -> Any:
        """Copy in the way the two places ask for; returns the device operation, None for one of the host."""
        check_tensor(self._gpu, src)
        if dst.shape != src.shape:
            raise InvalidArgument("source", tuple(src.shape), f"a tensor of shape {tuple(dst.shape)}")
        if dst.is_cuda and src.is_cuda:
            return self._between_devices(dst, src)
        if dst.is_cuda or src.is_cuda:
            return self._host_device(dst, src, non_blocking)
        with dst.part() as part, self._gpu.device.host_write(part) as data:
            data.copy_(src.fetch("copy"))
        return None

    def _host_device(self, dst: Reading, src: Reading, non_blocking: bool) -> Any:
        number = max(dst.storage.gpu_number, src.storage.gpu_number)
        if not non_blocking:
            self.about_to_wait("a copy")
        stream = self._gpu.current_stream(number).inner
        with dst.part() as to, src.part() as from_:
            label = f"{'upload' if dst.is_cuda else 'download'} {dst.name if dst.is_cuda else src.name}"
            return self._gpu.device.copy(to, from_, stream, non_blocking=non_blocking, label=label)

    def _between_devices(self, dst: Reading, src: Reading) -> Any:
        """On one device a kernel in the current stream. Across devices in the source's current stream, between two
        waits: for what the destination's current stream holds, and that stream for the copy (34)."""
        here, there = src.storage.gpu_number, dst.storage.gpu_number
        stream, target = self._gpu.current_stream(here), self._gpu.current_stream(there)
        if here != there:
            stream.wait_stream(target)
        name = f"copy {src.name}"
        op = self._gpu.kernels.launch(name, self._gpu.op_us, [src], [dst], lambda x, y: y.copy_(x), stream=stream)
        if here != there:
            target.wait_stream(stream)
        return op

    def fetch(self, tensor: Reading, what: str) -> torch.Tensor:
        """A device tensor's values on the host: a copy in the current stream, and a wait for that stream alone (36)."""
        self.about_to_wait(what)
        target = self._gpu.empty(*tensor.shape, dtype=tensor.dtype, pin_memory=True, name=f"{what} result")
        stream = self._gpu.current_stream(tensor.storage.gpu_number).inner
        with tensor.part() as part:
            self._gpu.device.copy(target.storage.buffer, part, stream, non_blocking=False, label=what)
        with target.part() as part:
            return self._gpu.device.host_read(part).clone()

    def about_to_wait(self, what: str) -> None:
        """The host is about to wait for the current stream, without having been asked to in so many words.

        Raises:
            DeviceError: in sync debug mode "error".
        """
        if self.debug_mode == "error":
            raise DeviceError(f"called a synchronizing CUDA operation: {what}")
        if self.debug_mode == "warn":
            warnings.warn(f"called a synchronizing CUDA operation: {what}", stacklevel=4)
