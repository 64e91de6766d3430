"""What is around every plot."""

import pytest

from labkit.errors import InvalidArgument
from labkit.trace.events import Trace
from labkit.viz.frame import domains, frame, trace_of


def test_blocks_are_placed_from_top_to_bottom_with_their_gaps():
    inner, (top, middle, bottom) = domains([300, 100, 50], [20, 30])
    assert inner == 500
    assert (top, middle, bottom) == ([0.4, 1.0], [0.16, 0.36], [0.0, 0.1])


def test_the_plot_has_its_height_whatever_is_written_above():
    short, long = frame("One.", [], 400), frame("One. " * 60, ["A note. " * 40] * 3, 400)
    for layout in (short, long):
        assert layout.height - layout.margin.t - layout.margin.b == 400
    assert long.margin.t > short.margin.t
    assert long.title.text.count("<br>") > 1
    assert long.title.subtitle.text.count("<br>") > 5


def test_a_number_and_its_unit_are_on_one_line():
    for words in range(5, 30):
        layout = frame("GPU active " * words + "96.6 %.", ["idle " * words + "7.0 ms"], 100)
        for text, unit in ((layout.title.text, "96.6 %"), (layout.title.subtitle.text, "7.0 ms")):
            assert unit in text and "\u00a0" not in text


def test_meta_keeps_the_sentences_whole_and_the_table():
    layout = frame("A sentence.", ["word " * 50], 100, [{"a": 1}])
    assert layout.meta == {"summary": "A sentence.", "notes": ["word " * 50], "table": [{"a": 1}]}


def test_a_run_stands_for_its_trace():
    class Run:
        trace = Trace(())

    assert trace_of(Run()) is Run.trace
    assert trace_of(Run.trace) is Run.trace
    Run.trace = None
    with pytest.raises(InvalidArgument, match="trace=True"):
        trace_of(Run())
