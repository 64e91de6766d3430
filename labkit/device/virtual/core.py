"""What the parts of the virtual GPU share: the host's clock, the queue of device work, and how the host waits.

The clock moves by the cost of each API call. Device work is handled up to it and no further, except while the host
waits: a submission lets the device run to just before now, an observation to now itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labkit.device.api import Access, Accesses, Event, Stream
from labkit.device.costs import Costs, Profile, load_profile
from labkit.device.virtual import memory
from labkit.device.virtual.events import VirtualEvent
from labkit.device.virtual.graphs import Capture
from labkit.device.virtual.hardware import Hardware
from labkit.device.virtual.queue import ENGINES, DeviceQueue, Item
from labkit.device.virtual.streams import StreamTable, VirtualStream


class Core:
    """State and inner steps. ``VirtualDevice`` is the class to use."""

    def __init__(
        self,
        profile: str | Path | Profile | Costs = "h200-8b",
        *,
        hardware: Hardware | None = None,
        launch_blocking: bool = False,
    ) -> None:
        self.costs = profile if isinstance(profile, Costs) else Costs(load_profile(profile))
        self.profile = self.costs.profile
        self.hardware = hardware or Hardware()
        self.launch_blocking = launch_blocking
        self.name = f"virtual ({self.profile.name})"
        engines = [engine + suffix(gpu) for gpu in range(self.hardware.gpus) for engine in ENGINES]
        self.queue = DeviceQueue(self._begin, self._commit, engines)
        self.streams = StreamTable(self.hardware.connections)
        self._now = 0
        self._captures: list[Capture] = []  # under way
        self._fault: BaseException | None = None
        self._free_queries = 0

    def stream(self, name: str, *, priority: int = 0, blocking: bool = False, gpu: int = 0) -> Stream:
        """A new stream, non-blocking like ``torch.cuda.Stream`` (semantics, 8) unless ``blocking``."""
        return self.streams.add(Stream(name, self), gpu=gpu, priority=priority, blocking=blocking)  # type: ignore[arg-type]

    def event(self, name: str, *, timing: bool = False, blocking: bool = False, external: bool = False) -> Event:
        """A new event, never recorded."""
        handle = VirtualEvent(timing=timing, blocking=blocking, external=external)
        return Event(name, self, handle)  # type: ignore[arg-type]

    # -- device work -------------------------------------------------------------------------------------------------

    def marker(self, stream: Stream, label: str, *, after: tuple[Item, ...] = (), payload: Any = None) -> Item:
        """Enqueue something that takes no time and no engine, at no cost for the host."""
        return self._enqueue(stream, label, self._now, extra=after, payload=payload)

    def reached(self, item: Item) -> bool:
        """Whether an item is done now."""
        self.queue.advance(self._now, inclusive=True)
        return item.done

    def spend(self, ns: int) -> None:
        """An API call costs the host this much."""
        self._now += ns

    @property
    def captures_under_way(self) -> bool:
        """Whether anything is being captured."""
        return bool(self._captures)

    def _enqueue(
        self, stream: Stream, label: str, arrival: int, *, extra: tuple[Item, ...] = (), **fields: Any
    ) -> Item:
        self.queue.advance(self._now, inclusive=False)
        handle: VirtualStream = stream.handle
        blockers = [*extra, *self.streams.barrier(stream)] if handle.blocking else list(extra)
        if handle.tail is not None:
            blockers.append(handle.tail)
        item = Item(label, arrival, blockers, priority=handle.priority, stream=stream.name, **fields)
        handle.tail = self.queue.submit(item, handle.connection)
        return item

    def _begin(self, item: Item) -> None:
        if type(item.payload) is not memory.Copy:
            memory.begin_read(item)
        elif self.hardware.dma_reads == "start":
            item.payload = item.payload.read_now()

    def _commit(self, item: Item) -> None:
        if type(item.payload) is not memory.Copy:
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

    # -- the host waits ----------------------------------------------------------------------------------------------

    def _wait_for(self, item: Item, return_ns: int) -> None:
        """The host waits for one item, and is back ``return_ns`` after its end."""
        self.queue.advance(self._now, inclusive=True)
        self._now = max(self._now, self.queue.run_until(item)) + return_ns
        self._raise_fault()

    def wait_for_item(self, item: Item) -> None:
        """The host waits for an item."""
        self._wait_for(item, self.profile.sync_return_ns)

    def wait_for_device(self) -> None:
        """The host waits for all streams."""
        self._wait_for_streams(self.streams.all)

    def _wait_for_streams(self, streams: Sequence[Stream]) -> None:
        self.queue.advance(self._now, inclusive=True)
        ends = [self.queue.run_until(stream.handle.tail) for stream in streams if stream.handle.tail is not None]
        self._now = max([self._now, *ends]) + self.profile.sync_return_ns
        self._raise_fault()

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault


def suffix(gpu: int) -> str:
    """What a GPU's number adds to the names of its engines and its default stream."""
    return f":{gpu}" if gpu else ""


def whole(accesses: Accesses) -> tuple[Access, ...]:
    """Accesses of whole buffers where no bytes are given."""
    return tuple(a if isinstance(a, Access) else Access(a, 0, a.nbytes) for a in accesses)
