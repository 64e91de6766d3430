"""Tensors with a place. Their verbs are torch's own; what each does to the device is said where it is written."""

from __future__ import annotations

from labkit.virtual_gpu.arithmetic import Arithmetic
from labkit.virtual_gpu.streams import Stream


class Tensor(Arithmetic):
    """A tensor in device memory, in pinned or in pageable host memory. Made by ``VirtualGPU.empty`` and its like."""

    def record_stream(self, stream: Stream) -> None:
        """Once freed, the memory is reused only when ``stream`` has done what it holds by then. Orders nothing (63)."""
        block = self.storage.buffer.extra.block
        if block is not None and self.is_cuda:
            self.gpu.machine.allocator.record_stream(block, stream.inner)

    def free(self) -> None:
        """Give the memory back now, as when the last reference goes (``del``)."""
        self.storage.free()
