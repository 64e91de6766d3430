"""The judge: what counts as a needless wait, and what a repair is told that repairs something else."""

from __future__ import annotations

import pytest

from labkit.lessons.support import parts as right
from labkit.lessons.support.cases import case, right_engine
from labkit.lessons.support.detective import evidence, judge, stalls, waits

BROKEN = {
    0: "before_compute",
    1: "before_read",
    2: "computed",
    3: "before_download",
    4: "buffer_owner",
    5: "carry_row",
    6: "graph_key",
    7: "padding_place",
    8: "before_download",
    9: "event_owner",
    10: "host_place",
}


def replacing(*names):
    def repair(parts):
        for name in names:
            setattr(parts, name, right.RIGHT[name])

    return repair


@pytest.mark.parametrize(("number", "name"), BROKEN.items())
def test_the_right_part_in_its_place_passes(number, name):
    assert judge(number, replacing(name), "virtual").passed


@pytest.mark.parametrize(("number", "name"), BROKEN.items())
def test_a_right_part_in_another_place_leaves_the_fault(number, name):
    other = "before_fill" if name != "before_fill" else "computed"
    result = judge(number, replacing(other), "virtual")
    assert not result.passed
    assert result.says.startswith("The same fault as before. ")


def test_everything_replaced_is_no_answer():
    result = judge(5, replacing(*right.RIGHT), "virtual")
    assert not result.passed
    assert "Only one part" in result.says
    assert result.yours.startswith("14 parts: `before_fill`, ")


def test_nothing_replaced_shows_the_evidence():
    result = judge(8, lambda parts: None, "virtual")
    assert (result.passed, result.yours) == (False, "no races, right tokens, 26 host waits for the newest step")


def test_a_right_engine_waits_for_the_newest_step_only_at_its_end():
    (last,) = stalls(right_engine("virtual").trace)
    assert (last.phase, last.step) == ("settle", 25)


@pytest.mark.parametrize(("number", "phase"), [(8, "download"), (9, "settle"), (10, "download")])
def test_a_slow_engine_waits_for_the_newest_step_in_every_step(number, phase):
    found = stalls(case(number).trace)
    assert len([span for span in found if span.phase == phase]) >= 25


def test_a_wait_for_an_upload_is_no_stall():
    assert (
        waits(
            4,
            lambda parts: setattr(parts, "before_fill", lambda _, slot: slot.previous.h2d_done.synchronize()),
            "virtual",
        )
        == 52
    )
    assert waits(4, replacing("buffer_owner"), "virtual") == 26


def test_only_a_repair_of_a_slow_engine_gains_time():
    assert "1.49x" in judge(8, replacing("before_download"), "virtual").says
    assert "GPU active" not in judge(1, replacing("before_read"), "virtual").says


def test_evidence_counts():
    assert evidence(case(4)) == "1 race, right tokens, no needless wait"
    assert evidence(case(1)) == "5 races, 6 of 6 requests wrong, no needless wait"
