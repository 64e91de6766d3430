"""The waits of the loop, by name, and what happens without them.

    compute_waits_h2d   the forward pass starts after the upload
    d2h_waits_compute   the download starts after the sampling
    host_waits_d2h      the host reads after the download; the only wait of the host

Two slots need no more: when the host fills a slot again, it has waited for that slot's download, and so for everything
before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from labkit.device.api import Stream
from labkit.engine.slots import Slot
from labkit.errors import InvalidSwitches

WAITS: tuple[str, ...] = ("compute_waits_h2d", "d2h_waits_compute", "host_waits_d2h")


@dataclass(frozen=True)
class Streams:
    """The three streams of a step; without the mechanism all three are the default stream."""

    h2d: Stream
    compute: Stream
    d2h: Stream


@dataclass(frozen=True)
class Events:
    """Record and wait between the streams. ``dropped`` names waits to leave out, to see what they are for."""

    streams: Streams
    dropped: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        for name in self.dropped - set(WAITS):
            raise InvalidSwitches("dropped wait", name, f"the waits are {', '.join(WAITS)}")

    def uploaded(self, slot: Slot) -> None:
        slot.h2d_done.record(self.streams.h2d)

    def before_compute(self, slot: Slot) -> None:
        if "compute_waits_h2d" not in self.dropped:
            self.streams.compute.wait_event(slot.h2d_done)

    def computed(self, slot: Slot) -> None:
        slot.compute_done.record(self.streams.compute)

    def before_download(self, slot: Slot) -> None:
        if "d2h_waits_compute" not in self.dropped:
            self.streams.d2h.wait_event(slot.compute_done)

    def downloaded(self, slot: Slot) -> None:
        slot.d2h_done.record(self.streams.d2h)

    def before_read(self, slot: Slot) -> None:
        if "host_waits_d2h" not in self.dropped:
            slot.d2h_done.synchronize()


class NoEvents:
    """Nothing between the streams: right on one stream with blocking copies, wrong on three."""

    def uploaded(self, slot: Slot) -> None: ...

    before_compute = computed = before_download = downloaded = before_read = uploaded
