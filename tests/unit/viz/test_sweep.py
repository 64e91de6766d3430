"""A sweep: gains, and where they begin and end."""

import pytest

from labkit.errors import InvalidArgument
from labkit.experiments import SweepRow
from labkit.viz import sweep, table_of
from labkit.viz.sweep import Point, crossovers


def rows(*gains):
    return [{"x": 2**place, "sync_ms": 100.0, "async_ms": 100.0 * (1 - gain)} for place, gain in enumerate(gains)]


def test_the_gain_is_time_saved_and_said_both_ways():
    point = Point("1", 100, 78)
    assert point.gain == pytest.approx(0.22)
    assert point.speedup == pytest.approx(1.282, abs=1e-3)
    figure = sweep(rows(0.05, 0.22), over="batch size")
    assert list(figure.data[0].y) == pytest.approx([5, 22])
    assert figure.data[0].text[1] == "-22.0 %<br>1.28x"
    assert "batch size 2: -22.0 % time, 1.28x" in figure.layout.meta["summary"]


@pytest.mark.parametrize(
    ("gains", "places"),
    [
        ((0.2, 0.1, 0.05), []),
        ((0.2, 0.009, 0.0), [1]),  # under 1 %
        ((0.2, -0.2), [1]),  # the sign changes
        ((-0.2, -0.02, 0.005, 0.3), [2, 3]),
        ((0.0, 0.01), [1]),  # 1 % is a gain
    ],
)
def test_a_crossover_is_where_the_gain_changes_sign_or_drops_under_one_percent(gains, places):
    points = [Point(str(row["x"]), row["sync_ms"], row["async_ms"]) for row in rows(*gains)]
    points = [point if abs(point.gain - 0.01) > 1e-9 else Point("2", 100, 99) for point in points]
    assert crossovers(points) == places
    figure = sweep([{"x": p.x, "sync_ms": p.sync_ms, "async_ms": p.async_ms} for p in points])
    lines = [trace for trace in figure.data if trace.name == "crossover"]
    assert [line.x[0] for line in lines] == [place - 0.5 for place in places]
    named = [note for note in figure.layout.meta["notes"] if note.startswith("Crossover between")]
    assert len(named) == len(places)


def test_a_crossover_is_named_with_both_sides():
    notes = sweep(rows(0.2, 0.001, -0.1), over="batch size").layout.meta["notes"]
    assert "Crossover between batch size 1, where it gains, and 2: changes nothing." in notes
    assert "Crossover between batch size 2, where it changes nothing, and 4: loses." in notes


def test_what_does_not_gain_looks_different():
    bars = sweep(rows(0.2, 0.0, -0.2)).data[0]
    assert [bool(shape) for shape in bars.marker.pattern.shape] == [False, True, True]


def test_both_times_are_drawn_and_in_the_table():
    figure = sweep(rows(0.5, 0.25))
    assert [list(trace.y) for trace in figure.data[1:3]] == [[100, 100], [50, 75]]
    table = table_of(figure)
    assert [row["async_ms"] for row in table] == [50, 75]
    assert [row["time_saved_percent"] for row in table] == [50, 25]


def test_rows_of_an_experiment_bring_their_axis():
    figure = sweep([SweepRow("host slowdown", 0.5, 10.0, 9.0), SweepRow("host slowdown", 1, 10.0, 8.0)])
    assert figure.layout.xaxis.title.text == "host slowdown"
    assert list(figure.layout.xaxis.ticktext) == ["0.5", "1"]


@pytest.mark.parametrize("bad", [[], [{"x": 1, "sync_ms": 1}], [{"x": 1, "sync_ms": 0, "async_ms": 1}], ["row"]])
def test_bad_rows_are_refused(bad):
    with pytest.raises(InvalidArgument, match="results"):
        sweep(bad)
