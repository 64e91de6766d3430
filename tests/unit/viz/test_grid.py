"""Cells, and which steps they are drawn for."""

import pytest

from labkit.errors import InvalidArgument
from labkit.viz import style
from labkit.viz.grid import REQUESTS, Cell, cells_trace, chosen_steps, request_colours, step_axis, steps_of
from tests.unit.viz.contrast import contrast
from tests.unit.viz.runs import mixed_run


def test_a_cell_is_a_box_with_its_text_around_its_place():
    trace = cells_trace("cells", [Cell(3, 1, "7", "seven\n<b>", "#FFFFFF", hatch="x")])
    assert trace.base[0] < 3 < trace.base[0] + trace.x[0]
    assert trace.base[0] + trace.x[0] / 2 == pytest.approx(3)
    assert (trace.y[0], trace.text[0], trace.marker.pattern.shape[0]) == (1, "7", "x")
    assert trace.hovertext[0] == "seven<br>&lt;b&gt;"


def test_numbers_are_readable_on_every_request_s_colour():
    assert len({fill for fill, _ in REQUESTS}) == len(REQUESTS)
    assert request_colours(len(REQUESTS)) == REQUESTS[0]
    for fill, ink in REQUESTS:
        assert contrast(fill, ink) >= 4.5, fill
        assert ink in (style.INK, style.PAPER)


def test_the_first_steps_are_drawn_unless_others_are_asked_for():
    steps = mixed_run(5).steps
    assert chosen_steps(steps, None, 4) == list(steps[:4])
    assert [step.step for step in chosen_steps(steps, (2, 3), 4)] == [2, 3]
    assert step_axis(steps)["ticktext"][1] == "1<br>B"


@pytest.mark.parametrize("wanted", [(2, 99), (3, 2), (-1, 2), (1,)])
def test_steps_that_the_run_does_not_have_are_refused(wanted):
    with pytest.raises(InvalidArgument, match="steps"):
        chosen_steps(mixed_run(5).steps, wanted, 4)


def test_what_is_no_run_is_refused():
    for thing in (mixed_run(5).trace, "run", None):
        with pytest.raises(InvalidArgument, match="trace=True"):
            steps_of(thing)
