"""Graph capture and replay on the virtual GPU.

Capture turns launches into *nodes* of a DAG: edges come from stream order and from events, not from timing, and a
replay follows the DAG, not the streams (semantics, 47 to 55). A replay is one item of its launch stream: a start
marker, the nodes, an end marker. An executable graph has one instance at a time (54).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from labkit.device.api import Access, Work
from labkit.device.virtual.queue import Item


@dataclass(eq=False)
class Node:
    """One captured launch or copy. ``parents`` are the nodes it depends on."""

    label: str
    engine: str
    payload: Callable[[], None]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    price: Callable[[Work | None], int]  # duration in ns; a replay may pass the batch's own Work
    fraction: float
    parents: tuple[Node, ...]


@dataclass(eq=False)
class Capture:
    """A capture under way. ``tails`` holds, for each captured stream, the nodes its next node depends on."""

    origin: str
    tails: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    events: dict[object, tuple[Node, ...]] = field(default_factory=dict)
    broken: bool = False

    def covers(self, stream: str) -> bool:
        return stream in self.tails

    def add(self, stream: str, node: Node) -> None:
        self.nodes.append(node)
        self.tails[stream] = (node,)

    def unjoined(self) -> list[str]:
        """Streams whose last nodes no path leads back from to the origin stream."""
        reached = set(self.tails[self.origin])
        todo = list(reached)
        while todo:
            for parent in todo.pop().parents:
                if parent not in reached:
                    reached.add(parent)
                    todo.append(parent)
        return [name for name, tail in self.tails.items() if not set(tail) <= reached]


@dataclass(eq=False)
class ExecutableGraph:
    """A finished capture, ready to replay."""

    nodes: tuple[Node, ...]
    last_replay: Item | None = None
    replays: int = 0

    def roots(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if not node.parents)

    def leaves(self) -> tuple[Node, ...]:
        inner = {parent for node in self.nodes for parent in node.parents}
        return tuple(node for node in self.nodes if node not in inner)
