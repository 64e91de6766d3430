"""Copies, and reading a device tensor on the host: what waits for the current stream, and what does not (26 to 37)."""

from __future__ import annotations

from typing import Any, Self

import torch

from labkit.errors import InvalidArgument
from labkit.virtual_gpu.storage import Placed


class Reading(Placed):
    """Part of ``Tensor``: moving values between places."""

    def copy_(self, source: Reading, non_blocking: bool = False) -> Self:
        """Copy from ``source`` in the current stream.

        Without ``non_blocking`` the host waits for that stream (28). With it, pinned memory returns at once (26), a
        pageable source after its staging (29), a pageable destination when the data is there (30). Between two tensors
        on devices it never waits (34).
        """
        self.gpu.copies.copy(self, source, non_blocking)
        return self

    def to(self, device: str, non_blocking: bool = False) -> Self:
        """A copy on another device. ``to("cpu", non_blocking=True)`` does not wait: its result is pinned (31)."""
        place, number = self.gpu.resolve(device)
        if place == self.storage.buffer.place and number == self.storage.gpu_number:
            return self
        if place == "pageable" and not self.is_cuda:
            return self
        pinned = place == "pageable" and non_blocking
        result: Any = self.gpu.empty(*self.shape, dtype=self.dtype, device=device, pin_memory=pinned)
        return result.copy_(self, non_blocking=non_blocking)

    def cpu(self) -> Self:
        """A copy in pageable memory; the host waits for the current stream."""
        return self.to("cpu")

    def cuda(self, non_blocking: bool = False) -> Self:
        """A copy on the current device."""
        return self.to("cuda", non_blocking=non_blocking)

    def pin_memory(self) -> Self:
        """A copy in pinned memory, made by the host."""
        result: Any = self.gpu.empty(*self.shape, dtype=self.dtype, pin_memory=True)
        return result.copy_(self)

    def fetch(self, what: str) -> torch.Tensor:
        """The values, on the host. Every implicit wait for the current stream goes through here or ``copy_`` (37)."""
        if not self.is_cuda:
            with self.part() as part:
                return self.gpu.device.host_read(part)
        return self.gpu.copies.fetch(self, what)

    def item(self) -> Any:
        """The value of a one-element tensor; the host waits for the current stream (36)."""
        return self.fetch("item").item()

    def tolist(self) -> Any:
        return self.fetch("tolist").tolist()

    def numpy(self) -> Any:
        """The host's view of a host tensor. Later changes through it are seen by nobody.

        Raises:
            InvalidArgument: a device tensor.
        """
        if self.is_cuda:
            raise InvalidArgument("tensor", self.device, "a host tensor: use .cpu() first")
        return self.fetch("numpy").numpy()

    def __bool__(self) -> bool:
        return bool(self.fetch("bool"))

    def __float__(self) -> float:
        return float(self.fetch("float"))

    def __int__(self) -> int:
        return int(self.fetch("int"))

    def __index__(self) -> int:
        return int(self.fetch("index"))

    def __repr__(self) -> str:
        text = repr(self.fetch("print"))
        return f"{text[:-1]}, device='{self.device}')" if self.is_cuda else text
