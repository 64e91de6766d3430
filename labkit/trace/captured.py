"""The nodes of a graph while it is captured: stream order and events become edges of a DAG (semantics, 49 to 52)."""

from __future__ import annotations

from labkit.trace.events import GraphNode, Touch


class CapturedNodes:
    """Collects nodes; ``tails`` holds the nodes that the next one on a captured stream depends on."""

    def __init__(self, origin: str) -> None:
        self.nodes: list[GraphNode] = []
        self._tails: dict[str, tuple[int, ...]] = {origin: ()}
        self._events: dict[str, tuple[int, ...]] = {}

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the events recorded so far: edges of the graph, of no use outside it (semantics, 51)."""
        return tuple(self._events)

    def covers(self, stream: str) -> bool:
        """Whether the stream is part of the capture."""
        return stream in self._tails

    def add(
        self, stream: str, name: str, lane: str, reads: tuple[Touch, ...], writes: tuple[Touch, ...], source: str
    ) -> None:
        """An operation was enqueued on a captured stream."""
        self.nodes.append(GraphNode(name, lane, reads, writes, self._tails[stream], source))
        self._tails[stream] = (len(self.nodes) - 1,)

    def record(self, event: str, stream: str) -> bool:
        """An event was recorded; False if its stream is not captured."""
        if stream not in self._tails:
            return False
        self._events[event] = self._tails[stream]
        return True

    def wait(self, stream: str, event: str) -> bool:
        """A stream waits for an event; False if the event is not of this capture. The stream joins the capture."""
        if event not in self._events:
            return False
        self._tails[stream] = tuple(dict.fromkeys(self._tails.get(stream, ()) + self._events[event]))
        return True
