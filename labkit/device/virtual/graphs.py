"""Captured graphs: a DAG of nodes, made by a capture, run by a replay.

Capture turns launches into *nodes*: edges come from stream order and from events, not from timing, and a replay follows
the DAG, not the streams (semantics, 47 to 55). An event made with ``external=True`` becomes a node of its own (51).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from labkit.device.api import Access, Event, Stream, Work
from labkit.device.virtual.queue import Item


@dataclass(eq=False)
class Node:
    """One captured launch or copy. ``parents`` are the nodes it depends on.

    ``records`` and ``waits_for`` are external events: recorded, or waited for, at every replay.
    """

    label: str
    engine: str
    parents: tuple[Node, ...]
    payload: Callable[[], None] | None = None
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    price: Callable[[Work | None], int] = lambda _work: 0  # duration in ns; a replay may pass the batch's own Work
    fraction: float = 1.0
    records: Event | None = None
    waits_for: Event | None = None


@dataclass(eq=False)
class Capture:
    """A capture under way. ``tails`` holds, for each captured stream, the nodes its next node depends on.

    ``mode`` says in which threads a call that could spoil the capture is refused: in every thread (``global``), in its
    own (``thread_local``) or in none (``relaxed``) (semantics, 59).
    """

    origin: Stream
    mode: str
    thread: int
    tails: dict[Stream, tuple[Node, ...]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    events: dict[Event, tuple[Node, ...]] = field(default_factory=dict)
    broken: bool = False

    def join(self, stream: Stream, nodes: tuple[Node, ...]) -> None:
        """``stream`` is captured from now on, and its next node depends on these nodes too."""
        stream.handle.capture = self
        self.tails[stream] = tuple(dict.fromkeys(self.tails.get(stream, ()) + nodes))

    def add(self, stream: Stream, node: Node) -> None:
        """A node whose ``parents`` were the stream's tail."""
        self.nodes.append(node)
        self.tails[stream] = (node,)

    def release(self) -> None:
        """The streams are ordinary streams again."""
        for stream in self.tails:
            stream.handle.capture = None

    def unjoined(self) -> list[str]:
        """Streams whose last nodes no path leads back from to the origin stream."""
        reached = set(self.tails[self.origin])
        todo = list(reached)
        while todo:
            for parent in todo.pop().parents:
                if parent not in reached:
                    reached.add(parent)
                    todo.append(parent)
        return [stream.name for stream, tail in self.tails.items() if not set(tail) <= reached]


@dataclass(eq=False)
class ExecutableGraph:
    """A finished capture, ready to replay; one instance at a time (semantics, 54)."""

    nodes: tuple[Node, ...]
    last_replay: Item | None = None
    replays: int = 0
    leaves: tuple[Node, ...] = field(init=False)

    def __post_init__(self) -> None:
        inner = {parent for node in self.nodes for parent in node.parents}
        self.leaves = tuple(node for node in self.nodes if node not in inner)
