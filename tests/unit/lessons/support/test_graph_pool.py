"""Two graphs in one pool."""

from __future__ import annotations

from labkit.analysis.races import check
from labkit.lessons.support.graph_pool import TwoGraphs


def test_the_second_output_lies_where_the_first_temporary_was() -> None:
    graphs = TwoGraphs()
    assert graphs.out2.data_ptr() == graphs.address_of_t
    assert graphs.out1.data_ptr() != graphs.address_of_t


def test_in_the_order_of_capture_both_are_right() -> None:
    graphs = TwoGraphs()
    graphs.replay_first()
    graphs.replay_second()
    assert (graphs.read(graphs.out1), graphs.read(graphs.out2)) == (3, 9)
    assert check(graphs.gpu.trace()).clean


def test_in_the_other_order_one_is_clobbered() -> None:
    graphs = TwoGraphs()
    graphs.replay_second()
    graphs.replay_first()
    assert (graphs.read(graphs.out1), graphs.read(graphs.out2)) == (3, 2)
    report = check(graphs.gpu.trace())
    assert not report.races
    assert [notice.kind for notice in report.notices] == ["graph output clobbered"]
