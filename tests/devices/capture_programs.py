"""Programs around captures that go wrong. Each runs on a machine of its own and returns what happened, so that on a
real GPU it can be a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.devices.program import code_of

Outcome = tuple[str, int | None]


def outcome(call: Callable[[], Any]) -> Outcome:
    """``ok``, or the class of the error that both devices agree on, and CUDA's code."""
    try:
        call()
    except ValueError as error:
        return "ValueError", code_of(error)
    except RuntimeError as error:
        return "RuntimeError", code_of(error)
    return "ok", None


def elsewhere(call: Callable[[], Any]) -> Outcome:
    """The outcome in another host thread."""
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(outcome(call)))
    thread.start()
    thread.join()
    return found[0]


def on(dev: Any, stream: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    """The call with a current stream."""

    def run() -> Any:
        with dev.stream(stream):
            return call()

    return run


def start_on_the_default_stream(dev: Any) -> Outcome:
    return outcome(dev.CUDAGraph().capture_begin)


def second_capture(dev: Any) -> Outcome:
    s, t, first, second = dev.Stream(), dev.Stream(), dev.CUDAGraph(), dev.CUDAGraph()
    on(dev, s, first.capture_begin)()
    return outcome(on(dev, t, second.capture_begin))


def graph_that_owns_a_graph(dev: Any) -> Outcome:
    s, g, x = dev.Stream(), dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.graph(g, stream=s):
        dev.fill(x, 1, 1)
    return outcome(on(dev, s, g.capture_begin))


def broken_by(dev: Any, breaks: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """A capture in which a forbidden call is made: what the call, the next one and the end say, and afterwards."""
    s, g, x = dev.Stream(), dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.stream(s):
        g.capture_begin()
        dev.fill(x, 1, 1, s)
        result = {"call": outcome(lambda: breaks(s, x)), "next": outcome(lambda: dev.fill(x, 2, 1, s))}
        result["end"] = outcome(g.capture_end)
    result["replay"] = outcome(g.replay)
    result["after"] = outcome(lambda: dev.fill(x, 3, 1, s))
    dev.synchronize()
    return {**result, "value": dev.peek(x)}


def broken_by_item(dev: Any) -> dict[str, Any]:
    return broken_by(dev, lambda s, x: x[0].item())


def broken_by_stream_synchronize(dev: Any) -> dict[str, Any]:
    return broken_by(dev, lambda s, x: s.synchronize())


def broken_by_device_synchronize(dev: Any) -> dict[str, Any]:
    return broken_by(dev, lambda s, x: dev.synchronize())


def broken_by_query(dev: Any) -> dict[str, Any]:
    e = dev.Event()

    def query(s: Any, x: Any) -> None:
        e.record(s)
        e.query()

    return broken_by(dev, query)


def broken_by_event_synchronize(dev: Any) -> dict[str, Any]:
    e = dev.Event()

    def wait(s: Any, x: Any) -> None:
        e.record(s)
        e.synchronize()

    return broken_by(dev, wait)


def broken_by_an_outside_event(dev: Any) -> dict[str, Any]:
    e, outside = dev.Event(), dev.Stream()
    dev.kernel(1, outside)
    e.record(outside)
    return broken_by(dev, lambda s, x: s.wait_event(e))


def fork(dev: Any, join: bool) -> dict[str, Any]:
    """A capture that forks to a second stream, and comes back or not; a third stream was never forked."""
    s, t, u = dev.Stream(), dev.Stream(), dev.Stream()
    x, y, z = (dev.tensor_of(1, "device", 0) for _ in range(3))
    g = dev.CUDAGraph()
    with dev.stream(s):
        g.capture_begin(capture_error_mode="relaxed")
        dev.fill(x, 1, 5, s)
        t.wait_stream(s)
        dev.fill(y, 2, 5, t)
        dev.fill(z, 3, 5, u)
        if join:
            s.wait_stream(t)
        end = outcome(g.capture_end)
    dev.synchronize()
    before = [dev.peek(tensor) for tensor in (x, y, z)]
    if join:
        g.replay()
        dev.synchronize()
    return {"end": end, "before": before, "after": [dev.peek(tensor) for tensor in (x, y, z)]}


def fork_without_join(dev: Any) -> dict[str, Any]:
    return fork(dev, join=False)


def fork_and_join(dev: Any) -> dict[str, Any]:
    return fork(dev, join=True)


def legacy_stream_during_the_capture_of(dev: Any, blocking: bool) -> dict[str, Any]:
    s, g, x = dev.foreign_stream(blocking=blocking), dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.stream(s):
        g.capture_begin(capture_error_mode="relaxed")
        dev.kernel(1, s)
    call = outcome(lambda: dev.fill(x, 7, 1, dev.default_stream()))
    with dev.stream(s):
        end = outcome(g.capture_end)
    dev.synchronize()
    return {"call": call, "end": end, "value": dev.peek(x)}


def legacy_stream_during_the_capture_of_a_blocking_stream(dev: Any) -> dict[str, Any]:
    return legacy_stream_during_the_capture_of(dev, blocking=True)


def legacy_stream_during_the_capture_of_a_torch_stream(dev: Any) -> dict[str, Any]:
    return legacy_stream_during_the_capture_of(dev, blocking=False)


def events_after_a_capture(dev: Any) -> dict[str, Outcome]:
    s, g, e, x = dev.Stream(), dev.CUDAGraph(), dev.Event(), dev.tensor_of(1, "device", 0)
    with dev.stream(s):
        g.capture_begin()
        dev.fill(x, 1, 1, s)
        e.record(s)
        g.capture_end()
    calls = {"query": e.query, "synchronize": e.synchronize, "wait": lambda: dev.Stream().wait_event(e)}
    return {name: outcome(call) for name, call in calls.items()}


def pageable_copy(dev: Any) -> dict[str, Any]:
    """PyTorch's own check refuses a pageable copy before CUDA sees it: the capture stays valid."""
    s, g, x = dev.Stream(), dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.stream(s):
        g.capture_begin()
        dev.fill(x, 1, 1, s)
        calls = [outcome(x.cpu), outcome(lambda: dev.tensor([1.0], device="cuda"))]
        dev.fill(x, 2, 1, s)
        end = outcome(g.capture_end)
        replay = outcome(g.replay)
    dev.synchronize()
    return {"calls": calls, "end": end, "replay": replay, "value": dev.peek(x)}


def unsafe_call_elsewhere(dev: Any, mode: str) -> dict[str, Outcome]:
    """Another thread asks an event of its own while this one captures."""
    s, g, other, e = dev.Stream(), dev.CUDAGraph(), dev.Stream(), dev.Event()
    dev.kernel(1, other)
    e.record(other)
    dev.synchronize()
    with dev.stream(s):
        g.capture_begin(capture_error_mode=mode)
        dev.kernel(1, s)
        call = elsewhere(e.query)
        end = outcome(g.capture_end)
    return {"call": call, "end": end}


def unsafe_call_elsewhere_global(dev: Any) -> dict[str, Outcome]:
    return unsafe_call_elsewhere(dev, "global")


def unsafe_call_elsewhere_thread_local(dev: Any) -> dict[str, Outcome]:
    return unsafe_call_elsewhere(dev, "thread_local")


def unsafe_call_elsewhere_relaxed(dev: Any) -> dict[str, Outcome]:
    return unsafe_call_elsewhere(dev, "relaxed")


def end_elsewhere(dev: Any, mode: str) -> dict[str, Outcome]:
    """The capture is ended by another thread; if it may not, by the right one afterwards."""
    s, g = dev.Stream(), dev.CUDAGraph()
    with dev.stream(s):
        g.capture_begin(capture_error_mode=mode)
        dev.kernel(1, s)
        return {"elsewhere": elsewhere(on(dev, s, g.capture_end))}


def end_elsewhere_global(dev: Any) -> dict[str, Outcome]:
    return end_elsewhere(dev, "global")


def end_elsewhere_relaxed(dev: Any) -> dict[str, Outcome]:
    return end_elsewhere(dev, "relaxed")


def end_on_another_stream(dev: Any) -> dict[str, Outcome]:
    s, t, g = dev.Stream(), dev.Stream(), dev.CUDAGraph()
    with dev.stream(s):
        g.capture_begin()
        dev.kernel(1, s)
    with dev.stream(t):
        wrong = outcome(g.capture_end)
    with dev.stream(s):
        return {"wrong": wrong, "right": outcome(g.capture_end)}
