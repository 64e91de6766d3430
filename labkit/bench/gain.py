"""What asynchrony gains over batch size, where it stops paying, and a host that has more to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.device.api import Device
from labkit.engine.batch import Batch
from labkit.engine.scheduler import Scheduler

PAYS = 0.02  # share of a synchronous step; less is within what one run differs from the next


class BusyHost:
    """An observer that works for ``ns`` in every step, as tokenising or logging would (``engine/hooks.py``)."""

    def __init__(self, device: Device, ns: int) -> None:
        self.device, self.ns = device, ns

    def planned(self, batch: Batch, scheduler: Scheduler) -> None:
        """Spin: sleeping would leave the processor idle, which slows down what comes next."""
        end = self.device.now_ns() + self.ns
        if self.device.name.startswith("virtual"):
            self.device.sleep_until(end)
        while self.device.now_ns() < end:
            pass


@dataclass(frozen=True)
class GainPoint:
    """Step times of the two loops at one batch size, ns."""

    batch: int
    sync_ns: float
    async_ns: float

    @property
    def gain(self) -> float:
        """Share of the synchronous step that asynchrony saves; below 0 it costs."""
        return 1 - self.async_ns / self.sync_ns

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "batch": self.batch,
            "sync_ms": self.sync_ns / 1e6,
            "async_ms": self.async_ns / 1e6,
            "gain": self.gain,
        }


def crossover(what: str, points: Sequence[GainPoint], pays: float = PAYS) -> str:
    """One sentence: at which batch sizes asynchrony saves at least ``pays`` of a step, and where most."""
    best = max(points, key=lambda point: point.gain)
    paying = [point.batch for point in points if point.gain >= pays]
    tail = f"at most {best.gain:.1%}, at batch {best.batch}"
    if not paying:
        return f"{what}: asynchrony saves less than {pays:.0%} of a step at every batch size ({tail})."
    if len(paying) == len(points):
        least = min(points, key=lambda point: point.gain)
        return f"{what}: asynchrony pays at every batch size ({tail}; least {least.gain:.1%}, at batch {least.batch})."
    runs = _stretches([point.batch for point in points], lambda batch: batch in paying)
    where = " and ".join(f"{a} to {b}" if a != b else f"{a}" for a, b in runs)
    return f"{what}: asynchrony saves {pays:.0%} of a step or more at batch {where}, and less elsewhere ({tail})."


def _stretches(values: Sequence[int], holds: Callable[[int], bool]) -> list[tuple[int, int]]:
    """First and last of each run of neighbours that hold."""
    runs: list[tuple[int, int]] = []
    for index, value in enumerate(values):
        if not holds(value):
            continue
        if runs and index and runs[-1][1] == values[index - 1]:
            runs[-1] = runs[-1][0], value
        else:
            runs.append((value, value))
    return runs
