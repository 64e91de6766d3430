"""Programs in which the answers of lesson 03 are tried: pairs of streams, a result to bring back, a chain in chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.device.api import Buffer, Stream
from labkit.lessons.playground import Playground
from labkit.lessons.support.event_programs import limited
from labkit.virtual_gpu import VirtualGPU
from labkit.virtual_gpu import streams as gpu_streams

STREAMS = ("default", "torch", "blocking", "per_thread")
CHUNKS = 4
CHUNK_ELEMENTS = 250_000  # float32: 1 MB
CHUNK_KERNEL_US = 20.0


def stream_of(gpu: VirtualGPU, kind: str) -> gpu_streams.Stream:
    """A stream of a kind of ``STREAMS``: another one at each call, where there is more than one.

    default     the legacy default stream
    torch       ``torch.cuda.Stream()``: non-blocking
    blocking    made by ``cudaStreamCreate``, outside PyTorch
    per_thread  the calling thread's own default stream
    """
    makers: dict[str, Callable[[], Any]] = {
        "default": gpu.default_stream,
        "torch": gpu.Stream,
        "blocking": lambda: gpu.ExternalStream(gpu.cudart().cudaStreamCreate()),
        "per_thread": lambda: gpu.ExternalStream(2),
    }
    stream: gpu_streams.Stream = makers[kind]()
    return stream


def two_kernels(first: str, second: str) -> VirtualGPU:
    """Kernel A (30 us) in a stream of one kind, then B (10 us) in one of another; each fills 0.3 of the GPU."""
    gpu = VirtualGPU("zero")
    gpu.kernel("A", 30, stream=stream_of(gpu, first), fraction=0.3)
    gpu.kernel("B", 10, stream=stream_of(gpu, second), fraction=0.3)
    return gpu


def second_waits(first: str, second: str) -> bool:
    """Whether B of ``two_kernels`` waits for A: measured on a virtual GPU."""
    a, b = two_kernels(first, second).trace().of_kind("kernel")
    return b.start_ns >= a.end_ns


class BringBack(Playground):
    """A playground in which a result is being computed on ``compute``; ``y`` will hold 42."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.pieces = 0
        self.pageable = self.buffer("pageable", "pageable")
        self.device.take()
        self.write(21)
        self.upload(stream=self.compute)
        self.double()
        self.work = limited(self._work, "work()")

    def _work(self) -> None:
        """50 us of the host's own work."""
        with self.device.phase("work", step=-1):
            self.device.sleep_until(self.device.now_ns() + 50_000)
        self.pieces += 1


@dataclass(frozen=True)
class Chunk:
    """The buffers of one chunk."""

    x_host: Buffer
    x: Buffer
    y: Buffer
    y_host: Buffer


class InChunks(Playground):
    """A playground with four chunks of work, 1 MB each, and a stream for each. Chunk i holds i + 1."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.chunks = [self._chunk(number) for number in range(CHUNKS)]
        self.streams: list[Stream] = [self.device.stream(f"stream {number}") for number in range(CHUNKS)]
        for number, chunk in enumerate(self.chunks):
            self.write(number + 1, chunk.x_host)
        self.device.synchronize()
        self.device.take()

    def _chunk(self, number: int) -> Chunk:
        names = ("x_host", "pinned"), ("x", "device"), ("y", "device"), ("y_host", "pinned")
        return Chunk(*(self.buffer(f"{name}[{number}]", place, CHUNK_ELEMENTS) for name, place in names))

    def double(self, dst: Buffer | None = None, src: Buffer | None = None, stream: Stream | None = None) -> None:
        """Enqueue ``dst = 2 * src``, 20 us on the virtual GPU."""
        y, x = dst or self.y, src or self.x
        self.launch(
            "double", lambda: y.tensor.copy_(x.tensor).mul_(2), stream or self.compute, [x], [y], CHUNK_KERNEL_US
        )
