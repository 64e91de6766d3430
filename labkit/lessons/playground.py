"""A small world for exercises: one upload, one kernel, one download, on three streams with nothing between them."""

from __future__ import annotations

from typing import Any

import torch

from labkit.device import open_device
from labkit.device.api import Accesses, Buffer, Event, Stream, Work
from labkit.device.traced import TracedDevice
from labkit.trace.events import Trace

ELEMENTS = 64 * 1024  # of every buffer, float32: 256 KiB, about 5 us of a pinned copy
KERNEL_US = 40.0


class Playground:
    """A device, virtual or real, that records everything; three streams, two host buffers and two device buffers.

    h2d, compute, d2h   non-blocking streams
    x_host, x           pinned and device memory: the input
    y, y_host           device and pinned memory: the output

    Nothing orders the three streams until you do it: ``event.record(stream)``, ``stream.wait_event(event)``,
    ``event.synchronize()``.

    Args:
        device: ``virtual`` or ``cuda``.
        profile: costs of the virtual GPU.
    """

    def __init__(self, device: str = "virtual", profile: str = "toy-u") -> None:
        self.device: Any = TracedDevice(open_device(device, profile))
        self.h2d, self.compute, self.d2h = (self.device.stream(name) for name in ("h2d", "compute", "d2h"))
        self.x_host, self.x = self.buffer("x_host", "pinned"), self.buffer("x", "device")
        self.y, self.y_host = self.buffer("y", "device"), self.buffer("y_host", "pinned")
        self.device.take()  # what the set-up did is not part of the trace

    def buffer(self, name: str, place: Any, elements: int = ELEMENTS) -> Buffer:
        """A float32 buffer of zeros: ``pageable``, ``pinned`` or ``device``."""
        buffer: Buffer = self.device.buffer(name, (elements,), torch.float32, place, fill=0)
        return buffer

    def event(self, name: str) -> Event:
        """A new event."""
        event: Event = self.device.event(name)
        return event

    # -- the host ----------------------------------------------------------------------------------------------------

    def write(self, value: float, buffer: Buffer | None = None) -> None:
        """The host fills a host buffer (``x_host``)."""
        with self.device.host_write(buffer or self.x_host) as data:
            data.fill_(value)

    def read(self, buffer: Buffer | None = None) -> float:
        """The host reads the last element of a host buffer (``y_host``)."""
        return float(self.device.host_read(buffer or self.y_host)[-1])

    # -- work for the device -----------------------------------------------------------------------------------------

    def upload(self, dst: Buffer | None = None, src: Buffer | None = None, stream: Stream | None = None) -> None:
        """Enqueue the copy ``x_host`` to ``x`` on ``h2d``."""
        self.device.copy(dst or self.x, src or self.x_host, stream or self.h2d, non_blocking=True, label="upload")

    def double(self, dst: Buffer | None = None, src: Buffer | None = None, stream: Stream | None = None) -> None:
        """Enqueue the kernel ``y = 2 * x`` on ``compute``."""
        y, x = dst or self.y, src or self.x
        self.launch("double", lambda: y.tensor.copy_(x.tensor).mul_(2), stream or self.compute, [x], [y])

    def download(self, dst: Buffer | None = None, src: Buffer | None = None, stream: Stream | None = None) -> None:
        """Enqueue the copy ``y`` to ``y_host`` on ``d2h``."""
        self.device.copy(dst or self.y_host, src or self.y, stream or self.d2h, non_blocking=True, label="download")

    def launch(
        self, name: str, fn: Any, stream: Stream, reads: Accesses, writes: Accesses, us: float = KERNEL_US
    ) -> None:
        """Enqueue a kernel of your own; ``us`` is its time on the virtual GPU."""
        work = Work("fixed", fixed_ns=round(us * 1000))
        self.device.launch(fn, stream, reads=reads, writes=writes, work=work, label=name)

    def trace(self) -> Trace:
        """What happened since the last call; waits for the device."""
        trace: Trace = self.device.take()
        return trace
