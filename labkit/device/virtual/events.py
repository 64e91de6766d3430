"""Events of the virtual GPU: what was recorded last, and with which flags the event was made."""

from __future__ import annotations

from typing import Any

from labkit.device.virtual.queue import Item


class VirtualEvent:
    """What ``Event.handle`` is.

    ``record`` is the marker of the latest record; ``captured`` the capture that holds it if it was recorded inside one,
    where it is an edge of the graph and marks nothing (semantics, 51). ``gpu`` is set by the first record (25).
    """

    __slots__ = ("blocking", "captured", "external", "gpu", "record", "timing")

    def __init__(self, *, timing: bool, blocking: bool, external: bool) -> None:
        self.timing, self.blocking, self.external = timing, blocking, external
        self.record: Item | None = None
        self.captured: Any = None
        self.gpu = -1
