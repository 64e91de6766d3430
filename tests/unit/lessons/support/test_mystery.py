"""An engine made of right parts is the engine of the last rung; a part that is replaced is the one that is asked."""

from __future__ import annotations

import pytest

from labkit.device.costs import load_profile
from labkit.device.virtual import VirtualDevice
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import EngineFault
from labkit.lessons.support import mystery
from labkit.lessons.support import parts as right
from labkit.lessons.support.mystery import MysteryEngine, _Launcher
from labkit.lessons.support.parts import PartFailed, Parts
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.sizes import Sizes

SIZES = Sizes(max_rows=4, token_budget=16, block_size=4, num_blocks=24, max_model_len=32)
PROMPTS = [[5, 6, 7], [9] * 5, [11, 12], [1, 2, 3, 4]]
PARAMS = [SamplingParams(max_new_tokens=count) for count in (9, 4, 7, 6)]


def run(**parts) -> Run:
    device = {"device": "virtual", "profile": load_profile("toy-u"), "sizes": SIZES}
    with MysteryEngine(ToyModel(), Parts(**parts), **device) as engine:
        return engine.generate(PROMPTS, PARAMS)


def test_with_all_parts_right_it_does_what_the_engine_of_the_last_rung_does():
    with Engine(ToyModel(), switches="cuda_graphs", profile="toy-u", sizes=SIZES) as engine:
        real = engine.generate(PROMPTS, PARAMS)
    mine = run()
    assert (mine.tokens, mine.steps, mine.stats) == (real.tokens, real.steps, real.stats)
    spans = [[(s.kind, s.name, s.step, s.start_ns, s.end_ns) for s in it.trace.spans] for it in (mine, real)]
    assert spans[0] == spans[1]


def wanting_warm_up(device, profile):
    opened = VirtualDevice(profile)
    opened.warm_up_before_capture = True
    return opened


def test_a_device_that_needs_it_runs_every_graph_once_before_its_capture(monkeypatch):
    launched, launch = [], _Launcher._launch

    def noting(self, stream, slot, key):
        launched.append((stream.name, key))
        launch(self, stream, slot, key)

    monkeypatch.setattr(_Launcher, "_launch", noting)
    monkeypatch.setattr(mystery, "open_device", wanting_warm_up)
    tokens = run().tokens
    assert [name for name, _ in launched] == ["compute", "capture"] * (len(launched) // 2)
    assert [key for _, key in launched[::2]] == [key for _, key in launched[1::2]]
    assert len(launched) == 2 * 2 * 3 * 4, "two slots, three sizes, random or not, log-probabilities or not"
    monkeypatch.undo()
    assert tokens == run().tokens


ORDER = ["before_fill", "uploaded", "before_compute", "computed", "before_download", "downloaded", "before_read"]


def test_the_order_parts_are_called_in_the_order_of_the_phases():
    called = []

    def noting(name):
        def part(streams, slot):
            called.append(name)
            right.RIGHT[name](streams, slot)

        return part

    run(**{name: noting(name) for name in ORDER})
    assert called[:6] == ORDER[:6], "the cold start: enqueued, and not read yet"
    assert called[6:13] == [*ORDER[:6], "before_read"]


def test_slots_can_share_a_buffer_and_an_event():
    trace = run(
        buffer_owner=lambda what, slot: "B" if what == "inputs_host" else slot,
        event_owner=lambda what, slot: "A" if what == "h2d_done" else slot,
    ).trace
    written = {touch.buffer for span in trace.of_kind("host_write") for touch in span.writes}
    recorded = {span.event for span in trace.of_kind("record")}
    assert written == {"inputs_host[B]"}
    assert recorded == {"h2d_done[A]", "compute_done[A]", "compute_done[B]", "d2h_done[A]", "d2h_done[B]"}


def test_the_host_s_buffers_lie_where_the_part_says():
    trace = run(host_place=lambda what: "pageable" if what == "outputs_host" else "pinned").trace
    places = {(touch.buffer[:-3], touch.place) for span in trace.of_kind("copy") for touch in span.reads + span.writes}
    assert {place for place in places if place[0].endswith("host")} == {
        ("inputs_host", "pinned"),
        ("outputs_host", "pageable"),
    }


def test_the_carry_over_reads_the_slot_and_the_row_that_the_parts_name():
    assert run(carry_slot=lambda slot: slot).tokens != run().tokens
    first_rows = run(carry_row=lambda request, row: 0)
    assert all(row.carry_from in (0, -1) for step in first_rows.steps for row in step.rows)


@pytest.mark.parametrize(
    ("name", "part", "says"),
    [
        ("carry_slot", lambda slot: "C", "'A' or 'B'"),
        ("buffer_owner", lambda what, slot: None, "'A' or 'B'"),
        ("event_owner", lambda what, slot: 0, "'A' or 'B'"),
        ("host_place", lambda what: "device", "'pinned' or 'pageable'"),
        ("graph_key", lambda slot, rows, random, logprobs: [rows], "a dict can look up"),
    ],
)
def test_a_part_that_cannot_be_built_with_is_refused(name, part, says):
    with pytest.raises(PartFailed, match=says):
        run(**{name: part})


@pytest.mark.parametrize(
    ("name", "part", "says"),
    [
        ("carry_row", lambda request, row: 4, "a row from 0 to 3"),
        ("carry_row", lambda request, row: None, "a row from 0 to 3"),
        ("padding_place", lambda sizes, row: 100, "a place from 0 to 99"),
        ("padding_place", lambda sizes, row: -1, "a place from 0 to 99"),
        ("before_read", lambda streams, slot: slot.nothing, "AttributeError"),
    ],
)
def test_an_index_out_of_range_never_reaches_the_device(name, part, says):
    with pytest.raises(EngineFault) as fault:
        run(**{name: part})
    assert isinstance(fault.value.__cause__, PartFailed)
    assert says in str(fault.value.__cause__)
