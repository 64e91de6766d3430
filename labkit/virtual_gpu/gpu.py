"""``VirtualGPU``: torch.cuda, and the tensors of torch, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from labkit.device.api import Buffer, Place
from labkit.device.costs import Costs, Profile
from labkit.device.traced import TracedDevice
from labkit.device.virtual import VirtualDevice
from labkit.device.virtual.allocator import GraphPool
from labkit.device.virtual.hardware import Hardware
from labkit.device.virtual.streams import StreamPool
from labkit.errors import InvalidArgument
from labkit.trace.events import Trace
from labkit.virtual_gpu import graphs, streams
from labkit.virtual_gpu.copies import DEBUG_MODES, Copies
from labkit.virtual_gpu.kernels import Kernels, ns_of
from labkit.virtual_gpu.storage import Storage
from labkit.virtual_gpu.tensor import Tensor
from labkit.virtual_gpu.threads import Threads
from labkit.virtual_gpu.timeline import Timeline

CUDA_STREAM_LEGACY, CUDA_STREAM_PER_THREAD = 1, 2  # CUDA's own handles


class VirtualGPU:
    """A machine with one GPU or more, for a notebook: torch.cuda's own names, exact times, no GPU.

    Args:
        profile: how long things take: a name (``toy-u``: round numbers), a path, a ``Profile`` or ``Costs``.
        op_us: duration of the kernels that tensor operations launch (``x.add_(1)``), in microseconds.
        hardware: what differs between machines: GPUs, hardware queues, driver policies.
        launch_blocking: every launch returns at completion, as under CUDA_LAUNCH_BLOCKING=1.
        seed: of the random numbers that ``normal_`` draws.
        trace: record what happens, for ``trace`` and ``timeline``; without it a call costs a third.

    Times are virtual microseconds on the host's clock, ``now_us``.
    """

    def __init__(
        self,
        profile: str | Path | Profile | Costs = "toy-u",
        *,
        op_us: float = 10.0,
        hardware: Hardware | None = None,
        launch_blocking: bool = False,
        seed: int = 0,
        trace: bool = True,
    ) -> None:
        self.machine = VirtualDevice(profile, hardware=hardware, launch_blocking=launch_blocking)
        self.device: Any = TracedDevice(self.machine) if trace else self.machine
        self.op_us, self.capture_pool = op_us, None  # type: float, GraphPool | None
        self.kernels, self.copies = Kernels(self), Copies(self)
        self._threads, self._seed = Threads(self), seed
        self._defaults = [streams.Stream(self, stream) for stream in self.machine.default_streams]
        self._pools = [StreamPool(self._pooled(gpu)) for gpu in range(self.device_count())]
        self._foreign: dict[int, streams.Stream] = {}
        self._names: dict[str, int] = {}
        self._trace: Trace | None = None
        self._capture_stream: streams.Stream | None = None

    def _pooled(self, gpu: int) -> Callable[[str, int], Any]:
        prefix = f"cuda:{gpu} " if gpu else ""
        return lambda name, priority: self.device.stream(prefix + name, priority=priority, gpu=gpu)

    # -- streams and events ------------------------------------------------------------------------------------------

    def Stream(self, device: str | None = None, priority: int = 0) -> streams.Stream:
        """A stream from the pool of 32 per priority: the 33rd is the 1st again (12). Non-blocking (8)."""
        return streams.Stream(self, self._pools[self._number(device)].next(priority))

    def ExternalStream(self, handle: int) -> streams.Stream:
        """A stream that something else made (``cudart``), with its own flag (14). 1 is the legacy default stream, 2 the
        calling thread's own default stream, a blocking one (11)."""
        if handle == CUDA_STREAM_LEGACY:
            return self.default_stream()
        if handle == CUDA_STREAM_PER_THREAD:
            return self._per_thread()
        if handle not in self._foreign:
            raise InvalidArgument("handle", handle, "a handle that cudart() returned, or 1 or 2")
        return self._foreign[handle]

    def foreign_stream(self, *, blocking: bool) -> int:
        """Make a stream outside PyTorch's pools; returns its handle."""
        handle, gpu = 0x1000 + len(self._foreign), self.current_device()
        name = self._name("blocking stream" if blocking else "foreign stream")
        self._foreign[handle] = streams.Stream(self, self.device.stream(name, blocking=blocking, gpu=gpu))
        return handle

    def _per_thread(self) -> streams.Stream:
        own, gpu = self._threads.own, self.current_device()
        if gpu not in own:
            own[gpu] = streams.Stream(
                self, self.device.stream(self._name("per-thread default"), blocking=True, gpu=gpu)
            )
        return own[gpu]

    def default_stream(self, device: str | int | None = None) -> streams.Stream:
        """The legacy default stream."""
        return self._defaults[self._number(device)]

    def current_stream(self, device: str | int | None = None) -> streams.Stream:
        """The stream that this thread's work goes to."""
        number = self._number(device)
        return self._threads.current.get(number, self._defaults[number])

    def stream(self, stream: streams.Stream | None) -> AbstractContextManager[None]:
        """``with gpu.stream(s):`` makes ``s`` this thread's current stream, and orders nothing (13)."""
        return self._threads.use_stream(stream)

    def Event(self, enable_timing: bool = False, blocking: bool = False, external: bool = False) -> streams.Event:
        """An event. ``blocking``: ``synchronize`` sleeps. ``external``: in a capture it is a node of its own (51)."""
        inner = self.device.event(self._name("event"), timing=enable_timing, blocking=blocking, external=external)
        return streams.Event(self, inner)

    # -- the host ----------------------------------------------------------------------------------------------------

    def synchronize(self, device: str | int | None = None) -> None:
        """The host waits for a GPU, the current one."""
        if self.device_count() == 1:
            self.device.synchronize()
            return
        for stream in self.machine.streams.of_gpu(self._number(device)):
            if stream.handle.tail is not None:
                self.device.synchronize(stream)

    def host(self, us: float, name: str = "host") -> None:
        """The host works for ``us`` microseconds."""
        with self.device.phase(name, step=-1):
            self.machine.sleep_until(self.machine.now_ns() + ns_of(us))

    @property
    def now_us(self) -> float:
        """The host's clock."""
        return self.machine.now_ns() / 1000

    def current_device(self) -> int:
        return self._threads.gpu

    def device_count(self) -> int:
        return self.machine.hardware.gpus

    def use_device(self, number: int) -> AbstractContextManager[None]:
        """``with torch.cuda.device(n):``"""
        return self._threads.use_device(self._number(number))

    def set_sync_debug_mode(self, mode: str) -> None:
        """``warn`` or ``error`` at calls that wait for the current stream without saying so (37)."""
        if mode not in DEBUG_MODES:
            raise InvalidArgument("mode", mode, f"one of {', '.join(DEBUG_MODES)}")
        self.copies.debug_mode = mode

    def cudart(self) -> streams.Cudart:
        """CUDA's own calls, for streams that PyTorch does not make."""
        return streams.Cudart(self)

    # -- tensors -----------------------------------------------------------------------------------------------------

    def empty(
        self,
        *shape: int,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        pin_memory: bool = False,
        name: str | None = None,
    ) -> Tensor:
        """A tensor full of poison. On a device its memory belongs to the current stream (61)."""
        place, number = self.resolve(device)
        if pin_memory and number >= 0:
            raise InvalidArgument("pin_memory", True, "only host memory is pinned")
        place = "pinned" if pin_memory else place
        return self._allocate(name or self._name("tensor"), shape, dtype, place, number)

    def _allocate(self, name: str, shape: Sequence[int], dtype: torch.dtype, place: Place, number: int) -> Tensor:
        stream = self.current_stream(max(0, number)).inner
        pool = self.capture_pool if number >= 0 and self.machine.is_capturing(stream) else None
        cached = None if place == "pageable" else stream
        buffer = self.device.buffer(name, shape, dtype, place, stream=cached, pool=pool)
        return Tensor(Storage(self, buffer, number), buffer.tensor)

    def full(self, *shape: int, value: float, **options: Any) -> Tensor:
        return self.empty(*shape, **options).fill_(value)

    def zeros(self, *shape: int, **options: Any) -> Tensor:
        return self.full(*shape, value=0, **options)

    def ones(self, *shape: int, **options: Any) -> Tensor:
        return self.full(*shape, value=1, **options)

    def tensor(
        self, values: Any, *, dtype: torch.dtype | None = None, device: str = "cpu", pin_memory: bool = False
    ) -> Tensor:
        """A tensor of Python values. On a device it is a blocking upload from pageable memory: it waits (37)."""
        plain = torch.as_tensor(values, dtype=dtype)
        host = self.empty(*plain.shape, dtype=plain.dtype, pin_memory=pin_memory)
        with host.part() as part, self.device.host_write(part) as data:
            data.copy_(plain)
        return host if device == "cpu" else host.to(device)

    as_tensor = tensor

    def release(self, buffer: Buffer) -> None:
        """A storage is gone: its memory goes back to its allocator."""
        self.device.free(buffer)

    def empty_cache(self) -> None:
        """Give cached device memory back: waits for the device if there is any (39)."""
        self.machine.allocator.empty_cache()

    # -- kernels and graphs ------------------------------------------------------------------------------------------

    def kernel(
        self,
        name: str,
        us: float,
        *,
        reads: Sequence[Tensor] = (),
        writes: Sequence[Tensor] = (),
        fn: Callable[..., Any] | None = None,
        fraction: float = 1.0,
        stream: streams.Stream | None = None,
    ) -> Any:
        """Launch a kernel of your own in the current stream.

        Args:
            us: duration. ``fraction``: the part of the GPU it fills; kernels overlap where the sum is at most 1.
            fn: called with the plain torch tensors, those read first, when the kernel ends.
        """
        return self.kernels.launch(name, us, reads, writes, fn, fraction, stream)

    def CUDAGraph(self) -> graphs.CUDAGraph:
        return graphs.CUDAGraph(self, self._name("graph"))

    def graph(
        self,
        graph: graphs.CUDAGraph,
        pool: GraphPool | None = None,
        stream: streams.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> AbstractContextManager[None]:
        """``with gpu.graph(g):`` captures the block's work instead of running it."""
        return graphs.capturing(self, graph, pool, stream, capture_error_mode)

    def graph_pool_handle(self) -> GraphPool:
        return self.machine.graph_pool()

    def capture_stream(self) -> streams.Stream:
        """The side stream that ``graph`` captures on if none is given."""
        self._capture_stream = self._capture_stream or self.Stream()
        return self._capture_stream

    # -- what happened -----------------------------------------------------------------------------------------------

    def trace(self) -> Trace:
        """What happened since the last trace; waits for the device. With nothing new, the last trace again.

        Raises:
            InvalidArgument: the GPU was made with ``trace=False``.
        """
        if self.device is self.machine:
            raise InvalidArgument("trace", False, "make the GPU with trace=True to see what happened")
        if len(self.device.recorder) or self._trace is None:
            self._trace = self.device.take(source="virtual")
        return self._trace

    def timeline(self) -> Timeline:
        """The trace by stream, as text and as a picture."""
        return Timeline(self.trace())

    def _repr_html_(self) -> str:
        return self.timeline()._repr_html_()

    # -- inner -------------------------------------------------------------------------------------------------------

    def resolve(self, device: str | int) -> tuple[Place, int]:
        """The place and the GPU number (-1 on the host) of a device's name."""
        return ("pageable", -1) if device == "cpu" else ("device", self._number(device))

    def _number(self, device: str | int | None) -> int:
        if device is None or device == "cuda":
            return self.current_device()
        text = str(device).removeprefix("cuda:")
        if not text.isdigit() or int(text) >= self.device_count():
            raise InvalidArgument("device", device, f"cpu, cuda, or cuda:0 to cuda:{self.device_count() - 1}")
        return int(text)

    def _name(self, what: str) -> str:
        self._names[what] = self._names.get(what, 0) + 1
        return f"{what} {self._names[what]}"

    def next_generator(self) -> torch.Generator:
        """A generator for one random operation."""
        self._names["random"] = self._names.get("random", 0) + 1
        return torch.Generator().manual_seed(self._seed * 1_000_003 + self._names["random"])
