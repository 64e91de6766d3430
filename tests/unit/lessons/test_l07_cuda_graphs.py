"""Lesson 07: each plausible wrong answer gets its own sentence."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from labkit.lessons.l07_cuda_graphs import both_outputs, graph_key, graph_rows, one_graph, two_branches

Answer = Callable[..., Any]


def captures_each_time(play: Any) -> list[float]:
    results = []
    for value in (5, 6, 7):
        play.set_input(value)
        play.replay(play.capture(play.double))
        results.append(play.result())
    return results


def never_replays(play: Any) -> list[float]:
    results = []
    for value in (5, 6, 7):
        play.set_input(value)
        play.double()
        results.append(play.result())
    return results


def host_write_in_the_capture(play: Any) -> list[float]:
    def step() -> None:
        play.set_input(5)
        play.double()

    graph, results = play.capture(step), []
    for _ in (5, 6, 7):
        play.replay(graph)
        results.append(play.result())
    return results


def writes_under_the_replay(play: Any) -> list[float]:
    def step() -> None:
        play.upload(stream=play.compute)
        play.double()

    graph = play.capture(step)
    for value in (5, 6, 7):
        play.write(value)
        play.replay(graph)
    return [play.result()] * 3


GRAPHS: list[tuple[Answer, str]] = [
    (captures_each_time, "one graph could have served all three inputs"),
    (never_replays, "one graph could have served all three inputs"),
    (host_write_in_the_capture, "Every replay read the same input"),
    (writes_under_the_replay, "Nothing makes the host, which writes x_host"),
    (lambda play: None, "has to return the list of results"),
    (lambda play: [1, 2, 3], "not twice the inputs"),
]


@pytest.mark.parametrize(("answer", "says"), GRAPHS)
def test_one_graph(answer: Answer, says: str) -> None:
    result = one_graph.check(answer)
    assert not result
    assert says in result.says


def never_joins(play: Any) -> None:
    forked = play.event("forked")
    play.a(play.compute)
    forked.record(play.compute)
    play.side.wait_event(forked)
    play.left(play.compute)
    play.right(play.side)
    play.last(play.compute)


def joins_too_late(play: Any) -> None:
    never_joins(play)
    joined = play.event("joined")
    joined.record(play.side)
    play.compute.wait_event(joined)


def one_stream(play: Any) -> None:
    for kernel in (play.a, play.left, play.right, play.last):
        kernel(play.compute)


def an_edge_too_many(play: Any) -> None:
    forked, joined = play.event("forked"), play.event("joined")
    play.a(play.compute)
    play.left(play.compute)
    forked.record(play.compute)
    play.side.wait_event(forked)
    play.right(play.side)
    joined.record(play.side)
    play.compute.wait_event(joined)
    play.last(play.compute)


def host_waits(play: Any) -> None:
    play.a(play.compute)
    play.compute.synchronize()


BRANCHES: list[tuple[Answer, str]] = [
    (never_joins, "never came back"),
    (joins_too_late, "`last` on compute, which reads r"),
    (one_stream, "left and right are one after the other"),
    (an_edge_too_many, "left and right are one after the other"),
    (host_waits, "illegal in a capture"),
    (lambda play: None, "Not in the graph: a, left, right, last"),
]


@pytest.mark.parametrize(("answer", "says"), BRANCHES)
def test_two_branches(answer: Answer, says: str) -> None:
    result = two_branches.check(answer)
    assert not result
    assert says in result.says


ROWS: list[tuple[Answer, str]] = [
    (lambda batches, most: [4, 8, 12], "Sizes [4, 8, 12] compute 36 rows for nothing"),
    (lambda batches, most: [3, 4, 12], "Sizes [3, 4, 12] compute 36 rows for nothing"),
    (lambda batches, most: sorted(set(batches)), "Too many sizes"),
    (lambda batches, most: [3, 6], "The largest size has to be 12"),
    (lambda batches, most: [3, 6, 16], "The largest size has to be 12"),
    (lambda batches, most: [], "Too many sizes, or none"),
    (lambda batches, most: [0, 6, 12], "Too many sizes, or none"),
    (lambda batches, most: [3.0, 12.0], "a list of whole numbers"),
    (lambda batches, most: None, "a list of whole numbers"),
]


@pytest.mark.parametrize(("answer", "says"), ROWS)
def test_graph_rows(answer: Answer, says: str) -> None:
    result = graph_rows.check(answer)
    assert not result
    assert says in result.says


def test_graph_rows_in_any_order_and_as_any_sequence() -> None:
    assert graph_rows.check(lambda batches, most: (12, 3, 6))
    assert graph_rows.check(lambda batches, most: [4, 6, 12])


def never_the_same() -> Answer:
    numbers = count()
    return lambda slot, rows, context, random, logprobs: (slot, rows, context, random, logprobs, next(numbers))


KEYS: list[tuple[Answer, str]] = [
    (lambda slot, rows, context, random, logprobs: (rows, context, random, logprobs), "does not tell slots apart"),
    (lambda slot, rows, context, random, logprobs: (slot, context, random, logprobs), "numbers of rows apart"),
    (lambda slot, rows, context, random, logprobs: (slot, rows, random, logprobs), "context bounds apart"),
    (lambda slot, rows, context, random, logprobs: (slot, rows, context, logprobs), "random from greedy"),
    (lambda slot, rows, context, random, logprobs: (slot, rows, context, random), "log-probabilities are wanted"),
    (lambda slot, rows, context, random, logprobs: None, "has to return a key"),
    (lambda slot, rows, context, random, logprobs: [slot, rows], "A list or a dict cannot be one"),
    (never_the_same(), "captured again and again"),
]


@pytest.mark.parametrize(("answer", "says"), KEYS)
def test_graph_key(answer: Answer, says: str) -> None:
    result = graph_key.check(answer)
    assert not result
    assert says in result.says


def in_the_order_of_capture(graphs: Any) -> Any:
    graphs.replay_first()
    graphs.replay_second()
    return graphs.read(graphs.out1), graphs.read(graphs.out2)


def swapped(graphs: Any) -> Any:
    graphs.replay_second()
    second = graphs.read(graphs.out2)
    graphs.replay_first()
    return second, graphs.read(graphs.out1)


OUTPUTS: list[tuple[Answer, str]] = [
    (in_the_order_of_capture, "the second one first"),
    (swapped, "not what its graph wrote"),
    (lambda graphs: (3.0, 9.0), "Replay each graph once"),
    (lambda graphs: None, "has to return the two outputs"),
]


@pytest.mark.parametrize(("answer", "says"), OUTPUTS)
def test_both_outputs(answer: Answer, says: str) -> None:
    result = both_outputs.check(answer)
    assert not result
    assert says in result.says
