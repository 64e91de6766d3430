"""Rules 57, 58 and 61 to 64: the caching allocator across streams and graphs."""

from __future__ import annotations

from typing import Any

N = 1 << 18  # floats: 1 MiB, a size that no other tensor of these tests has


def make(dev: Any, stream: Any, n: int = N) -> Any:
    """An uninitialised device tensor, allocated in a stream."""
    with dev.stream(stream):
        return dev.empty(n, device="cuda")


def sampled(tensor: Any) -> list[float]:
    """A few elements, after everything is done."""
    return [float(value) for value in tensor.data[:8]]


def test_rule_57_a_temporary_of_a_capture_is_reused_in_it_and_by_nobody_else(dev: Any) -> None:
    g = dev.CUDAGraph()
    with dev.graph(g):
        first = dev.empty(N, device="cuda")
        address = first.data_ptr()
        del first
        second = dev.empty(N, device="cuda")
        assert second.data_ptr() == address
        second.fill_(1)
        del second
    eager = [dev.empty(N, device="cuda") for _ in range(8)]
    other, taken = dev.CUDAGraph(), []
    with dev.graph(other):
        taken.append(dev.empty(N, device="cuda"))
        taken[0].fill_(1)
    assert address not in {tensor.data_ptr() for tensor in [*eager, *taken]}


def test_rule_57_the_pool_lives_as_long_as_the_graph(dev: Any) -> None:
    dev = dev.with_(memory_bytes=3 << 20)
    g = dev.CUDAGraph()
    with dev.graph(g):
        x = dev.empty(N, device="cuda")
        x.fill_(1)
        del x
    dev.empty_cache()
    assert dev.machine.allocator.reserved == 1 << 20
    g.reset()
    dev.empty_cache()
    assert dev.machine.allocator.reserved == 0


def shared_pool(dev: Any) -> tuple[Any, Any, Any, Any, bool]:
    """g1: t1 = 2, out1 = t1 + 1, t1 freed; g2, captured into the same pool: out2 = 9. Whether out2 has t1's memory."""
    g1, g2 = dev.CUDAGraph(), dev.CUDAGraph()
    with dev.graph(g1):
        t1 = dev.empty(N, device="cuda")
        dev.fill(t1, 2, 10, name="t1")
        out1 = t1 + 1
        address = t1.data_ptr()
        del t1
    with dev.graph(g2, pool=g1.pool()):
        out2 = dev.empty(N, device="cuda")
        dev.fill(out2, 9, 10, name="out2")
    return g1, g2, out1, out2, out2.data_ptr() == address


def test_rule_58_graphs_of_one_pool_replayed_in_the_order_of_capture(dev: Any) -> None:
    g1, g2, out1, out2, shared = shared_pool(dev)
    assert shared
    g1.replay()
    g2.replay()
    dev.synchronize()
    assert (dev.peek(out1), dev.peek(out2)) == (3, 9)
    dev.expect_races(0)


def test_rule_58_replayed_in_another_order_an_output_is_clobbered(dev: Any) -> None:
    g1, g2, _, out2, _ = shared_pool(dev)
    g2.replay()
    g1.replay()
    dev.synchronize()
    assert dev.peek(out2) == 2, "what g1 wrote to t1"
    if not dev.real:
        dev.kernel(1, reads=[out2])
        report = dev.report()
        assert not report.races
        assert [notice.kind for notice in report.notices] == ["graph output clobbered"]


def test_rule_58_replayed_at_the_same_time_it_is_a_race(dev: Any) -> None:
    g1, g2, _, _, _ = shared_pool(dev)
    dev.replay(g1, dev.Stream())
    dev.replay(g2, dev.Stream())
    dev.synchronize()
    if not dev.real:
        assert dev.report().races


def test_rule_61_a_block_goes_back_to_its_own_stream(dev: Any) -> None:
    s, t = dev.Stream(), dev.Stream()
    x = make(dev, s)
    address = x.data_ptr()
    dev.read(x, 100, s, fraction=0.3)
    del x
    assert make(dev, t).data_ptr() != address
    y = make(dev, s)
    assert y.data_ptr() == address
    begin = dev.now
    write = dev.fill(y, 1, 10, s, fraction=0.3)
    assert dev.now - begin == dev.about(0)
    dev.synchronize()
    assert write.start == dev.about(100)
    dev.expect_races(0)


def first_use_on_another_stream(dev: Any, ordered: bool) -> float:
    """When the first write to a fresh block starts, on another stream than the one it was allocated in."""
    s, t = dev.Stream(), dev.Stream()
    x = make(dev, s)
    kernel = dev.kernel(100, s, reads=[x], fraction=0.3)
    del x
    y = make(dev, s)
    if ordered:
        t.wait_stream(s)
    write = dev.fill(y, 1, 10, t, fraction=0.3)
    dev.synchronize()
    return float(write.start - kernel.start)


def test_rule_61_the_first_use_on_another_stream_races_with_the_previous_owner(dev: Any) -> None:
    assert first_use_on_another_stream(dev, ordered=False) == dev.about(0)
    dev.expect_races(1)


def test_rule_61_it_needs_a_wait_even_if_nothing_was_written_to_it(dev: Any) -> None:
    assert first_use_on_another_stream(dev, ordered=True) == dev.about(100)
    dev.expect_races(0)


def across_streams(dev: Any, protect: str) -> dict[str, Any]:
    """x is made on s (0-10) and read on t (10-110); the host frees it and allocates y on s, written at once."""
    s, t = dev.Stream(), dev.Stream()
    x, seen = make(dev, s), make(dev, t)
    address = x.data_ptr()
    kernel = dev.fill(x, 8, 10, s, fraction=0.3)
    t.wait_stream(s)
    dev.kernel(100, t, reads=[x], writes=[seen], fn=lambda a, b: b.copy_(a), fraction=0.3)
    if protect == "record_stream":
        x.record_stream(t)
    elif protect == "wait_stream":
        s.wait_stream(t)
    del x
    y = make(dev, s)
    write = dev.fill(y, 1, 10, s, fraction=0.3)
    same = y.data_ptr() == address
    dev.synchronize()
    later = [make(dev, s).data_ptr() for _ in range(1)]
    return {
        "same address": same,
        "start": write.start - kernel.start,
        "seen": sampled(seen),
        "back later": address in later,
    }


def test_rule_62_without_record_stream_the_memory_is_reused_under_the_reader(dev: Any) -> None:
    found = across_streams(dev, "nothing")
    assert found["same address"]
    assert found["start"] == dev.about(10)
    assert found["seen"] != [8.0] * 8
    dev.expect_races(1)
    if not dev.real:
        (race,) = dev.report().races
        assert "record_stream" in race.alternative


def test_rule_63_record_stream_delays_the_reuse_and_orders_nothing(dev: Any) -> None:
    found = across_streams(dev, "record_stream")
    assert not found["same address"]
    assert found["start"] == dev.about(10)
    assert found["seen"] == [8.0] * 8
    assert found["back later"]
    dev.expect_races(0)


def test_rule_63_the_event_is_recorded_when_the_tensor_is_freed(dev: Any) -> None:
    s, t = dev.Stream(), dev.Stream()
    x = make(dev, s)
    address = x.data_ptr()
    begin = dev.now
    dev.kernel(110, t, reads=[x], fraction=0.3)
    x.record_stream(t)
    dev.kernel(50, t, fraction=0.3)
    del x
    dev.host_until(begin + (120 if dev.real else 110))
    early = make(dev, s)
    dev.host_until(begin + (200 if dev.real else 160))
    late = make(dev, s)
    assert early.data_ptr() != address
    assert late.data_ptr() == address
    dev.synchronize()


def test_rule_63_during_a_capture_the_event_waits_for_its_end(dev: Any) -> None:
    s, t, g = dev.Stream(), dev.Stream(), dev.CUDAGraph()
    x = make(dev, s)
    address = x.data_ptr()
    dev.kernel(1, t, reads=[x])
    x.record_stream(t)
    dev.synchronize()
    with dev.graph(g, capture_error_mode="relaxed"):
        del x
        dev.kernel(1)
        during = make(dev, s)
    make(dev, s)  # looks, and records the event that was put off
    dev.synchronize()
    afterwards = make(dev, s)
    assert during.data_ptr() != address
    assert address in (afterwards.data_ptr(), make(dev, s).data_ptr())


def test_rule_64_waiting_before_the_free_is_the_alternative(dev: Any) -> None:
    found = across_streams(dev, "wait_stream")
    assert found["same address"]
    assert found["start"] == dev.about(110)
    assert found["seen"] == [8.0] * 8
    dev.expect_races(0)
