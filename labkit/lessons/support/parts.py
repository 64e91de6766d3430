"""The parts of an engine that lesson 10 puts together: small functions, each with one job.

An engine of the ladder's last rung is made of them (``mystery.py``); with ``Parts()`` as they stand here it is a right
engine. A case replaces one part by a broken one (``defects.py``), and an answer replaces one part by a right one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from labkit.engine.ordering import Streams
from labkit.engine.request import Request
from labkit.engine.slots import Slot
from labkit.errors import InvalidArgument, LabkitError
from labkit.sizes import Sizes

Part = Callable[..., Any]


class PartFailed(LabkitError, RuntimeError):
    """A part raised, or answered with something that the engine cannot use. The message names it."""


# -- the order of a step, called in this order ----------------------------------------------------------------------


def before_fill(streams: Streams, slot: Slot) -> None:
    """The host is about to write the slot's inputs: nothing to wait for, its download was waited for."""


def uploaded(streams: Streams, slot: Slot) -> None:
    """The upload has been enqueued: record h2d_done behind it."""
    slot.h2d_done.record(streams.h2d)


def before_compute(streams: Streams, slot: Slot) -> None:
    """The kernels are about to be enqueued: they wait for the upload."""
    streams.compute.wait_event(slot.h2d_done)


def computed(streams: Streams, slot: Slot) -> None:
    """The kernels have been enqueued: record compute_done behind them."""
    slot.compute_done.record(streams.compute)


def before_download(streams: Streams, slot: Slot) -> None:
    """The download is about to be enqueued: it waits for the kernels."""
    streams.d2h.wait_event(slot.compute_done)


def downloaded(streams: Streams, slot: Slot) -> None:
    """The download has been enqueued: record d2h_done behind it."""
    slot.d2h_done.record(streams.d2h)


def before_read(streams: Streams, slot: Slot) -> None:
    """The host is about to read the slot's tokens: it waits for the download."""
    slot.d2h_done.synchronize()


# -- memory and names, called while the slots are made --------------------------------------------------------------


def host_place(what: str) -> str:
    """Where the host buffer ``inputs_host`` or ``outputs_host`` lies: ``pinned`` or ``pageable``."""
    return "pinned"


def buffer_owner(what: str, slot: str) -> str:
    """Whose buffer of the name ``what`` the slot uses, A's or B's: its own."""
    return slot


def event_owner(what: str, slot: str) -> str:
    """Whose event of the name ``what`` the slot uses, A's or B's: its own."""
    return slot


# -- carry-over, graphs, padding -------------------------------------------------------------------------------------


def carry_slot(slot: str) -> str:
    """The slot whose outputs hold the tokens that this slot's step carries over: the other one's."""
    return {"A": "B", "B": "A"}[slot]


def carry_row(request: Request, row: int) -> int:
    """The row of the previous step that sampled this request's pending token; ``row`` is its row in the step being
    planned."""
    return request.row


def graph_key(slot: str, rows: int, random: bool, logprobs: bool) -> object:
    """What a graph is stored and found under: everything that a capture bakes in."""
    return slot, rows, random, logprobs


def padding_place(sizes: Sizes, row: int) -> int | None:
    """The place in the KV pool that a padding row writes to; None leaves what the slot's buffer holds there."""
    return sizes.trash_block * sizes.block_size + row % sizes.block_size


RIGHT: dict[str, Part] = {
    part.__name__: part
    for part in (
        before_fill,
        uploaded,
        before_compute,
        computed,
        before_download,
        downloaded,
        before_read,
        host_place,
        buffer_owner,
        event_owner,
        carry_slot,
        carry_row,
        graph_key,
        padding_place,
    )
}


class Parts:
    """The parts of one engine. ``parts.before_read = my_function`` replaces one.

    Raises:
        InvalidArgument: there is no part of that name, or what is assigned is no function.
    """

    _parts: dict[str, Part]
    replaced: list[str]  # names, in order

    def __init__(self, **broken: Part) -> None:
        self.__dict__["_parts"] = {**RIGHT, **broken}
        self.__dict__["replaced"] = []

    def __setattr__(self, name: str, part: Part) -> None:
        if name not in RIGHT:
            raise InvalidArgument("part", name, f"the parts are {', '.join(RIGHT)}")
        if not callable(part):
            raise InvalidArgument(f"parts.{name}", part, "a function; without a call's parentheses")
        self._parts[name] = part
        if name not in self.replaced:
            self.replaced.append(name)

    def __getattr__(self, name: str) -> Part:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in RIGHT:
            raise InvalidArgument("part", name, f"the parts are {', '.join(RIGHT)}")
        part: Part = self._parts[name]
        return part

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a part.

        Raises:
            PartFailed: it raised something.
        """
        try:
            return self._parts[name](*arguments)
        except Exception as error:
            raise PartFailed(f"{signature(name)} raised {type(error).__name__}: {error}") from error

    def choose(self, name: str, allowed: Any, says: str, *arguments: Any) -> Any:
        """Call a part whose answer must be one of ``allowed``; ``says`` is that in words.

        Raises:
            PartFailed: it is not, or the part raised something.
        """
        answer = self.ask(name, *arguments)
        if not any(type(answer) is type(one) and answer == one for one in allowed):
            raise PartFailed(f"{signature(name)} returned {answer!r}, and the engine needs {says}")
        return answer


def signature(name: str) -> str:
    """``before_read(streams, slot)``."""
    return f"{name}({', '.join(inspect.signature(RIGHT[name]).parameters)})"


class PartsTable:
    """All parts with their jobs; shows itself in a notebook."""

    def rows(self) -> Iterator[tuple[str, str]]:
        for name, part in RIGHT.items():
            yield signature(name), " ".join((part.__doc__ or "").split()).replace("``", "`")

    def __repr__(self) -> str:
        return "\n".join(f"{name:<44}{job}" for name, job in self.rows())

    def _repr_markdown_(self) -> str:
        lines = ["| part | its job |", "|---|---|", *(f"| `{name}` | {job} |" for name, job in self.rows())]
        return "\n".join(lines)
