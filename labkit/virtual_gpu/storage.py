"""Where a tensor's bytes lie: a storage shared by its views, in device, pinned or pageable memory.

When the last tensor of a storage is gone its memory goes back to its allocator. ``data`` is the plain torch tensor
behind it all: the values as they are at this moment, seen by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import torch

from labkit.device.api import Access, Buffer
from labkit.errors import InvalidArgument

if TYPE_CHECKING:
    from labkit.virtual_gpu.gpu import VirtualGPU


class Storage:
    """Memory that tensors share. ``gpu_number`` is -1 on the host."""

    def __init__(self, gpu: VirtualGPU, buffer: Buffer, gpu_number: int) -> None:
        self.gpu, self.buffer, self.gpu_number = gpu, buffer, gpu_number
        self.freed = False

    def free(self) -> None:
        """Give the memory back; once."""
        if not self.freed:
            self.freed = True
            self.gpu.release(self.buffer)

    def __del__(self) -> None:
        self.free()


class Placed:
    """Part of ``Tensor``: its place, its shape, its bytes."""

    def __init__(self, storage: Storage, data: torch.Tensor) -> None:
        self.storage, self.data = storage, data
        self.gpu = storage.gpu

    @property
    def shape(self) -> torch.Size:
        return self.data.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.data.dtype

    @property
    def device(self) -> str:
        """``cuda:0`` or ``cpu``"""
        return f"cuda:{self.storage.gpu_number}" if self.is_cuda else "cpu"

    @property
    def is_cuda(self) -> bool:
        return self.storage.gpu_number >= 0

    def is_pinned(self) -> bool:
        return self.storage.buffer.place == "pinned"

    def numel(self) -> int:
        return self.data.numel()

    @property
    def nbytes(self) -> int:
        return self.data.numel() * self.data.element_size()

    def data_ptr(self) -> int:
        """The address on the virtual machine: the same again when the allocator hands the block out again."""
        block = self.storage.buffer.extra.block
        base: int = block.address if block is not None else self.storage.buffer.tensor.data_ptr()
        return base + self._range[0]

    @property
    def name(self) -> str:
        """The tensor's name in traces."""
        return self.storage.buffer.name

    @property
    def _range(self) -> tuple[int, int]:
        """The bytes of the storage from the first element to the last."""
        if not self.data.numel():
            return 0, 0
        size = self.data.element_size()
        start = self.data.data_ptr() - self.storage.buffer.tensor.data_ptr()
        last = sum((n - 1) * step for n, step in zip(self.data.shape, self.data.stride(), strict=True))
        return start, start + (last + 1) * size

    @property
    def access(self) -> Access:
        """This tensor's bytes, for the declaration of what a kernel touches."""
        if self.storage.freed:
            raise InvalidArgument("tensor", self.name, "a tensor that was not freed")
        return Access(self.storage.buffer, *self._range)

    @contextmanager
    def part(self) -> Iterator[Buffer]:
        """This tensor as a buffer of the device."""
        buffer, (start, stop) = self.storage.buffer, self._range
        if self.data.shape == buffer.tensor.shape and self.data.stride() == buffer.tensor.stride() and not start:
            yield buffer
        else:
            with self.gpu.device.part(buffer, self.data, start, stop) as part:
                yield part

    def view_of(self, data: torch.Tensor) -> Self:
        """Another tensor in the same storage."""
        return type(self)(self.storage, data)

    def view(self, *shape: int) -> Self:
        """The same bytes in another shape."""
        return self.view_of(self.data.view(*shape))

    def __len__(self) -> int:
        return len(self.data)
