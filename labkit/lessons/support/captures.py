"""Captures in a ``Playground``, on either device, and what judges the answers about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labkit.device.api import Buffer, Graph, Stream
from labkit.errors import CaptureError
from labkit.lessons.playground import ELEMENTS, Playground
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.judging import race_result
from labkit.trace.events import GraphNode

Answer = Callable[..., Any]
INPUTS = (5, 6, 7)


# -- 7.1 -------------------------------------------------------------------------------------------------------------


class GraphPlay(Playground):
    """A ``Playground`` that captures: ``capture(fn)`` returns the graph of what ``fn`` enqueues on ``compute``."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.captured = 0

    def capture(self, fn: Callable[[], Any]) -> Graph:
        """Record the work of ``fn`` on ``compute`` instead of running it."""
        self.captured += 1
        graph: Graph
        with self.device.capture(f"graph {self.captured}", self.compute) as graph:
            fn()
        return graph

    def replay(self, graph: Graph) -> None:
        """Enqueue a graph on ``compute``."""
        graph.replay(self.compute)

    def new_input(self, value: float) -> Buffer:
        """A new device buffer, filled with ``value``."""
        buffer: Buffer = self.device.buffer(f"input {value:g}", (ELEMENTS,), torch.float32, "device", fill=value)
        return buffer

    def set_input(self, value: float) -> None:
        """Put ``value`` into ``x``: the host writes ``x_host``, and ``compute`` uploads it."""
        self.write(value)
        self.upload(stream=self.compute)

    def result(self) -> float:
        """The value of ``y``; the host waits for it."""
        self.download(stream=self.compute)
        self.compute.synchronize()
        return self.read()


def judge_one_graph(answer: Answer, device: str) -> Result:
    """Three right results from one capture and three replays."""
    return _virtual_first(_one_graph, answer, device)


def _virtual_first(judge: Callable[[Answer, str], Result], answer: Answer, device: str) -> Result:
    """A capture that fails on a real GPU can spoil those after it, so an answer has to pass without one first."""
    result = judge(answer, "virtual")
    return judge(answer, device) if result.passed and device != "virtual" else result


def _one_graph(answer: Answer, device: str) -> Result:
    play = GraphPlay(device)
    results = answer(play)
    trace = play.trace()
    replays = sum(1 for _ in trace.of_kind("graph"))
    wanted = [2.0 * value for value in INPUTS]
    if not isinstance(results, (list, tuple)):
        return wrong("The answer has to return the list of results.", yours=results, expected=wanted)
    race = race_result(trace, f"results {list(results)}", f"{wanted}")
    if race is not None:
        return race
    if list(results) != wanted:
        same = len(set(results)) == 1 and len(results) == len(wanted)
        return wrong(
            "Every replay read the same input: the graph has the address of the buffer that it was captured with, and "
            "never hears of another one."
            if same
            else "The results are not twice the inputs.",
            yours=list(results),
            expected=wanted,
        )
    if replays != len(INPUTS) or play.captured != 1:
        return wrong(
            "The results are right, but one graph could have served all three inputs: a capture waits for the device, "
            "and costs far more than a launch.",
            yours=f"{play.captured} captures, {replays} replays",
            expected=f"1 capture, {len(INPUTS)} replays",
        )
    return right("One capture, three replays: the address stays, what lies there changes.")


# -- 7.2 -------------------------------------------------------------------------------------------------------------


class Branches(Playground):
    """Four kernels: ``a`` fills p with 3, ``left`` makes q = p + 1, ``right`` makes r = 2p, ``last`` s = q + r."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.side = self.device.stream("side")
        self.p, self.q, self.r, self.s = (self.buffer(name, "device") for name in "pqrs")
        self.device.take()

    def a(self, stream: Stream) -> None:
        self.launch("a", lambda: self.p.tensor.fill_(3), stream, [], [self.p])

    def left(self, stream: Stream) -> None:
        self.launch("left", lambda: self.q.tensor.copy_(self.p.tensor).add_(1), stream, [self.p], [self.q])

    def right(self, stream: Stream) -> None:
        self.launch("right", lambda: self.r.tensor.copy_(self.p.tensor).mul_(2), stream, [self.p], [self.r])

    def last(self, stream: Stream) -> None:
        self.launch(
            "last",
            lambda: self.s.tensor.copy_(self.q.tensor).add_(self.r.tensor),
            stream,
            [self.q, self.r],
            [self.s],
        )


def judge_two_branches(answer: Answer, device: str) -> Result:
    """A graph of four nodes in which left and right are side by side, and 10 after a replay."""
    return _virtual_first(_two_branches, answer, device)


def _two_branches(answer: Answer, device: str) -> Result:
    play = Branches(device)
    try:
        with play.device.capture("branches", play.compute) as graph:
            answer(play)
    except CaptureError as error:
        return _capture_failed(error)
    play.trace()
    graph.replay(play.compute)
    replayed = play.trace()
    nodes = replayed.graphs["branches"]
    names = [node.name for node in nodes]
    if sorted(names) != ["a", "last", "left", "right"]:
        missing = [name for name in ("a", "left", "right", "last") if name not in names]
        return wrong(
            f"Not in the graph: {', '.join(missing)}. Work on a stream that has not waited for an event of the capture "
            "is not captured. It runs at once, and no replay runs it again.",
            yours=f"nodes {', '.join(names) or 'none'}",
            expected="nodes a, left, right, last",
        )
    race = race_result(replayed, f"nodes {', '.join(names)}", "s = 10")
    if race is not None:
        return race
    if _after(nodes, "left", "right") or _after(nodes, "right", "left"):
        return wrong(
            "left and right are one after the other: on one stream, or with an event between them.",
            yours=" -> ".join(names),
            expected="two branches that nothing orders",
        )
    value = float(play.s.tensor[-1])
    if value != 10:
        return wrong("The graph is right and the value is not.", yours=f"{value:g}", expected="10")
    return right("Four nodes, and left and right may run at the same time: the replay follows the edges.")


def _capture_failed(error: CaptureError) -> Result:
    causes = {
        904: "The side stream joined the capture and never came back: compute has to wait for an event of it.",
        905: "A stream of the capture waits for an event that was recorded outside of it.",
        900: "A call that waits for the device is illegal in a capture.",
        901: "An earlier call had spoiled the capture.",
    }
    says = causes.get(error.code or 0, "The capture failed.")
    return wrong(says, yours=error, expected="a capture that ends without an error")


def _after(nodes: tuple[GraphNode, ...], name: str, other: str) -> bool:
    """Whether ``name`` comes after ``other`` along the edges."""
    names = [node.name for node in nodes]
    open_, seen = list(nodes[names.index(name)].parents), set()
    while open_:
        at = open_.pop()
        if at not in seen:
            seen.add(at)
            open_ += nodes[at].parents
    return names.index(other) in seen
