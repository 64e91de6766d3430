"""The cases: what each instrument sees of which defect, and what it prints."""

from __future__ import annotations

import pytest

from labkit.errors import InvalidArgument
from labkit.lessons.support.cases import PROMPTS, case, recorded_in, right_engine

NUMBERS = range(1, 11)


def test_the_right_engine_has_nothing_wrong():
    it = right_engine("virtual")
    assert (it.wrong, it.races.clean, it.misfits) == ({}, True, ())
    assert it.report.gpu_active > 0.95


# wrong tokens, races, slow
SEEN = {
    0: (False, True, False),
    1: (True, True, False),
    2: (True, True, False),
    3: (True, True, False),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, False, False),
    7: (True, False, False),
    8: (False, False, True),
    9: (False, False, True),
    10: (False, False, True),
}


@pytest.mark.parametrize("number", SEEN)
def test_each_defect_is_seen_by_its_instruments_and_by_no_other(number):
    it = case(number)
    slow = it.report.gpu_active < 0.9 * right_engine("virtual").report.gpu_active
    assert (bool(it.wrong), bool(it.races.races), slow) == SEEN[number]
    assert it.races.notices == ()


def test_two_defects_can_do_the_same_damage():
    assert case(2).run.tokens == case(3).run.tokens


def test_an_engine_that_waits_too_much_is_no_faster_than_in_turns():
    turns = 2 * 155 + 300  # us: host and kernels one after the other, at least
    assert all(case(number).report.ns_per_step / 1000 > 0.7 * turns for number in (8, 9, 10))
    assert right_engine("virtual").report.ns_per_step / 1000 < 0.6 * turns


def test_only_random_requests_suffer_from_a_key_that_forgets_them():
    assert sorted(case(6).wrong) == [2, 5]
    assert {needed for _, _, needed in case(6).misfits} <= {
        f"graph[{slot},{rows},random{more}]" for slot in "AB" for rows in (1, 2, 4) for more in ("", ",logprobs")
    }


def test_tokens_are_dots_where_they_are_right():
    lines = case(6).tokens().splitlines()
    assert [line.split()[1] for line in lines] == [str(number) for number in range(len(PROMPTS))]
    assert set(lines[0].split()[2:]) == {"."}
    assert "(random)" in lines[2] and set(lines[2].split()[3:]) != {"."}


def test_waits_name_the_step_of_the_record():
    assert "the host waits for d2h_done[A], recorded in step 12" in right_engine("virtual").waits(12)
    assert "the host waits for d2h_done[A], recorded in step 13" in case(9).waits(12)
    assert "d2h waits for compute_done[B], recorded in step 11" in case(3).waits(12)
    assert "the host waits for the copy `download` of step 12 (it blocks)" in case(10).waits(12)
    assert "compute_done[A], never recorded" not in case(1).waits(0)
    assert "d2h waits for compute_done[B], never recorded" in case(3).waits(0)


def test_rows_show_the_stray_padding_and_the_wrong_row():
    assert "row 3  padding            at  0 -> block 10 (request 3)" in case(7).rows(9)
    assert "row 3  padding            at  0 -> block 48 (trash)" in right_engine("virtual").rows(9)
    assert "request 3          at 12 -> block 14 (request 3)  token: row 2 of step 8 (request 2)" in case(5).rows(9)
    assert case(6).rows(9).startswith("step 9, slot B, replays graph[B,4]\n")
    assert right_engine("virtual").rows(9).startswith("step 9, slot B, replays graph[B,4,random]\n")
    assert right_engine("virtual").rows(0).startswith("step 0, slot A, kernels launched one by one\n")


@pytest.mark.parametrize("step", [-1, 26, 2.0, True])
def test_a_step_that_is_not_there_is_refused(step):
    for look in (case(1).rows, case(1).waits):
        with pytest.raises(InvalidArgument, match="0 to 25"):
            look(step)


def test_a_race_is_told_without_labkits_own_lines():
    text = case(2).race()
    assert text.startswith(
        "read after write (26 times): `download` on d2h reads outputs_dev[A] bytes [0, 32) (step 0)\n"
    )
    assert "only when d2h has already waited\n" in text
    assert ".py" in str(case(2).races) and ".py" not in text


@pytest.mark.parametrize(("number", "says"), [(4, "1 to 3"), (0, "1 to 3"), (True, "1 to 3")])
def test_a_race_that_is_not_there_is_refused(number, says):
    with pytest.raises(InvalidArgument, match=says):
        case(2).race(number)
    with pytest.raises(InvalidArgument, match="no races"):
        case(5).race()


@pytest.mark.parametrize("number", [-1, 11, True, "3"])
def test_a_case_that_is_not_there_is_refused(number):
    with pytest.raises(InvalidArgument, match="0 to 10"):
        case(number)


def test_a_case_is_described_by_the_three_instruments():
    text = repr(case(4))
    assert text.startswith('Case 4: All tests are green\n  "Right tokens, full speed')
    assert "  tokens   0 of 6 requests wrong\n  races    1\n  time     GPU active 98%" in text
    assert "6 of 6 requests wrong, request 0 from its token 0 on" in repr(case(1))


def test_a_wait_for_nothing_has_no_step():
    trace = case(3).trace
    wait = next(span for span in trace.of_kind("wait") if span.stream == "d2h")
    assert recorded_in(trace, wait) is None
