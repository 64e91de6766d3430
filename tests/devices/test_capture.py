"""Rules 46 to 51 and 59: what a capture allows, and the error codes of what it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.device.virtual import VirtualDevice
from labkit.errors import CaptureError
from tests.devices import capture_programs as programs

OK = ("ok", None)


def test_rule_46_a_capture_cannot_begin_on_the_default_stream(dev: Any) -> None:
    assert dev.isolated(programs.start_on_the_default_stream)[0] == "RuntimeError"


def test_rule_46_one_capture_at_a_time(dev: Any) -> None:
    seen = dev.isolated(programs.second_capture)
    dev.settle_on_hardware("a second capture is refused", seen[0] == "RuntimeError", seen)


def test_rule_46_a_graph_is_captured_once(dev: Any) -> None:
    assert dev.isolated(programs.graph_that_owns_a_graph)[0] == "RuntimeError"


def test_rule_46_the_graph_block_waits_for_the_device_and_captures_on_a_side_stream(dev: Any) -> None:
    g, outside = dev.CUDAGraph(), dev.current_stream()
    dev.kernel(30, dev.Stream())
    with dev.graph(g):
        assert dev.now == 30 or (dev.real and dev.now > 25)  # emptying the cache takes a real host a while
        assert dev.current_stream() != outside
        dev.kernel(1)
    assert dev.current_stream() == outside


def test_rule_47_captured_work_does_not_run(dev: Any) -> None:
    g, x, runs = dev.CUDAGraph(), dev.tensor_of(1, "device", 1), []
    with dev.graph(g):
        dev.fill(x, 2, 30)
        runs.append("host code")
    begin = dev.now
    dev.synchronize()
    assert dev.now - begin == dev.about(0)
    assert dev.peek(x) == 1
    begin = dev.now
    g.replay()
    dev.synchronize()
    assert dev.now - begin == dev.about(30)
    assert dev.peek(x) == 2
    assert len(runs) == 1


BREAKS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "item": (programs.broken_by_item, 900),
    "stream synchronize": (programs.broken_by_stream_synchronize, 900),
    "device synchronize": (programs.broken_by_device_synchronize, 900),
    "wait for an outside event": (programs.broken_by_an_outside_event, 905),
    "query of a captured event": (programs.broken_by_query, 907),
    "synchronize with a captured event": (programs.broken_by_event_synchronize, 907),
}


def breaks(code: int) -> pytest.MarkDecorator:
    chosen = {name: entry[0] for name, entry in BREAKS.items() if entry[1] == code}
    return pytest.mark.parametrize("program", chosen.values(), ids=chosen)


def check_broken(dev: Any, program: Callable[[Any], Any], code: int) -> None:
    """The call says why, everything after it in the capture says 901, no graph exists, and the stream works again."""
    seen = dev.isolated(program)
    assert seen["call"] == ("RuntimeError", code)
    assert seen["next"] == ("RuntimeError", 901)
    assert seen["end"] == ("RuntimeError", 901)
    assert seen["replay"][0] == "RuntimeError"
    assert (seen["after"], seen["value"]) == (OK, 3)


@breaks(900)
def test_rule_48_a_synchronising_call_invalidates_the_capture(dev: Any, program: Callable[[Any], Any]) -> None:
    check_broken(dev, program, 900)


def test_rule_49_a_fork_that_never_joins_is_an_error(dev: Any) -> None:
    seen = dev.isolated(programs.fork_without_join)
    assert seen["end"] == ("RuntimeError", 904)


def test_rule_49_a_joined_fork_is_part_of_the_graph_and_a_stream_not_forked_is_not(dev: Any) -> None:
    seen = dev.isolated(programs.fork_and_join)
    assert seen["end"] == OK
    assert seen["before"] == [0, 0, 3]
    assert seen["after"] == [1, 2, 3]


@breaks(905)
def test_rule_50_an_event_recorded_outside(dev: Any, program: Callable[[Any], Any]) -> None:
    check_broken(dev, program, 905)


def test_rule_50_joining_two_captures(dev: Any) -> None:
    dev.not_on_a_real_gpu("PyTorch has one capture at a time (46); CUDA's own calls allow two")
    device = VirtualDevice("zero")
    s, t, e = device.stream("s"), device.stream("t"), device.event("e")
    device.begin_capture(s)
    device.begin_capture(t)
    device.record(e, s)
    with pytest.raises(CaptureError) as caught:
        device.wait(t, e)
    assert caught.value.code == 902
    for stream in (s, t):
        with pytest.raises(CaptureError) as caught:
            device.end_capture(stream)
        assert caught.value.code == 901


def test_rule_50_the_default_stream_during_the_capture_of_a_blocking_stream(dev: Any) -> None:
    seen = dev.isolated(programs.legacy_stream_during_the_capture_of_a_blocking_stream)
    assert seen["call"] == ("RuntimeError", 906)
    assert (seen["end"], seen["value"]) == (OK, 0)


def test_rule_50_the_default_stream_during_the_capture_of_a_torch_stream_runs_uncaptured(dev: Any) -> None:
    seen = dev.isolated(programs.legacy_stream_during_the_capture_of_a_torch_stream)
    assert (seen["call"], seen["end"], seen["value"]) == (OK, OK, 7)


@breaks(907)
def test_rule_51_a_captured_event_cannot_be_asked(dev: Any, program: Callable[[Any], Any]) -> None:
    check_broken(dev, program, 907)


def test_rule_51_a_captured_event_is_of_no_use_after_the_capture(dev: Any) -> None:
    seen = dev.isolated(programs.events_after_a_capture)
    assert seen == dict.fromkeys(("query", "synchronize", "wait"), ("RuntimeError", 1))


def test_rule_51_an_event_recorded_again_outside_works_again(dev: Any) -> None:
    s, g, e = dev.Stream(), dev.CUDAGraph(), dev.Event()
    with dev.graph(g, stream=s):
        dev.kernel(1)
        e.record()
    dev.kernel(30, s)
    e.record(s)
    assert not e.query()
    e.synchronize()
    assert e.query()


def first_replay_uploads_the_graph(dev: Any, graph: Any, stream: Any) -> None:
    """On a real GPU that takes some ms, once."""
    if dev.real:
        dev.replay(graph, stream)
        dev.synchronize()


def test_rule_51_an_external_event_is_a_node_that_every_replay_records(dev: Any) -> None:
    s, g, e = dev.Stream(), dev.CUDAGraph(), dev.Event(external=True)
    with dev.graph(g, stream=s):
        dev.kernel(30)
        e.record()
        dev.kernel(50)
    first_replay_uploads_the_graph(dev, g, s)
    for _ in range(2):
        begin = dev.now
        dev.replay(g, s)
        e.synchronize()
        assert dev.now - begin == dev.about(30)
        dev.synchronize()
        assert dev.now - begin == dev.about(80)


@pytest.mark.parametrize(("recorded", "ends"), [(True, 40), (False, 20)], ids=["recorded before", "never recorded"])
def test_rule_51_an_external_wait_is_a_node_too(dev: Any, recorded: bool, ends: int) -> None:
    s, t, g, e = dev.Stream(), dev.Stream(), dev.CUDAGraph(), dev.Event(external=True)
    if recorded:  # before that the event does not exist, and a wait for it makes no node (16)
        e.record(t)
    with dev.graph(g, stream=s):
        dev.kernel(10, fraction=0.3)
        e.wait()
        dev.kernel(10, fraction=0.3)
    first_replay_uploads_the_graph(dev, g, s)
    begin = dev.now
    dev.kernel(30, t, fraction=0.3)
    e.record(t)
    dev.replay(g, s)
    s.synchronize()
    assert dev.now - begin == dev.about(ends)


def test_rule_59_a_pageable_copy_is_refused_and_the_capture_stays_valid(dev: Any) -> None:
    seen = dev.isolated(programs.pageable_copy)
    assert [call[0] for call in seen["calls"]] == ["RuntimeError"] * 2
    assert (seen["end"], seen["replay"], seen["value"]) == (OK, OK, 2)


def test_rule_59_a_pinned_copy_becomes_a_node(dev: Any) -> None:
    g, x, h = dev.CUDAGraph(), dev.tensor_of(1, "device", 0), dev.tensor_of(1, "pinned", 5)
    with dev.graph(g):
        x.copy_(h, non_blocking=True)
    dev.synchronize()
    assert dev.peek(x) == 0
    g.replay()
    dev.synchronize()
    assert dev.peek(x) == 5


@pytest.mark.parametrize(
    ("program", "call", "end"),
    [
        (programs.unsafe_call_elsewhere_global, ("RuntimeError", 900), ("RuntimeError", 901)),
        (programs.unsafe_call_elsewhere_thread_local, OK, OK),
        (programs.unsafe_call_elsewhere_relaxed, OK, OK),
    ],
    ids=["global", "thread_local", "relaxed"],
)
def test_rule_59_capture_modes_and_other_threads(dev: Any, program: Callable[[Any], Any], call: Any, end: Any) -> None:
    seen = dev.isolated(program)
    dev.settle_on_hardware("a query by another thread", (seen["call"], seen["end"]) == (call, end), seen)


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_rule_59_a_plain_malloc_in_the_capturing_thread(dev: Any, mode: str) -> None:
    dev.not_on_a_real_gpu("torch allocates in relaxed mode; CUDA's own cudaMalloc is in benchmarks/open_points.py, (f)")
    g = dev.CUDAGraph()
    with dev.stream(dev.Stream()):
        g.capture_begin(capture_error_mode=mode)
        seen = programs.outcome(dev.cudart().cudaMalloc)
    assert seen == (OK if mode == "relaxed" else ("RuntimeError", 900))


def test_rule_59_a_capture_ends_in_its_own_thread_unless_relaxed(dev: Any) -> None:
    assert dev.isolated(programs.end_elsewhere_global)["elsewhere"] == ("RuntimeError", 908)
    assert dev.isolated(programs.end_elsewhere_relaxed)["elsewhere"] == OK


def test_rule_59_a_capture_ends_on_its_own_stream(dev: Any) -> None:
    seen = dev.isolated(programs.end_on_another_stream)
    assert seen["wrong"][0] == "RuntimeError"
    assert seen["right"] == OK


def test_rule_59_tensors_may_be_allocated_in_a_capture(dev: Any) -> None:
    g, x = dev.CUDAGraph(), dev.tensor_of(1, "device", 3)
    with dev.graph(g):
        y = x + x
    g.replay()
    dev.synchronize()
    assert dev.peek(y) == 6


@pytest.mark.parametrize(("policy", "allowed"), [("pool", True), ("trap", False)])
def test_rule_59_pinned_allocation_in_a_capture_depends_on_the_version(dev: Any, policy: str, allowed: bool) -> None:
    dev = dev.with_(pinned_alloc_in_capture=policy)
    g = dev.CUDAGraph()
    with dev.stream(dev.Stream()):
        g.capture_begin()
        seen = programs.outcome(lambda: dev.empty(4, pin_memory=True))
    assert seen == (OK if allowed else ("RuntimeError", 900))


def test_rule_59_random_numbers_differ_from_replay_to_replay(dev: Any) -> None:
    g, x = dev.CUDAGraph(), dev.tensor_of(1, "device", 0)
    with dev.graph(g):
        x.normal_()
    values = []
    for _ in range(3):
        g.replay()
        dev.synchronize()
        values.append(dev.peek(x))
    assert len(set(values)) == 3
