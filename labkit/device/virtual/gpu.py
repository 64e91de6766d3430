"""The virtual GPU: ``labkit.device.api`` on a deterministic clock, without a GPU.

Here is what a program enqueues. What the host does meanwhile is ``host.py``, graph capture ``capture.py``, the device
half ``queue.py``, what payloads see ``memory.py``. The rules are those of ``docs/semantics.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from labkit.device.api import Accesses, Buffer, Event, Graph, Place, Stream, Work
from labkit.device.virtual import memory
from labkit.device.virtual.allocator import CachingAllocator, GraphPool
from labkit.device.virtual.core import suffix, whole
from labkit.device.virtual.graphs import ExecutableGraph, Node
from labkit.device.virtual.host import HostSide
from labkit.device.virtual.pinned import PinnedAllocator
from labkit.device.virtual.queue import Item
from labkit.device.virtual.replay import submit_graph
from labkit.errors import CaptureError, DeviceError


class VirtualDevice(HostSide):
    """GPUs and their host on a virtual clock.

    Args:
        profile: name or path of a cost profile, a ``Profile``, or ready ``Costs``.
        hardware: what differs between machines; one GPU by default.
        launch_blocking: every launch returns at completion, as under CUDA_LAUNCH_BLOCKING=1 (semantics, 40).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.warm_up_before_capture = False
        self.default_streams = [self._default(gpu) for gpu in range(self.hardware.gpus)]
        self.default_stream = self.default_streams[0]
        self.allocator = CachingAllocator(self)
        self.pinned = PinnedAllocator(self)

    def _default(self, gpu: int) -> Stream:
        stream = Stream(f"default{suffix(gpu)}", self)
        return self.streams.add(stream, gpu=gpu, priority=0, blocking=True, legacy=True)

    # -- resources ---------------------------------------------------------------------------------------------------

    def buffer(
        self,
        name: str,
        shape: Sequence[int],
        dtype: torch.dtype,
        place: Place,
        fill: float | None = None,
        *,
        stream: Stream | None = None,
        pool: GraphPool | None = None,
    ) -> Buffer:
        """Allocate; contents are ``fill``, or poison.

        Without ``stream`` the buffer has memory of its own and costs no virtual time. With it the memory comes from
        PyTorch's caching allocators, a device buffer's as one allocated in that stream (semantics, 33 and 61 to 64).
        """
        if stream is not None and place != "pageable":
            buffer = self._cached_buffer(name, shape, dtype, place, stream, pool)
        else:
            tensor = torch.empty(tuple(shape), dtype=dtype)
            memory.poison(tensor)
            buffer = Buffer(name, place, tensor, memory.Place(memory.Memory()))
        if fill is not None:
            buffer.tensor.fill_(fill)
        return buffer

    def _cached_buffer(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, place: Place, stream: Stream, pool: GraphPool | None
    ) -> Buffer:
        nbytes = torch.Size(shape).numel() * dtype.itemsize
        block = self.pinned.malloc(nbytes) if place == "pinned" else self.allocator.malloc(nbytes, stream, pool)
        return Buffer(name, place, block.typed(nbytes, shape, dtype), memory.Place(block.memory, block=block))

    def alias(self, buffer: Buffer, tensor: torch.Tensor) -> Buffer:
        """A view of a buffer's tensor, as a buffer of its own name and the same memory."""
        place: memory.Place = buffer.extra
        offset = place.offset + tensor.data_ptr() - buffer.tensor.data_ptr()
        return Buffer(buffer.name, buffer.place, tensor, memory.Place(place.memory, offset, place.block))

    @contextmanager
    def part(self, buffer: Buffer, tensor: torch.Tensor, start: int, stop: int) -> Iterator[Buffer]:
        """A view of a buffer's tensor, in its bytes ``[start, stop)``, as a buffer to be copied, read or written."""
        yield self.alias(buffer, tensor)

    def free(self, buffer: Buffer) -> None:
        """Give the memory back, to its allocator if it has one; its contents are poison from now on."""
        block = buffer.extra.block
        if block is not None:
            (self.pinned if buffer.place == "pinned" else self.allocator).free(block)
        else:
            memory.poison(buffer.tensor)

    def graph_pool(self) -> GraphPool:
        """A handle for the memory pool that several captures share."""
        return GraphPool()

    # -- enqueue -----------------------------------------------------------------------------------------------------

    def launch(
        self,
        fn: Callable[[], None] | None,
        stream: Stream,
        *,
        reads: Accesses = (),
        writes: Accesses = (),
        work: Work,
        label: str,
    ) -> Item | None:
        """Enqueue a kernel, or a series of them (``costs`` says how many). ``fn`` runs at the virtual end."""
        busy, launches = self.costs.kernel(work)
        engine = "compute" + suffix(stream.handle.gpu)
        if (capture := self._capturing(stream)) is not None:
            read, write, price = whole(reads), whole(writes), self._repricer(work)
            tail = capture.tails[stream]
            capture.add(stream, Node(label, engine, tail, fn, read, write, price, work.fraction))
            return None
        self._now += self.profile.launch_ns
        last = self._now + round((launches - 1) * self.costs.launch_ns(work))
        item = self._enqueue(  # before the rest of the series is launched: by then the device may be past this start
            stream,
            label,
            self._now + self.profile.latency_ns + self.costs.head_ns(work),
            engine=engine,
            duration=busy + (launches - 1) * self.profile.kernel_gap_ns,
            busy=busy,
            not_before=last + self.profile.latency_ns + self.costs.tail_ns(work, busy, launches) if launches > 1 else 0,
            payload=fn,
            reads=whole(reads),
            writes=whole(writes),
            fraction=work.fraction,
        )
        self._now = last
        if self.launch_blocking:
            self._wait_for(item, self.profile.sync_return_ns)
        return item

    def _repricer(self, work: Work) -> Callable[[Work | None], int]:
        def price(batch: Work | None) -> int:
            shape = work if batch is None or work.kind == "fixed" else batch
            node = Work(work.kind, shape.rows, shape.tokens, shape.context, work.fixed_ns)
            return self.costs.kernel(node, in_graph=True)[0]

        return price

    def copy(self, dst: Buffer, src: Buffer, stream: Stream, *, non_blocking: bool, label: str) -> Item | None:
        """Copy a whole buffer between host and device, in the way its place allows (semantics, 26 to 32)."""
        upload = dst.place == "device"
        host = src if upload else dst
        pageable = host.place == "pageable"
        engine = ("h2d" if upload else "d2h") + suffix(stream.handle.gpu)
        if self.is_capturing(stream) and pageable:  # PyTorch's own check: the capture stays valid
            raise CaptureError(None, f"{label}: a pageable copy cannot be captured; use pinned memory")
        duration = self.costs.copy(src.nbytes, upload, host.place)
        payload, reads = memory.Copy(dst.tensor, src.tensor), whole((src,))
        if (capture := self._capturing(stream)) is not None:
            if not non_blocking:
                self._break(capture, 900, f"{label}: a blocking copy during a capture")
            tail = capture.tails[stream]
            capture.add(stream, Node(label, engine, tail, payload, reads, whole((dst,)), lambda _work: duration))
            return None
        self._now += self.profile.copy_ns
        if upload and pageable:
            payload, reads = memory.Copy(dst.tensor, self._stage(src, stream)), ()
        arrival = self._now + self.profile.latency_ns
        item = self._enqueue(
            stream, label, arrival, engine=engine, duration=duration, payload=payload, reads=reads, writes=whole((dst,))
        )
        if not non_blocking or (pageable and not upload):
            self._wait_for(item, self.profile.sync_return_ns)
        elif host.extra.block is not None:
            self.pinned.used(host.extra.block, stream)
        return item

    def _stage(self, src: Buffer, stream: Stream) -> torch.Tensor:
        """The driver's copy of a pageable source; a large one waits for the stream first (semantics, 29)."""
        policy, tail = self.hardware.staging, stream.handle.tail
        waits = policy == "sync_stage" or (policy == "by_size" and src.nbytes > self.profile.stage_only_bytes)
        if waits and tail is not None:
            self._wait_for(tail, 0)
        self._now += self.costs.stage(src.nbytes)
        return src.tensor.clone()

    def record(self, event: Event, stream: Stream) -> None:
        """Mark the stream's content; inside a capture this is an edge, not a marker (semantics, 15 and 51).

        Raises:
            DeviceError: the event was first recorded on another GPU (25).
        """
        handle, gpu = event.handle, stream.handle.gpu
        if handle.gpu not in (-1, gpu):
            raise DeviceError(f"{event.name} belongs to GPU {handle.gpu} and {stream.name} to GPU {gpu}")
        handle.gpu = gpu
        if (capture := self._capturing(stream)) is not None:
            self._record_captured(capture, event, stream)
            return
        self._now += self.profile.record_ns
        handle.captured, handle.record = None, self._enqueue(stream, f"record {event.name}", self._now)

    def wait(self, stream: Stream, event: Event) -> None:
        """Later work of ``stream`` waits for the event's latest record, if it has one (semantics, 16 to 20).

        Raises:
            CaptureError: 902, 905, 906, or 1 where the latest record was inside a capture that is over.
        """
        if (self._captures or event.handle.captured is not None) and self._wait_captured(stream, event):
            return
        self._now += self.profile.wait_ns
        record = event.handle.record
        if record is not None:
            self._enqueue(stream, f"wait {event.name}", self._now, extra=(record,))

    def replay(self, graph: Graph, stream: Stream, work: Work | None = None) -> Item:
        """Enqueue the graph as one item of ``stream``; ``work`` prices its nodes for this batch.

        Raises:
            DeviceError: the graph was never captured. CaptureError: the stream is being captured.
        """
        executable: ExecutableGraph | None = graph.handle
        if executable is None:
            raise DeviceError(f"graph {graph.name!r} was never captured")
        if self._capturing(stream) is not None:
            raise CaptureError(None, "a replay inside a capture (a child graph) is not modelled")
        per_node = round(self.profile.graph_launch_per_node_ns * len(executable.nodes))
        self._now += self.profile.graph_launch_ns + per_node
        before = () if executable.last_replay is None else (executable.last_replay,)
        arrival = self._now + self.profile.latency_ns
        start = self._enqueue(stream, f"{graph.name} start", arrival, extra=before)
        end = submit_graph(self.queue, executable, start, stream, self.profile.node_gap_ns, graph.name, work)
        if self.launch_blocking:
            self._wait_for(end, self.profile.sync_return_ns)
        return end
