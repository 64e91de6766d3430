"""A replay: a start marker, the nodes of the graph, an end marker. Nodes follow the DAG, not their streams (52)."""

from __future__ import annotations

from labkit.device.api import Stream, Work
from labkit.device.virtual.graphs import ExecutableGraph, Node
from labkit.device.virtual.queue import DeviceQueue, Item


def submit_graph(
    queue: DeviceQueue, graph: ExecutableGraph, start: Item, stream: Stream, gap_ns: int, name: str, work: Work | None
) -> Item:
    """Submit the nodes; returns the end marker, the stream's new tail. ``gap_ns``: between dependent nodes."""
    items: dict[Node, Item] = {}
    for node in graph.nodes:
        parents = [items[parent] for parent in node.parents]
        items[node] = queue.submit(_item(node, parents or [start], gap_ns if parents else 0, start, stream, work))
        if node.records is not None:
            node.records.handle.record, node.records.handle.captured = items[node], None
    end = Item(name, start.arrival, [items[node] for node in graph.leaves] or [start], stream=stream.name)
    end.extra = {"start": start, "nodes": tuple(items[node] for node in graph.nodes if node.engine)}
    stream.handle.tail = graph.last_replay = queue.submit(end)
    graph.replays += 1
    return end


def _item(node: Node, after: list[Item], delay: int, start: Item, stream: Stream, work: Work | None) -> Item:
    """A wait for an external event is for its latest record at the time of the replay."""
    if node.waits_for is not None and node.waits_for.handle.record is not None:
        after = [*after, node.waits_for.handle.record]
    return Item(
        node.label,
        start.arrival,
        after,
        engine=node.engine,
        duration=node.price(work),
        payload=node.payload,
        reads=node.reads,
        writes=node.writes,
        priority=stream.handle.priority,
        fraction=node.fraction,
        delay=delay,
        stream=stream.name,
    )
