"""Any device, recording: the same calls go to the device inside, and each leaves spans and edges in a recorder."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from labkit.device.api import Access, Accesses, Buffer, Device, Event, Graph, Place, Stream, Work
from labkit.trace.captured import CapturedNodes
from labkit.trace.events import GraphNode, Touch, Trace
from labkit.trace.recorder import Recorder

_PACKAGE = Path(__file__).parent.parent
_INNER = (
    str(_PACKAGE / "device"),
    str(_PACKAGE / "virtual_gpu"),
    str(_PACKAGE / "lessons" / "playground.py"),
    str(_PACKAGE / "lessons" / "support" / "parts.py"),
    str(_PACKAGE / "lessons" / "support" / "defects.py"),
    str(_PACKAGE / "lessons" / "support" / "event_programs.py"),
    str(_PACKAGE / "lessons" / "support" / "stream_programs.py"),
    contextlib.__file__,
)


class TracedDevice:
    """A device that records everything done with it. ``take`` returns the trace so far and starts a new one."""

    def __init__(self, inner: Device) -> None:
        self.inner, self.recorder = inner, Recorder()
        self.name = inner.name
        self.warm_up_before_capture = inner.warm_up_before_capture
        self.default_stream = self._adopt(inner.default_stream)
        self._streams: dict[str, dict[str, int]] = {self.default_stream.name: {"default": True, "blocking": True}}
        for number, stream in enumerate(getattr(inner, "default_streams", ())[1:], 1):
            self._streams[self._adopt(stream).name] = {"default": True, "blocking": True, "gpu": number}
        self._place: dict[str, Any] = {"step": -1, "slot": "", "phase": ""}
        self._touches: dict[Buffer, Touch] = {}
        self._allocations = 0
        self._memory: dict[int, tuple[int | str, int]] = {}  # allocation -> block of memory, offset in it
        self._capture: CapturedNodes | None = None
        self._graphs: dict[str, tuple[GraphNode, ...]] = {}
        self._captured_events: dict[str, None] = {}  # a set in order

    def take(self, **meta: Any) -> Trace:
        """Wait for the device, and return the trace since the last call."""
        self.inner.synchronize()
        return self.recorder.take(self.inner.op_times, self._meta(meta), dict(self._graphs))

    def take_ended(self, **meta: Any) -> Trace:
        """What has ended since the last call, without waiting; the rest comes with a later one (``Recorder``)."""
        spans, edges = self.recorder.take_ended(self.inner.op_times, self.inner.op_ended)
        return Trace(spans, edges, self._meta(meta), dict(self._graphs))

    def _meta(self, meta: dict[str, Any]) -> dict[str, Any]:
        seen = {
            "streams": dict(self._streams),
            "memory": dict(self._memory),
            "captured_events": list(self._captured_events),
        }
        return {"device": self.name, **seen, **meta}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    # -- resources: handles must remember this device, not the one inside -------------------------------------------

    def _adopt(self, handle: Any) -> Any:
        handle.device = self
        return handle

    def buffer(
        self,
        name: str,
        shape: Sequence[int],
        dtype: torch.dtype,
        place: Place,
        fill: float | None = None,
        **options: Any,
    ) -> Buffer:
        buffer = self.inner.buffer(name, shape, dtype, place, fill, **options)
        self._allocations += 1
        self._touches[buffer] = Touch(name, 0, buffer.nbytes, place, self._allocations)
        block = getattr(buffer.extra, "block", None)
        if block is not None:  # an allocator's, which gives it to other buffers too
            self._memory[self._allocations] = (block.number, buffer.extra.offset)
        return buffer

    def free(self, buffer: Buffer) -> None:
        self._touches.pop(buffer, None)
        self.inner.free(buffer)

    @contextmanager
    def part(self, buffer: Buffer, tensor: torch.Tensor, start: int, stop: int) -> Iterator[Buffer]:
        """A view of a buffer's tensor, in its bytes ``[start, stop)``, as a buffer to be copied, read or written."""
        part: Buffer = self.inner.alias(buffer, tensor)  # type: ignore[attr-defined]
        self._touches[part] = replace(self._touches[buffer], start=start, stop=stop)
        yield part
        del self._touches[part]

    def stream(self, name: str, **options: Any) -> Stream:
        stream: Stream = self._adopt(self.inner.stream(name, **options))
        flags = {"default": False, "blocking": bool(options.get("blocking", False))}
        self._streams[name] = flags | ({"gpu": options["gpu"]} if options.get("gpu") else {})
        return stream

    def event(self, name: str, **options: Any) -> Event:
        event: Event = self._adopt(self.inner.event(name, **options))
        return event

    # -- enqueue -----------------------------------------------------------------------------------------------------

    def launch(
        self, fn: Callable[[], None], stream: Stream, *, reads: Accesses, writes: Accesses, work: Work, label: str
    ) -> Any:
        start = self.inner.now_ns()
        op = self.inner.launch(fn, stream, reads=reads, writes=writes, work=work, label=label)
        if self._capture is not None and self._capture.covers(stream.name):
            self._capture.add(stream.name, label, "compute", self._touch(reads), self._touch(writes), _caller())
        else:
            self._operation(op, "kernel", "compute", label, start, stream, reads, writes, 0, False)
        return op

    def copy(self, dst: Buffer, src: Buffer, stream: Stream, *, non_blocking: bool, label: str) -> Any:
        start = self.inner.now_ns()
        op = self.inner.copy(dst, src, stream, non_blocking=non_blocking, label=label)
        upload = dst.place == "device"
        blocking = not non_blocking or (not upload and dst.place == "pageable")
        lane = "H2D" if upload else "D2H"
        if self._capture is not None and self._capture.covers(stream.name):
            self._capture.add(stream.name, label, lane, self._touch((src,)), self._touch((dst,)), _caller())
        else:
            self._operation(op, "copy", lane, label, start, stream, (src,), (dst,), src.nbytes, blocking)
        return op

    @contextmanager
    def capture(self, name: str, stream: Stream, pool: Any = None, **options: Any) -> Iterator[Graph]:
        start, streams = self.inner.now_ns(), self.recorder.streams()
        with self.inner.capture(name, stream, pool, **options) as graph:
            if options.get("synchronize", True):
                span = self._call("synchronize", "host waits for the device", start, stream=",".join(streams))
                self.recorder.host_waited(span, streams=streams)
            self._capture = CapturedNodes(stream.name)
            try:
                yield self._adopt(graph)
                self._graphs[name] = tuple(self._capture.nodes)
            finally:
                self._captured_events.update(dict.fromkeys(self._capture.events))
                self._capture = None

    def replay(self, graph: Graph, stream: Stream, work: Work | None = None) -> Any:
        start = self.inner.now_ns()
        op = self.inner.replay(graph, stream, work)
        self._operation(op, "graph", "compute", graph.name, start, stream, (), (), 0, False)
        return op

    def record(self, event: Event, stream: Stream) -> None:
        start = self.inner.now_ns()
        self.inner.record(event, stream)
        if self._capture is not None and self._capture.record(event.name, stream.name):
            return
        number = self.recorder.record(event.name, stream.name)
        self._call("record", f"record {event.name}", start, stream=stream.name, event=event.name, record=number)

    def wait(self, stream: Stream, event: Event) -> None:
        start = self.inner.now_ns()
        self.inner.wait(stream, event)
        if self._capture is not None and self._capture.wait(stream.name, event.name):
            return
        number = self.recorder.wait(stream.name, event.name)
        name = f"{stream.name} waits for {event.name}"
        self._call("wait", name, start, stream=stream.name, event=event.name, record=number)

    # -- the host ----------------------------------------------------------------------------------------------------

    def synchronize(self, target: Stream | Event | None = None) -> None:
        start = self.inner.now_ns()
        self.inner.synchronize(target)
        event = target.name if isinstance(target, Event) else ""
        streams = (target.name,) if isinstance(target, Stream) else () if event else self.recorder.streams()
        what = target.name if target is not None else "the device"
        number = self.recorder.latest(event)
        span = self._call(
            "synchronize", f"host waits for {what}", start, event=event, record=number, stream=",".join(streams)
        )
        self.recorder.host_waited(span, event=event, streams=streams)

    def query(self, event: Event) -> bool:
        start = self.inner.now_ns()
        reached = self.inner.query(event)
        number = self.recorder.latest(event.name) if reached else 0
        span = self._call("query", f"query {event.name}: {reached}", start, event=event.name, record=number)
        if reached:
            self.recorder.host_waited(span, event=event.name)
        return reached

    def host_read(self, buffer: Buffer) -> torch.Tensor:
        start = self.inner.now_ns()
        tensor = self.inner.host_read(buffer)
        self._call("host_read", f"read {buffer.name}", start, reads=self._touch((buffer,)))
        return tensor

    @contextmanager
    def host_write(self, buffer: Buffer) -> Iterator[torch.Tensor]:
        start = self.inner.now_ns()
        with self.inner.host_write(buffer) as tensor:
            yield tensor
        self._call("host_write", f"write {buffer.name}", start, writes=self._touch((buffer,)))

    @contextmanager
    def phase(self, name: str, *, step: int, slot: str = "", rows: int = 0, tokens: int = 0) -> Iterator[None]:
        start, outer = self.inner.now_ns(), self._place
        self._place = {"step": step, "slot": slot, "phase": name}
        try:
            with self.inner.phase(name, step=step, slot=slot, rows=rows, tokens=tokens):
                yield
        finally:
            end = self.inner.now_ns()
            self.recorder.host(
                kind="phase", name=name, lane="CPU", start_ns=start, end_ns=end, rows=rows, tokens=tokens, **self._place
            )
            self._place = outer

    # -- inner -------------------------------------------------------------------------------------------------------

    def _call(self, kind: str, name: str, start: int, **fields: Any) -> int:
        end = self.inner.now_ns()
        return self.recorder.host(
            kind=kind, name=name, lane="CPU", start_ns=start, end_ns=end, source=_caller(), **self._place, **fields
        )

    def _operation(
        self,
        op: Any,
        kind: str,
        lane: str,
        label: str,
        start: int,
        stream: Stream,
        reads: Accesses,
        writes: Accesses,
        nbytes: int,
        blocking: bool,
    ) -> None:
        call = self._call("launch", f"launch {label}", start, stream=stream.name)
        self.recorder.operation(
            op,
            call,
            kind=kind,
            name=label,
            lane=lane,
            issued_ns=start,
            stream=stream.name,
            bytes=nbytes,
            blocking=blocking,
            reads=self._touch(reads),
            writes=self._touch(writes),
            source=_caller(),
            **self._place,
        )

    def _touch(self, accesses: Accesses) -> tuple[Touch, ...]:
        return tuple(self._touches[a] if isinstance(a, Buffer) else self._part(a) for a in accesses)

    def _part(self, access: Access) -> Touch:
        whole = self._touches[access.buffer]
        return Touch(whole.buffer, access.start, access.stop, whole.place, whole.allocation)


def _caller() -> str:
    """file:line of the call, outside the device layer."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _file(frame.f_code.co_filename) is None:
        frame = frame.f_back
    return f"{_file(frame.f_code.co_filename)}:{frame.f_lineno}"


@cache
def _file(path: str) -> str | None:
    """The file's name, None for one of the device layer. A notebook's cell has a made-up file: it is ``cell``."""
    if path.startswith(_INNER):
        return None
    return "cell" if "ipykernel_" in path else Path(path).name
