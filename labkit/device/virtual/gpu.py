"""The virtual GPU: ``labkit.device.api`` on a deterministic clock, without a GPU.

The host half is here: a clock that moves by the cost of each API call and phase, memory with a place, and the rules
about which call waits for what. The device half is ``queue.py``; what payloads see is ``memory.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from labkit.device.api import Access, Accesses, Buffer, Event, Graph, Place, Stream, Work
from labkit.device.costs import Costs, Profile, load_profile
from labkit.device.virtual import memory
from labkit.device.virtual.graphs import Capture, ExecutableGraph, Node
from labkit.device.virtual.queue import DeviceQueue, Item
from labkit.errors import CaptureError, DeviceError, Livelock

_FREE_QUERIES = 10_000  # identical answers at one virtual instant before a poll counts as a livelock


class VirtualStream:
    """A stream's tail: the item that the next one must wait for. ``blocking`` is CUDA's flag, not PyTorch's default."""

    __slots__ = ("blocking", "priority", "tail")

    def __init__(self, priority: int, blocking: bool) -> None:
        self.priority, self.blocking = priority, blocking
        self.tail: Item | None = None


class VirtualDevice:
    """A GPU and its host on a virtual clock.

    Args:
        profile: name or path of a cost profile, a ``Profile``, or ready ``Costs``.
        launch_blocking: every launch returns at completion, as under CUDA_LAUNCH_BLOCKING=1 (semantics, 40).
    """

    def __init__(self, profile: str | Path | Profile | Costs = "h200-8b", *, launch_blocking: bool = False) -> None:
        self.costs = profile if isinstance(profile, Costs) else Costs(load_profile(profile))
        self.profile = self.costs.profile
        self.name = f"virtual ({self.profile.name})"
        self.launch_blocking = launch_blocking
        self.warm_up_before_capture = False
        self.queue = DeviceQueue(self._begin, self._commit)
        self._now = self._reset_ns = 0
        self._streams: list[Stream] = []
        self._capture: Capture | None = None
        self._fault: BaseException | None = None
        self._free_queries = 0
        self.default_stream = self.stream("default", blocking=True)
        self.default_stream.is_default = True

    # -- resources ---------------------------------------------------------------------------------------------------

    def buffer(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, place: Place, fill: float | None = None
    ) -> Buffer:
        """Allocate; contents are ``fill``, or poison. Costs no virtual time."""
        tensor = torch.empty(tuple(shape), dtype=dtype)
        if fill is None:
            memory.poison(tensor)
        else:
            tensor.fill_(fill)
        return Buffer(name, place, tensor, memory.Readers())

    def free(self, buffer: Buffer) -> None:
        """Give the memory back: its contents are poison from now on."""
        memory.poison(buffer.tensor)

    def stream(self, name: str, *, priority: int = 0, blocking: bool = False) -> Stream:
        """A new stream, non-blocking like ``torch.cuda.Stream`` (semantics, 8) unless ``blocking``."""
        stream = Stream(name, self, VirtualStream(priority, blocking))
        self._streams.append(stream)
        return stream

    def event(self, name: str) -> Event:
        """A new event, never recorded."""
        return Event(name, self)

    def graph_pool(self) -> object:
        """A handle for the memory pool that several captures share."""
        return object()

    # -- enqueue -----------------------------------------------------------------------------------------------------

    def launch(
        self,
        fn: Callable[[], None],
        stream: Stream,
        *,
        reads: Accesses = (),
        writes: Accesses = (),
        work: Work,
        label: str,
    ) -> Item | None:
        """Enqueue a kernel, or a series of them (``costs`` says how many). ``fn`` runs at the virtual end."""
        busy, launches = self.costs.kernel(work)
        read, write = _whole(reads), _whole(writes)
        if self._capturing(stream):
            self._add_node(stream, label, "compute", fn, read, write, self._repricer(work), work.fraction)
            return None
        first = self._now + self.profile.launch_ns + self.profile.latency_ns
        self._now += launches * self.profile.launch_ns
        duration = busy + (launches - 1) * self.profile.kernel_gap_ns
        item = self._enqueue(
            stream,
            label,
            first,
            engine="compute",
            duration=duration,
            busy=busy,
            not_before=self._now + self.profile.latency_ns + busy // launches if launches > 1 else 0,
            payload=fn,
            reads=read,
            writes=write,
            fraction=work.fraction,
        )
        if self.launch_blocking:
            self._wait_for(item)
        return item

    def copy(self, dst: Buffer, src: Buffer, stream: Stream, *, non_blocking: bool, label: str) -> Item | None:
        """Copy a whole buffer between host and device, in the way its place allows (semantics, 26 to 32)."""
        upload = dst.place == "device"
        host = src if upload else dst
        pageable = host.place == "pageable"
        if self._capturing(stream):
            if pageable:
                raise CaptureError(None, f"{label}: a pageable copy cannot be captured; use pinned memory")
            self._add_copy_node(stream, label, dst, src, upload)
            return None
        self._now += self.profile.copy_ns
        payload, reads = _copier(dst.tensor, src.tensor), _whole((src,))
        if upload and pageable:
            staged = self._stage(src, stream)
            payload, reads = _copier(dst.tensor, staged), ()
        duration = self.costs.copy(src.nbytes, upload, host.place)
        item = self._enqueue(
            stream,
            label,
            self._now + self.profile.latency_ns,
            engine="h2d" if upload else "d2h",
            duration=duration,
            payload=payload,
            reads=reads,
            writes=_whole((dst,)),
        )
        if not non_blocking or (pageable and not upload):
            self._wait_for(item)
        return item

    def _stage(self, src: Buffer, stream: Stream) -> torch.Tensor:
        """The driver's copy of a pageable source; a large one waits for the stream first (semantics, 29)."""
        if src.nbytes > self.profile.stage_only_bytes and stream.handle.tail is not None:
            self._wait_for(stream.handle.tail, returns=False)
        self._now += self.costs.stage(src.nbytes)
        return src.tensor.clone()

    def record(self, event: Event, stream: Stream) -> None:
        """Mark the stream's content; inside a capture this is an edge, not a marker (semantics, 15 and 51)."""
        if self._capturing(stream):
            assert self._capture is not None
            self._capture.events[event] = self._capture.tails[stream.name]
            return
        self._now += self.profile.record_ns
        event.handle = self._enqueue(stream, f"record {event.name}", self._now)

    def wait(self, stream: Stream, event: Event) -> None:
        """Later work of ``stream`` waits for the event's latest record, if it has one (semantics, 16 to 20)."""
        capture = self._capture
        if capture is not None and event in capture.events:
            tail = capture.tails.get(stream.name, ())
            capture.tails[stream.name] = tuple(dict.fromkeys(tail + capture.events[event]))
            return
        if self._capturing(stream):
            self._break_capture(905, f"{stream.name} waits for {event.name}, recorded outside the capture")
        self._now += self.profile.wait_ns
        if event.handle is not None:
            self._enqueue(stream, f"wait {event.name}", self._now, extra=(event.handle,))

    # -- graphs ------------------------------------------------------------------------------------------------------

    @contextmanager
    def capture(self, name: str, stream: Stream, pool: Any = None) -> Iterator[Graph]:
        """Record what is enqueued on ``stream``, and on streams that wait for it, instead of running it."""
        if stream.is_default:
            raise CaptureError(None, "a capture cannot begin on the default stream")
        if self._capture is not None:
            raise CaptureError(None, "another capture is under way: one at a time in a process")
        self.synchronize()
        self._capture = capture = Capture(stream.name, {stream.name: ()})
        graph = Graph(name, self)
        try:
            yield graph
        finally:
            self._capture = None
        if capture.broken:
            raise CaptureError(901, "the capture was invalidated by an earlier call")
        if capture.unjoined():
            raise CaptureError(904, f"streams never joined back: {', '.join(capture.unjoined())}")
        graph.handle = ExecutableGraph(tuple(capture.nodes))

    def replay(self, graph: Graph, stream: Stream, work: Work | None = None) -> Item:
        """Enqueue the graph as one item of ``stream``; ``work`` prices its nodes for this batch."""
        executable: ExecutableGraph | None = graph.handle
        if executable is None:
            raise DeviceError(f"graph {graph.name!r} was never captured")
        nodes = executable.nodes
        self._now += self.profile.graph_launch_ns + round(self.profile.graph_launch_per_node_ns * len(nodes))
        before = (executable.last_replay,) if executable.last_replay is not None else ()
        start = self._enqueue(stream, f"{graph.name} start", self._now + self.profile.latency_ns, extra=before)
        items: dict[Node, Item] = {}
        for node in nodes:
            items[node] = self._submit_node(node, items, start, stream, work)
        end = Item(graph.name, start.arrival, [items[node] for node in executable.leaves()] or [start], stream=stream.name)
        end.extra = {"start": start, "nodes": tuple(items.values())}
        stream.handle.tail = executable.last_replay = self.queue.submit(end)
        executable.replays += 1
        return end

    def _submit_node(self, node: Node, items: dict[Node, Item], start: Item, stream: Stream, work: Work | None) -> Item:
        parents = [items[parent] for parent in node.parents]
        item = Item(
            node.label,
            start.arrival,
            parents or [start],
            engine=node.engine,
            duration=node.price(work),
            payload=node.payload,
            reads=node.reads,
            writes=node.writes,
            priority=stream.handle.priority,
            fraction=node.fraction,
            delay=self.profile.node_gap_ns if parents else 0,
            stream=stream.name,
        )
        return self.queue.submit(item)

    def _repricer(self, work: Work) -> Callable[[Work | None], int]:
        def price(batch: Work | None) -> int:
            shape = work if batch is None or work.kind == "fixed" else batch
            return self.costs.kernel(Work(work.kind, shape.rows, shape.tokens, shape.context, work.fixed_ns))[0]

        return price

    def _add_copy_node(self, stream: Stream, label: str, dst: Buffer, src: Buffer, upload: bool) -> None:
        ns = self.costs.copy(src.nbytes, upload, "pinned")
        engine = "h2d" if upload else "d2h"
        self._add_node(
            stream, label, engine, _copier(dst.tensor, src.tensor), _whole((src,)), _whole((dst,)), lambda _work: ns, 1.0
        )

    def _add_node(
        self,
        stream: Stream,
        label: str,
        engine: str,
        fn: Callable[[], None],
        reads: tuple[Access, ...],
        writes: tuple[Access, ...],
        price: Callable[[Work | None], int],
        fraction: float,
    ) -> None:
        assert self._capture is not None
        parents = self._capture.tails[stream.name]
        self._capture.add(stream.name, Node(label, engine, fn, reads, writes, price, fraction, parents))

    def _capturing(self, stream: Stream) -> bool:
        if self._capture is None or not self._capture.covers(stream.name):
            return False
        if self._capture.broken:
            raise CaptureError(901, "the capture was invalidated by an earlier call")
        return True

    def _break_capture(self, code: int, message: str) -> None:
        assert self._capture is not None
        self._capture.broken = True
        raise CaptureError(code, message)

    # -- the host ----------------------------------------------------------------------------------------------------

    def synchronize(self, target: Stream | Event | None = None) -> None:
        """The host waits: for an event's latest record, for a stream, or for the whole device.

        Raises:
            CaptureError: inside a capture, which it invalidates (code 900; an event of the capture: 907).
            The payload's own exception, if one failed.
        """
        if self._capture is not None and (target is None or isinstance(target, Event) or self._capturing(target)):
            captured = isinstance(target, Event) and target in self._capture.events
            self._break_capture(907 if captured else 900, "a host wait inside a capture")
        if isinstance(target, Event):
            if target.handle is not None:
                self._wait_for(target.handle)
        elif isinstance(target, Stream):
            self._wait_for_all([target, *(self._blocking_peers() if target.is_default else [])])
        else:
            self._wait_for_all(self._streams)
        self._raise_fault()

    def query(self, event: Event) -> bool:
        """Whether the event's latest record has been reached.

        Raises:
            Livelock: polled without end in a profile where a query costs nothing.
        """
        if self._capture is not None and event in self._capture.events:
            self._break_capture(907, f"query of {event.name}, recorded inside the capture")
        self._now += self.profile.query_ns
        self.queue.advance(self._now, inclusive=True)
        self._raise_fault()
        reached = event.handle is None or self.queue.over(event.handle)
        self._free_queries = 0 if reached or self.profile.query_ns else self._free_queries + 1
        if self._free_queries >= _FREE_QUERIES:
            raise Livelock(f"{event.name} was queried {_FREE_QUERIES} times at {self._now} ns: a query costs no time here")
        return bool(reached)

    def host_read(self, buffer: Buffer) -> torch.Tensor:
        """The buffer's contents as the host sees them now."""
        self.queue.advance(self._now, inclusive=True)
        return buffer.tensor

    @contextmanager
    def host_write(self, buffer: Buffer) -> Iterator[torch.Tensor]:
        """The buffer, to be written by the host now."""
        self.queue.advance(self._now, inclusive=True)
        memory.before_write(buffer, 0, buffer.nbytes)
        yield buffer.tensor

    @contextmanager
    def phase(self, name: str, *, step: int, slot: str = "", rows: int = 0, tokens: int = 0) -> Iterator[None]:
        """A phase of the host's work. Its own Python costs what the profile says; the calls in it cost extra."""
        yield
        self._now += self.costs.phase(name, rows, tokens)

    def now_ns(self) -> int:
        """The host's clock."""
        return self._now

    def op_times(self, op: Item) -> tuple[int, int, int]:
        """Start, end and busy time of a launch, copy or replay that is done, ns; no time at all for a dropped one."""
        if not op.done:
            return self._reset_ns, self._reset_ns, 0
        if isinstance(op.extra, dict):  # a replay: from its first node's start to its last node's end
            nodes = op.extra["nodes"]
            return min(n.start for n in nodes), max(n.end for n in nodes), sum(n.busy for n in nodes)
        return op.start, op.end, op.busy

    def sleep_until(self, when_ns: int) -> None:
        """The host does nothing until then."""
        self._now = max(self._now, when_ns)

    def reset(self) -> None:
        """Drop all queued work and forget a fault, as after restarting a broken context."""
        for item in self.queue.drop():
            memory.end_read(item)
        self._fault, self._capture, self._reset_ns = None, None, self._now
        for stream in self._streams:
            stream.handle.tail = None

    def close(self) -> None:
        """Drop queued work; the device holds nothing else."""
        self.queue.drop()

    # -- inner -------------------------------------------------------------------------------------------------------

    def _enqueue(self, stream: Stream, label: str, arrival: int, *, extra: tuple[Item, ...] = (), **fields: Any) -> Item:
        self.queue.advance(self._now, inclusive=False)
        handle: VirtualStream = stream.handle
        blockers = [*extra, *self._legacy_blockers(stream)]
        if handle.tail is not None:
            blockers.append(handle.tail)
        item = Item(label, arrival, blockers, priority=handle.priority, stream=stream.name, **fields)
        handle.tail = self.queue.submit(item)
        return item

    def _legacy_blockers(self, stream: Stream) -> list[Item]:
        """The default stream is a two-way barrier, for blocking streams only (semantics, 9 and 10)."""
        if not stream.handle.blocking:
            return []
        peers = self._blocking_peers() if stream.is_default else [self.default_stream]
        return [peer.handle.tail for peer in peers if peer.handle.tail is not None]

    def _blocking_peers(self) -> list[Stream]:
        return [stream for stream in self._streams if stream.handle.blocking and not stream.is_default]

    def _wait_for(self, item: Item, *, returns: bool = True) -> None:
        self.queue.advance(self._now, inclusive=True)
        self._now = max(self._now, self.queue.run_until(item)) + (self.profile.sync_return_ns if returns else 0)
        self._raise_fault()

    def _wait_for_all(self, streams: Sequence[Stream]) -> None:
        self.queue.advance(self._now, inclusive=True)
        ends = [self.queue.run_until(stream.handle.tail) for stream in streams if stream.handle.tail is not None]
        self._now = max([self._now, *ends]) + self.profile.sync_return_ns

    def _begin(self, item: Item) -> None:
        if item.engine == "compute":
            memory.begin_read(item)

    def _commit(self, item: Item) -> None:
        if item.engine == "compute":
            memory.end_read(item)
        if self._fault is not None:
            return
        for access in item.writes:
            memory.before_write(access.buffer, access.start, access.stop, item)
        try:
            memory.run_payload(item)
        except Exception as error:  # surfaces at the host's next wait, as an asynchronous CUDA error does
            self._fault = error
        item.payload = None

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault


def _whole(accesses: Accesses) -> tuple[Access, ...]:
    return tuple(a if isinstance(a, Access) else Access(a, 0, a.nbytes) for a in accesses)


def _copier(dst: torch.Tensor, src: torch.Tensor) -> Callable[[], None]:
    def run() -> None:
        dst.copy_(src)

    return run
