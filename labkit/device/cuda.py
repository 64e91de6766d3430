"""``labkit.device.api`` on a real GPU: each verb is one or two calls of torch.cuda."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from labkit.device.api import Accesses, Buffer, Event, Graph, Place, Stream, Work
from labkit.errors import DeviceError


def probe() -> dict[str, Any]:
    """What torch sees: {"available", "name", "torch_cuda"} (the CUDA version that torch was built for, or None)."""
    available = torch.cuda.is_available()
    return {
        "available": available,
        "name": torch.cuda.get_device_name() if available else None,
        "torch_cuda": torch.version.cuda,
    }


def require_gpu() -> None:
    """Raises DeviceError: torch sees no GPU."""
    if not torch.cuda.is_available():
        raise DeviceError("torch sees no CUDA GPU here; use device='virtual', and see labkit doctor")


@dataclass(eq=False, slots=True)
class CudaOp:
    """An enqueued operation between two timing events."""

    start: torch.cuda.Event
    end: torch.cuda.Event


class CudaDevice:
    """The current CUDA device and the host that drives it.

    Args:
        timing: put timing events around every operation, so that ``op_times`` can tell when it ran. They cost the host
            about 10 us each and the device a gap of a few us between operations of a stream.

    Raises:
        DeviceError: torch sees no GPU.
    """

    warm_up_before_capture = True

    def __init__(self, *, timing: bool = False) -> None:
        require_gpu()
        self.name = torch.cuda.get_device_name()
        self.timing = timing
        self._device = torch.device("cuda", torch.cuda.current_device())
        self.default_stream = Stream("default", self, torch.cuda.default_stream(), is_default=True)
        self._zero_ns = time.perf_counter_ns()
        self._anchor: tuple[torch.cuda.Event, int] | None = self._set_anchor() if timing else None

    # -- resources ---------------------------------------------------------------------------------------------------

    def buffer(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, place: Place, fill: float | None = None
    ) -> Buffer:
        where = self._device if place == "device" else torch.device("cpu")
        tensor = torch.empty(tuple(shape), dtype=dtype, device=where, pin_memory=place == "pinned")
        if fill is not None:
            tensor.fill_(fill)
            torch.cuda.synchronize()  # other streams must not see the buffer before it is filled
        return Buffer(name, place, tensor)

    def free(self, buffer: Buffer) -> None:
        buffer.tensor = torch.empty(0)

    def stream(self, name: str, *, priority: int = 0) -> Stream:
        return Stream(name, self, torch.cuda.Stream(priority=priority))

    def event(self, name: str) -> Event:
        return Event(name, self, torch.cuda.Event())

    def graph_pool(self) -> Any:
        return torch.cuda.graph_pool_handle()

    # -- enqueue -----------------------------------------------------------------------------------------------------

    def launch(
        self, fn: Callable[[], None], stream: Stream, *, reads: Accesses, writes: Accesses, work: Work, label: str
    ) -> CudaOp | None:
        with torch.cuda.stream(stream.handle), torch.inference_mode():
            return self._timed(fn, stream)

    def copy(self, dst: Buffer, src: Buffer, stream: Stream, *, non_blocking: bool, label: str) -> CudaOp | None:
        with torch.cuda.stream(stream.handle), torch.inference_mode():
            return self._timed(lambda: dst.tensor.copy_(src.tensor, non_blocking=non_blocking), stream)

    @contextmanager
    def capture(self, name: str, stream: Stream, pool: Any = None) -> Iterator[Graph]:
        graph = Graph(name, self, torch.cuda.CUDAGraph())
        with torch.cuda.graph(graph.handle, pool=pool, stream=stream.handle, capture_error_mode="thread_local"):
            yield graph

    def replay(self, graph: Graph, stream: Stream, work: Work | None = None) -> CudaOp | None:
        with torch.cuda.stream(stream.handle):
            return self._timed(graph.handle.replay, stream)

    def record(self, event: Event, stream: Stream) -> None:
        event.handle.record(stream.handle)

    def wait(self, stream: Stream, event: Event) -> None:
        stream.handle.wait_event(event.handle)

    # -- the host ----------------------------------------------------------------------------------------------------

    def synchronize(self, target: Stream | Event | None = None) -> None:
        if target is None:
            torch.cuda.synchronize()
        else:
            target.handle.synchronize()

    def query(self, event: Event) -> bool:
        return bool(event.handle.query())

    def host_read(self, buffer: Buffer) -> torch.Tensor:
        return buffer.tensor

    def host_write(self, buffer: Buffer) -> AbstractContextManager[torch.Tensor]:
        return nullcontext(buffer.tensor)

    def phase(
        self, name: str, *, step: int, slot: str = "", rows: int = 0, tokens: int = 0
    ) -> AbstractContextManager[None]:
        return nullcontext()

    def now_ns(self) -> int:
        """Host clock, ns since the device was opened."""
        return time.perf_counter_ns() - self._zero_ns

    def op_times(self, op: CudaOp) -> tuple[int, int, int]:
        """Start, end and (at stream level) busy ns of an operation that is done, on the host's clock.

        Raises:
            DeviceError: the device was opened without ``timing``.
        """
        if self._anchor is None:
            raise DeviceError("operation times need CudaDevice(timing=True)")
        event, host_ns = self._anchor
        start = host_ns + round(event.elapsed_time(op.start) * 1e6)
        end = max(start, host_ns + round(event.elapsed_time(op.end) * 1e6))
        return start, end, end - start

    def op_ended(self, op: CudaOp) -> bool:
        """Whether an operation is done."""
        return bool(op.end.query())

    def sleep_until(self, when_ns: int) -> None:
        time.sleep(max(0, when_ns - self.now_ns()) / 1e9)

    def reset(self) -> None:
        """Wait for what is queued; a CUDA context that a kernel has broken stays broken."""
        torch.cuda.synchronize()

    def close(self) -> None:
        torch.cuda.synchronize()

    # -- inner -------------------------------------------------------------------------------------------------------

    def _timed(self, enqueue: Callable[[], object], stream: Stream) -> CudaOp | None:
        if not self.timing or torch.cuda.is_current_stream_capturing():
            enqueue()
            return None
        op = CudaOp(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        op.start.record(stream.handle)
        enqueue()
        op.end.record(stream.handle)
        return op

    def _set_anchor(self) -> tuple[torch.cuda.Event, int]:
        """One moment on both clocks: an event that the host waits for; uncertain by the wait's return, about 10 us."""
        event = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        event.record(self.default_stream.handle)
        event.synchronize()
        return event, self.now_ns()
