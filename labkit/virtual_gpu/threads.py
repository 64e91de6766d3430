"""What every host thread has for itself: current device, current streams, and its own default stream (13)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from labkit.virtual_gpu.streams import Stream, check_handle

if TYPE_CHECKING:
    from labkit.virtual_gpu.gpu import VirtualGPU


class Threads(threading.local):
    """Current device and streams of the calling thread."""

    def __init__(self, machine: VirtualGPU) -> None:
        self.machine, self.gpu = machine, 0
        self.current: dict[int, Stream] = {}
        self.own: dict[int, Stream] = {}  # per-thread default streams

    @contextmanager
    def use_stream(self, stream: Stream | None) -> Iterator[None]:
        """Make a stream current. No call to the device: nothing is ordered by this, and nothing waits."""
        if stream is None:
            yield
            return
        check_handle(self.machine, stream, Stream, "stream")
        number = stream.inner.handle.gpu
        before, device = self.current.get(number), self.gpu
        self.current[number], self.gpu = stream, number
        try:
            yield
        finally:
            self.gpu = device
            if before is None:
                del self.current[number]
            else:
                self.current[number] = before

    @contextmanager
    def use_device(self, number: int) -> Iterator[None]:
        """Make a device current."""
        before, self.gpu = self.gpu, number
        try:
            yield
        finally:
            self.gpu = before
