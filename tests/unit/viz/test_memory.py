"""The picture of an engine's memory: the bars are the bytes."""

import plotly.graph_objects as go
import pytest

from labkit.analysis.units import bytes_text
from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.model.toy import ToyModel
from labkit.viz import memory, table_of
from tests.unit.viz.runs import SIZES, mixed_run


def drawn(figure: go.Figure, place: int) -> int:
    return sum(trace.x[place] for trace in figure.data)


def test_the_bars_of_an_engine_sum_to_its_bytes():
    runs = mixed_run(3), mixed_run(5)
    figure = memory(*runs)
    for place, run in enumerate(runs):
        assert drawn(figure, place) == sum(use.bytes for use in run.memory)


def test_bars_of_a_row_lie_end_to_end():
    for axis in ("x", "x2"):
        at = 0
        for trace in memory(mixed_run(6)).data:
            if (trace.xaxis or "x") == axis:
                assert trace.base[0] == at
                at += trace.x[0]


def test_one_slot_against_two_is_said_in_the_sentence():
    slots = [sum(use.bytes for use in mixed_run(n).memory if use.part.startswith("slot")) for n in (3, 5)]
    sentence = memory(mixed_run(3), mixed_run(5), names=("one", "two")).layout.meta["summary"]
    assert slots[1] == 2 * slots[0]
    assert f"{bytes_text(slots[0])} with one, {bytes_text(slots[1])} with two" in sentence


def test_an_engine_is_drawn_as_its_run():
    with Engine(ToyModel(), switches=5, sizes=SIZES) as engine:
        assert memory(engine, names=["a"]).to_json() == memory(mixed_run(5), names=["a"]).to_json()


def test_the_table_lists_every_buffer():
    rows = table_of(memory(mixed_run(6), names=["graphs"]))
    assert sum(row["bytes"] for row in rows) == sum(use.bytes for use in mixed_run(6).memory)
    assert {row["part"] for row in rows} == {"slot A", "slot B", "KV cache", "CUDA graphs"}


def test_parts_are_told_apart_by_more_than_colour():
    looks = [(trace.marker.color, trace.marker.pattern.shape, trace.xaxis) for trace in memory(mixed_run(6)).data]
    assert len(set(looks)) == len(looks) == 6


def test_bad_arguments_are_named():
    with pytest.raises(InvalidArgument, match="engines"):
        memory()
    with pytest.raises(InvalidArgument, match="engines"):
        memory("an engine")
    with pytest.raises(InvalidArgument, match="names"):
        memory(mixed_run(5), names=("a", "b"))
