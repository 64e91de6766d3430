"""The report, and what the checker says about the rungs of the ladder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import pytest
import torch

from labkit.analysis.fixes import apply
from labkit.analysis.races import check, count_races
from labkit.analysis.redundant import redundant_waits
from labkit.device.api import Buffer, Stream, Work
from labkit.device.costs import Adversary, load_profile
from labkit.device.traced import TracedDevice
from labkit.device.virtual import VirtualDevice
from labkit.engine.ordering import WAITS
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.experiments import sizes_for, synthetic_prompts
from labkit.model import load_model
from labkit.run import Run
from labkit.trace.events import Trace
from tests.unit.analysis.programs import Program, node

# -- the report --------------------------------------------------------------------------------------------------------


def test_a_race_names_both_accesses_with_bytes_step_and_line():
    program = Program().h2d("upload", "h2d", "h", "in[A]", step=3).kernel("forward", "compute", "in[A]:32:96", step=4)
    (race,) = check(program.trace).races
    assert str(race.first) == "`upload` on h2d writes in[A] bytes [0, 64) (step 3, line.py:0)"
    assert str(race.second) == "`forward` on compute reads in[A] bytes [32, 96) (step 4, line.py:1)"
    assert (race.kind, race.count) == ("read after write", 1)
    assert race.missing_edge == "record after `upload` on h2d; compute waits on it before `forward` starts"


def test_the_first_step_is_a_step_and_no_step_is_none():
    (race,) = check(Program().kernel("a", "s1", w="x", step=0).kernel("b", "s2", r="x").trace).races
    assert str(race.first).endswith("(step 0, line.py:0)")
    assert str(race.second).endswith("(line.py:1)")


def test_a_missing_host_wait_is_one_to_type():
    (race,) = check(Program().d2h("download", "d2h", "out", "outputs_host[A]").read("outputs_host[A]").trace).races
    assert race.missing_edge == (
        "synchronize with an event recorded after `download` on d2h before the host reads outputs_host[A]"
    )
    assert str(race.second).startswith("the host reads outputs_host[A]")


def test_a_missing_edge_in_a_graph_belongs_into_its_capture():
    (race,) = check(Program().replay("g", "s", node("a", w="x"), node("b", "x")).trace).races
    assert race.missing_edge == "in the capture of g: record after `a`; the stream of `b` waits on it"


def test_a_clean_trace():
    report = check(Program().kernel("a", "s", w="x").kernel("b", "s", r="x").trace)
    assert report.clean
    assert str(report) == "No races."
    assert report.to_dict() == {"races": [], "notices": [], "repair": []}


def test_a_lost_result_is_no_race_and_not_clean():
    report = check(Program().d2h("down", "s", "x", "h").d2h("down", "s", "x", "h").trace)
    assert not report.races
    assert not report.clean
    assert str(report).startswith("No races.\n\noverwritten before read: ")


def test_the_report_reads_as_text_and_as_json():
    program = Program()
    for _ in range(3):
        program.kernel("a", "s1", w="x").record("e", "s1").kernel("b", "s2", r="x")
    report = check(program.trace)
    text = str(report)
    for part in (
        "2 races",
        "1. read after write (3 times): `b` on s2 reads x bytes [0, 64) (line.py:2)",
        "is not ordered after: `a` on s1 writes x bytes [0, 64) (line.py:0)",
        "near miss: e is recorded after `a` (line.py:1), but s2 does not wait for it",
        "fix: s2.wait_event(e) before `b`",
        "All of them are gone with:\n  s2.wait_event(e) before `b`\n  b_done.record(s2) after `b`; s1",
    ):
        assert part in text
    first = json.loads(json.dumps(report.to_dict()))["races"][0]
    assert {"kind", "first", "second", "buffer", "missing_edge", "fix"} <= set(first)
    assert (first["buffer"], first["count"], first["fix"]) == ("x", 3, "s2.wait_event(e) before `b`")
    assert first["also_removes"] == 0
    assert first["first"]["text"] == str(report.races[0].first)


def test_a_fix_says_how_many_other_races_it_removes():
    program = (
        Program().kernel("a", "s1", w="x").kernel("b", "s2", r="x").kernel("c", "s2", r="x").kernel("d", "s2", r="x")
    )
    report = check(program.trace)
    assert [race["also_removes"] for race in report.to_dict()["races"]] == [2, 2, 2]
    assert "before `b` (removes 2 others too)" in str(report)


# -- memory that an allocator gives out again, on the virtual GPU ---------------------------------------------------


class Gpu:
    """The virtual GPU, recorded: kernels that do nothing, on buffers of the caching allocator."""

    def __init__(self) -> None:
        self.device = TracedDevice(VirtualDevice("h200-8b"))

    def kernel(self, name: str, stream: Stream, r: Sequence[Buffer] = (), w: Sequence[Buffer] = ()) -> None:
        self.device.launch(lambda: None, stream, reads=r, writes=w, work=Work("fixed", fixed_ns=10), label=name)

    def buffer(self, name: str, stream: Stream, pool: object = None) -> Buffer:
        return self.device.buffer(name, (16,), torch.float32, "device", stream=stream, pool=pool)

    def wait_stream(self, stream: Stream, other: Stream) -> None:
        event = self.device.event(f"{other.name} to {stream.name}")
        event.record(other)
        stream.wait_event(event)


@pytest.mark.parametrize("ordered", [False, True])
def test_memory_is_reused_under_the_reader_without_record_stream_62_64(ordered):
    gpu = Gpu()
    s, t = gpu.device.stream("s"), gpu.device.stream("t")
    x = gpu.buffer("x", s)
    gpu.kernel("make", s, w=[x])
    gpu.wait_stream(t, s)
    gpu.kernel("use", t, r=[x])
    if ordered:
        gpu.wait_stream(s, t)
    gpu.device.free(x)
    gpu.kernel("next", s, w=[gpu.buffer("y", s)])
    races = check(gpu.device.take()).races
    assert [(race.first.buffer, race.second.buffer) for race in races] == ([] if ordered else [("x", "y")])
    assert [race.alternative for race in races] == (
        [] if ordered else ["x.record_stream(t) before it is freed: y was given the memory of x"]
    )


@pytest.mark.parametrize(("order", "clobbered"), [((0, 1), []), ((1, 0), ["out2"])])
def test_two_graphs_of_one_pool_replayed_in_both_orders_58(order, clobbered):
    gpu = Gpu()
    s, side, pool = gpu.device.stream("s"), gpu.device.stream("side"), gpu.device.graph_pool()
    with gpu.device.capture("g1", side, pool) as g1:
        temporary, out1 = gpu.buffer("t1", side, pool), gpu.buffer("out1", side, pool)
        gpu.kernel("first", side, w=[temporary])
        gpu.kernel("second", side, r=[temporary], w=[out1])
        gpu.device.free(temporary)
    with gpu.device.capture("g2", side, pool) as g2:
        out2 = gpu.buffer("out2", side, pool)
        gpu.kernel("third", side, w=[out2])
    for number in order:
        (g1, g2)[number].replay(s)
    gpu.kernel("use", s, r=[out1, out2])
    report = check(gpu.device.take())
    assert not report.races
    assert [notice.buffer for notice in report.notices] == clobbered


# -- the ladder --------------------------------------------------------------------------------------------------------

RIGHT = (0, 2, 5, 6)


@cache
def run(rung: int, drop: str = "", seed: int | None = None) -> Run:
    model = load_model("toy")
    prompts, params = synthetic_prompts(model, 4, 9), SamplingParams(max_new_tokens=7)
    profile = load_profile("h200-8b")
    with Engine(
        model,
        switches=rung,
        profile=profile if seed is None else Adversary(profile, seed),
        sizes=sizes_for(model, prompts, params),
        unsafe=True,
        dropped_waits=[drop] if drop else [],
    ) as engine:
        return engine.generate(prompts, params)


def trace_of(rung: int, drop: str = "", seed: int | None = None) -> Trace:
    trace = run(rung, drop, seed).trace
    assert trace is not None
    return trace


@pytest.mark.parametrize("rung", RIGHT)
def test_a_right_rung_is_clean_and_needs_each_of_its_waits(rung):
    assert run(rung).tokens == run(0).tokens
    assert check(trace_of(rung)).clean
    assert redundant_waits(trace_of(rung)) == ()


def test_rung_1_lacks_two_waits_and_the_hosts():
    report = check(trace_of(1))
    assert [str(fix) for fix in report.repair] == [
        "upload_done.record(h2d) after `upload`; compute.wait_event(upload_done) before `forward`",
        "sample_done.record(compute) after `sample`; d2h.wait_event(sample_done) before `download`",
        "download_done.record(d2h) after `download`; download_done.synchronize() before `read outputs_host`",
    ]
    assert check(apply(trace_of(1), *report.repair)).clean
    edges = [race.missing_edge for race in report.races]
    assert "record after `upload` on h2d; compute waits on it before `forward` starts" in edges
    assert "record after `sample` on compute; d2h waits on it before `download` starts" in edges
    assert "synchronize with an event recorded after `download` on d2h before the host reads outputs_host[A]" in edges


def test_rung_3_overwrites_the_buffers_of_the_step_in_flight():
    report = check(trace_of(3))
    assert {(race.kind, race.second.buffer) for race in report.races} == {
        ("write after read", "inputs_host[A]"),
        ("write after read", "inputs_dev[A]"),
        ("write after read", "outputs_dev[A]"),
    }
    (lost,) = report.notices
    assert (lost.kind, lost.buffer) == ("overwritten before read", "outputs_host[A]")
    assert lost.count == run(3).stats["steps"] - 1


def test_rung_4_has_no_race_and_wrong_tokens():
    assert check(trace_of(4)).clean
    assert run(4).tokens != run(0).tokens


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("rung", [2, 5, 6])
def test_a_dropped_wait_is_missed_and_one_fix_makes_the_trace_clean(rung, wait):
    trace = trace_of(rung, wait)
    report = check(trace)
    waits, event = wait.split("_waits_")
    (fix,) = report.repair
    first_line = f"{event}_done.synchronize()" if waits == "host" else f"{waits}.wait_event({event}_done)"
    assert [line.split("  #")[0] for line in fix.code] == [first_line]  # the record is there: only the wait is missing
    assert check(apply(trace, fix)).clean
    assert all(race.fix for race in report.races)
    assert any(f"{event}_done[A] is recorded after" in near for race in report.races for near in race.near_misses)


@pytest.mark.parametrize("rung", [1, 3, 5, 6])
def test_the_verdict_does_not_depend_on_how_long_things_take(rung):
    verdicts = {str(check(trace_of(rung, seed=seed))) for seed in range(3)}
    assert len(verdicts) == 1


def test_the_count_is_that_of_the_report():
    assert [count_races(trace_of(rung)) for rung in (0, 1, 3)] == [0, 7, 3]
    assert len(check(trace_of(1)).races) == 7
