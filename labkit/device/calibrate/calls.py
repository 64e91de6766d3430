"""What API calls cost the host, and how long the device takes to begin and the host to come back (C1 to C5, C9)."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

from labkit.device.api import Event, Stream
from labkit.device.calibrate.fit import line
from labkit.device.calibrate.rig import Launch, Rig

CALLS = 100  # per round; a launch queue holds about a thousand
NODES = (1, 10, 100, 400)
PAUSE_NS = 200_000  # a kernel long enough that the host is waiting when it ends


def measure_calls(rig: Rig, rounds: int) -> dict[str, Any]:
    """Fields of ``Profile``."""
    device = rig.device
    rig.timing(False)
    stream, event = device.stream("calls"), device.event("calls")
    up = device.buffer("host", (1024,), torch.int32, "pinned", 0)
    down = device.buffer("device", (1024,), torch.int32, "device", 0)
    fn, work = rig.tiny()

    def each(call: Callable[[], Any]) -> int:
        return per_call(rig, call, rounds)

    found: dict[str, Any] = {
        "launch_ns": each(lambda: device.launch(fn, stream, reads=(), writes=(), work=work, label="tiny")),
        "copy_ns": each(lambda: device.copy(down, up, stream, non_blocking=True, label="copy")),
        "record_ns": each(lambda: device.record(event, stream)),
        "wait_ns": each(lambda: device.wait(stream, event)),
        "query_ns": each(lambda: device.query(event)),
    }
    found |= _graphs(rig, stream, rounds)
    return found | _latencies(rig, stream, found, rounds)


def per_call(rig: Rig, call: Callable[[], Any], rounds: int, calls: int = CALLS) -> int:
    """Host ns of a call: the median over rounds of many calls, the device idle before each round."""
    clock, times = rig.device.now_ns, []
    call()
    for _ in range(rounds):
        rig.device.synchronize()
        start = clock()
        for _ in range(calls):
            call()
        times.append((clock() - start) / calls)
    rig.device.synchronize()
    return round(statistics.median(times))


def _graphs(rig: Rig, stream: Stream, rounds: int) -> dict[str, Any]:
    """Host time of a replay over the number of nodes, and device time per node of a chain (C3, C4)."""
    device, side = rig.device, rig.device.stream("capture")
    fn, work = rig.tiny()
    host, chain = [], []
    graphs = []  # all are kept: to free one while the next is captured is a call that a capture does not allow
    for count in NODES:
        with device.capture(f"chain of {count}", side) as graph:
            for _ in range(count):
                device.launch(fn, side, reads=(), writes=(), work=work, label="tiny")
        graphs.append(graph)
        host.append(per_call(rig, lambda graph=graph: device.replay(graph, stream), rounds, calls=20))  # type: ignore[misc]
        chain.append(behind(rig, stream, lambda graph=graph: device.replay(graph, stream))[0])  # type: ignore[misc]
    launch, per_node = line(NODES, host)
    return {
        "graph_launch_ns": round(launch),
        "graph_launch_per_node_ns": round(per_node, 3),
        "node_gap_ns": round(line([n - 1 for n in NODES[1:]], chain[1:])[1]),
    }


def behind(rig: Rig, stream: Stream, enqueue: Callable[[], Any], repeats: int = 5) -> tuple[int, int]:
    """Duration and busy ns of an operation that was queued before the device came to it: no launch time is in it."""
    rig.timing(True)
    found = []
    for _ in range(repeats):
        _launch(rig, rig.busy(PAUSE_NS), stream)
        op = enqueue()
        rig.device.synchronize()
        found.append(rig.duration(op))
    rig.timing(False)
    return statistics.median_low(found)


def _launch(rig: Rig, launch: Launch, stream: Stream) -> Any:
    fn, work = launch
    return rig.device.launch(fn, stream, reads=(), writes=(), work=work, label="busy")


def _latencies(rig: Rig, stream: Stream, found: dict[str, Any], rounds: int) -> dict[str, Any]:
    """A kernel of known length on an idle device: the host polls for its end, or waits awake, or asleep.

    Polling notices the end half a query late on average.
    """
    device = rig.device
    pause = behind(rig, stream, lambda: _launch(rig, rig.busy(PAUSE_NS), stream))[0]
    short = rig.busy(1)
    launch = per_call(rig, lambda: _launch(rig, short, stream), rounds)  # of this kernel, not of a framework's

    def until(event: Event, wait: Callable[[Event], None]) -> float:
        times = []
        for turn in range(5 * rounds):
            longer = turn * 89 % found["query_ns"] if found["query_ns"] else 0  # so that polls meet the end anywhere
            busy = rig.busy(PAUSE_NS + longer)
            device.synchronize()
            start = device.now_ns()
            _launch(rig, busy, stream)
            device.record(event, stream)
            wait(event)
            times.append(device.now_ns() - start - longer)
        return statistics.median(times)

    def poll(event: Event) -> None:
        while not device.query(event):
            pass

    awake = device.event("awake")
    latency = max(0, round(until(awake, poll) - found["query_ns"] / 2 - pause - launch))
    before = launch + latency + pause
    return {
        "latency_ns": latency,
        "sync_return_ns": max(0, round(until(awake, device.synchronize) - before)),
        "sync_blocking_return_ns": max(0, round(until(rig.blocking_event(), device.synchronize) - before)),
    }
