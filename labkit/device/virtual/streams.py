"""Streams of the virtual GPU: CUDA's flag, PyTorch's pool, and who waits for the default stream.

A stream made by PyTorch comes from a pool of 32 per priority, handed out round robin, all of them non-blocking (12). A
stream made by plain ``cudaStreamCreate`` is *blocking*: it and the default stream wait for each other (9, 10). So does
a per-thread default stream (11).
"""

from __future__ import annotations

from typing import Any

from labkit.device.api import Stream
from labkit.device.virtual.queue import Item

STREAMS_PER_POOL = 32
HIGHEST_PRIORITY = -3  # PyTorch's pools have four levels, 0 to -3


class VirtualStream:
    """What ``Stream.handle`` is: the stream's tail, which its next item waits for, and what it was made with."""

    __slots__ = ("blocking", "capture", "connection", "gpu", "legacy", "priority", "tail")

    def __init__(self, gpu: int, priority: int, blocking: bool, legacy: bool, connection: int) -> None:
        self.gpu, self.priority, self.blocking, self.legacy = gpu, priority, blocking, legacy
        self.connection = connection  # hardware queue, -1 for one of its own
        self.tail: Item | None = None
        self.capture: Any = None  # the capture that covers this stream


class StreamTable:
    """All streams of a machine."""

    def __init__(self, connections: int | None) -> None:
        self.all: list[Stream] = []
        self._connections = connections
        self._defaults: dict[int, Stream] = {}
        self._blocking: dict[int, list[Stream]] = {}  # gpu -> blocking streams other than its default stream

    def add(self, stream: Stream, *, gpu: int, priority: int, blocking: bool, legacy: bool = False) -> Stream:
        """Give a new stream its handle."""
        connection = len(self.all) % self._connections if self._connections else -1
        stream.handle = VirtualStream(gpu, priority, blocking, legacy, connection)
        stream.is_default = legacy
        self.all.append(stream)
        if legacy:
            self._defaults[gpu] = stream
        elif blocking:
            self._blocking.setdefault(gpu, []).append(stream)
        return stream

    def default(self, gpu: int) -> Stream:
        """The legacy default stream of a GPU."""
        return self._defaults[gpu]

    def of_gpu(self, gpu: int | None) -> list[Stream]:
        """The streams of one GPU, or of all."""
        return self.all if gpu is None else [stream for stream in self.all if stream.handle.gpu == gpu]

    def barrier(self, stream: Stream) -> list[Item]:
        """What an item of ``stream`` waits for although it is in another stream (9, 10)."""
        handle: VirtualStream = stream.handle
        if not handle.blocking:
            return []
        if not handle.legacy:
            tail = self._defaults[handle.gpu].handle.tail
            return [] if tail is None else [tail]
        return [peer.handle.tail for peer in self._blocking.get(handle.gpu, ()) if peer.handle.tail is not None]

    def with_peers(self, stream: Stream) -> list[Stream]:
        """The stream; for a default stream the blocking ones too (38)."""
        return [stream, *self._blocking.get(stream.handle.gpu, ())] if stream.handle.legacy else [stream]


class StreamPool:
    """PyTorch's streams of one GPU: 32 per priority, round robin, shared by all threads."""

    def __init__(self, make: Any) -> None:
        self._make = make  # (name, priority) -> Stream
        self._streams: dict[int, list[Stream]] = {}
        self._turns: dict[int, int] = {}

    def next(self, priority: int) -> Stream:
        """The next stream of a priority; one out of range becomes the nearest allowed."""
        level = max(HIGHEST_PRIORITY, min(0, priority))
        turn = self._turns[level] = self._turns.get(level, -1) + 1
        streams = self._streams.setdefault(level, [])
        if len(streams) < STREAMS_PER_POOL:
            streams.append(
                self._make(f"stream {turn + 1}" if not level else f"stream {turn + 1} (priority {level})", level)
            )
        return streams[turn % STREAMS_PER_POOL]
