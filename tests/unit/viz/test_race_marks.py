"""Races on a timeline: the marks are on the spans that the report names."""

import pytest

from labkit.analysis.races import RaceReport, check
from labkit.viz.drawing import ROW
from labkit.viz.race_marks import race_notes, race_trace, span_of
from tests.unit.viz.runs import mixed_run

WRONG = (1, 3)


@pytest.mark.parametrize("rung", WRONG)
def test_every_access_of_a_race_has_its_span(rung):
    run = mixed_run(rung)
    for race in check(run.trace).races:
        for access in (race.first, race.second):
            span = span_of(run.trace, access)
            assert (span.step, span.name) == (access.step, access.operation)
            touched = span.writes if access.write else span.reads
            assert access.buffer in [touch.buffer for touch in touched]


@pytest.mark.parametrize("rung", WRONG)
def test_marks_are_in_the_lane_and_at_the_time_of_their_access(rung):
    run = mixed_run(rung)
    found = check(run.trace)
    marks = race_trace(run.trace, found, 400)  # a range so short that no two marks share a place
    points = [(x, y) for x, y in zip(marks.x, marks.y, strict=True) if x is not None]
    accesses = [access for race in found.races for access in (race.first, race.second)]
    assert len(points) == len(accesses) == 2 * len(found.races)
    for (x, y), access in zip(points, accesses, strict=True):
        span = span_of(run.trace, access)
        assert abs(y - ROW[span.lane]) < 0.4
        at = (span.end_ns if access.write else span.start_ns) - run.trace.start_ns
        assert x == pytest.approx(at / 1000, abs=0.1)


def test_marks_of_one_place_do_not_cover_each_other():
    run = mixed_run(1)
    marks = race_trace(run.trace, check(run.trace), run.trace.duration_ns)
    width, points = (
        run.trace.duration_ns / 40 / 1000,
        [(x, y) for x, y in zip(marks.x, marks.y, strict=True) if x is not None],
    )
    for place, (x, y) in enumerate(points):
        assert all(abs(x - other) >= width * 0.99 or abs(y - row) > 0.2 for other, row in points[:place])


def test_lines_join_the_two_accesses_of_one_race_only():
    run = mixed_run(1)
    marks = race_trace(run.trace, check(run.trace), 10_000)
    assert marks.x[2::3] == (None,) * (len(marks.x) // 3)
    numbers = [text for text in marks.text if text]
    assert numbers[::2] == numbers[1::2]


def test_a_race_in_a_graph_is_marked_on_the_replay():
    run = mixed_run(6)
    replay = next(run.trace.of_kind("graph"))
    node = run.trace.graphs[replay.name][0]
    race = check(mixed_run(1).trace).races[0]
    access = type(race.first)(node.name, replay.stream, True, "b", 0, 4, replay.step, "")
    assert span_of(run.trace, access) is replay


def test_a_race_of_another_trace_has_no_mark():
    report = check(mixed_run(1).trace)
    trace = mixed_run(5).trace.window(-2, -1)
    assert not race_trace(trace, report, 100).x


def test_the_notes_name_both_sides_and_count_the_rest():
    report = check(mixed_run(1).trace)
    notes = race_notes(report)
    assert notes[0] == ("Race 1: read after write of inputs_dev[A]: `forward` is not ordered after `upload`.")
    assert any("the host is not ordered after `download`" in note for note in notes)
    assert notes[-1] == f"And {len(report.races) - 4} more."
    assert race_notes(RaceReport((), (), ())) == ["No races."]
