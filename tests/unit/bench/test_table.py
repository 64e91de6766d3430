"""The benchmark table on the virtual GPU."""

import pytest

from labkit.bench.table import HEADER, MODES, BenchRow, bench, line_of
from labkit.errors import InvalidArgument
from labkit.model.toy import ToyModel


@pytest.fixture
def rows(rig):
    found = bench(rig, ToyModel(), "fused", MODES, (2, 4), (40, 90), bandwidth=1.0, steps=4, blocks=2)
    return {(row.mode, row.batch, row.context): row for row in found}


def test_a_row_for_each_mode_batch_and_context(rows):
    assert len(rows) == 4 * 2 * 2
    row = rows["async-graphs", 4, 90]
    assert row.tokens_per_s == pytest.approx(4e9 / row.ns)
    assert row.gpu_active > 0.99


def test_host_time_is_phases_and_calls_without_waits(rows, truth):
    host = rows["sync-graphs", 4, 90].host_ns
    assert host["settle"] == truth.phases["settle"](4, 4, 0)
    assert host["upload"] == truth.copy_ns + truth.record_ns
    assert host["compute"] < 30_000 < 2_000_000 < rows["sync", 4, 90].host_ns["compute"]


def test_asynchrony_hides_the_host_where_graphs_took_the_launches_away(rows):
    for batch in (2, 4):
        sync, fast = rows["sync-graphs", batch, 90], rows["async-graphs", batch, 90]
        assert fast.ns < sync.ns
        assert fast.busy_ns == sync.busy_ns, "the same kernels, measured once"


def test_a_line_has_its_columns_under_the_header():
    row = BenchRow("m", "fused", "sync", 32, 512, 10e6, 11e6, 5e6, {"plan": 1e6, "settle": 2e6}, 4e6)
    assert line_of(row).split()[:8] == ["fused", "sync", "32", "512", "3200", "10.00", "11.00", "50.0%"]
    assert line_of(row).split()[8:11] == ["4.00", "2.50", "3.00"]
    assert line_of(row).index("3200") + 4 == HEADER.index("tokens/s") + 8
    assert row.to_dict()["host_ms"] == {"plan": 1.0, "settle": 2.0}


def test_what_is_not_known_is_a_dash():
    cells = line_of(BenchRow("m", "peer", "async", 8, 64, 10e6)).split()
    assert cells == ["peer", "async", "8", "64", "800", "10.00", "-", "-", "-", "-", "-"]


def test_an_unknown_mode_is_named(rig):
    with pytest.raises(InvalidArgument, match="mode='turbo'"):
        list(bench(rig, ToyModel(), "fused", ["turbo"], (1,), (40,), bandwidth=1.0))
