"""Lesson 10: every plausible wrong repair gets the sentence that says what is wrong with it."""

from __future__ import annotations

import pytest

from labkit.lessons import l10_detective as lesson


def putting(name, part):
    return lambda parts: setattr(parts, name, part)


WRONG = [
    (1, "before_read", lambda st, slot: slot.compute_done.synchronize(), "wait until `download` on d2h"),
    (1, "before_read", lambda st, slot: st.d2h.synchronize(), "in turns again"),
    (1, "before_read", lambda st, slot: slot.d2h_done.query(), "The same fault as before. "),
    (1, "before_read", lambda slot: slot.d2h_done.synchronize(), "The engine broke down with your part."),
    (2, "before_download", lambda st, slot: st.compute.synchronize(), "in turns again"),
    (2, "before_compute", lambda st, slot: st.compute.wait_event(slot.h2d_done), "wait until `sample` on compute"),
    (2, "computed", lambda st, slot: slot.compute_done.record(st.h2d), "only when d2h has already waited"),
    (3, "before_download", lambda st, slot: st.d2h.wait_event(slot.h2d_done), "wait until `sample` on compute"),
    (3, "before_download", lambda st, slot: st.compute.wait_event(slot.compute_done), "wait until `sample` on compute"),
    (3, "before_download", lambda st, slot: slot.compute_done.synchronize(), "in turns again"),
    (4, "before_fill", lambda st, slot: slot.h2d_done.synchronize(), "only when the host has already waited"),
    (4, "before_fill", lambda st, slot: slot.previous.d2h_done.synchronize(), "in turns again"),
    (4, "host_place", lambda what: "pageable", "in turns again"),
    (5, "carry_row", lambda request, row: -1, "the data is wrong, first in request 0 at its token 1"),
    (5, "carry_row", lambda request, row: row + 1, "The engine broke down with your part."),
    (5, "carry_row", lambda request, row: min(row + 1, 3), "the data is wrong"),
    (6, "graph_key", lambda slot, rows, random, logprobs: (slot, rows, random), "it needs graph[B,4,random,logprobs]"),
    (6, "graph_key", lambda slot, rows, random, logprobs: (slot, random, logprobs), "captured for something else"),
    (6, "graph_key", lambda slot, rows, random, logprobs: (rows, random, logprobs), "it needs graph[B,"),
    (6, "graph_key", lambda slot, rows, random, logprobs: object(), "captured anew instead of replayed"),
    (6, "graph_key", lambda slot, rows, random, logprobs: [slot, rows], "The engine broke down with your part."),
    (7, "padding_place", lambda sizes, row: 0, "row 3 is padding and writes into block 0"),
    (7, "padding_place", lambda sizes, row: sizes.trash_block, "is padding and writes into block 12"),
    (7, "padding_place", lambda sizes, row: -1, "The engine broke down with your part."),
    (8, "before_download", lambda st, slot: None, "wait until `sample` on compute"),
    (8, "before_download", lambda st, slot: st.compute.synchronize(), "The same fault as before. "),
    (9, "before_read", lambda st, slot: None, "wait until `download` on d2h"),
    (9, "event_owner", lambda what, slot: "B", "in turns again"),
    (9, "before_read", lambda st, slot: slot.compute_done.synchronize(), "wait until `download` on d2h"),
    (10, "host_place", lambda what: "pinned" if what == "inputs_host" else "pageable", "in turns again"),
    (10, "host_place", lambda what: "device", "The engine broke down with your part."),
    (10, "before_read", lambda st, slot: None, "in turns again"),
]


@pytest.mark.parametrize(("number", "name", "part", "says"), WRONG)
def test_a_wrong_repair_is_told_why(number, name, part, says):
    result = getattr(lesson, f"case_{number}").check(putting(name, part))
    assert not result.passed
    assert says in result.says, result
    assert result.yours and result.expected


def test_other_right_repairs_pass_too():
    assert lesson.case_4.check(putting("before_fill", lambda st, slot: st.h2d.synchronize()))
    assert lesson.case_9.check(putting("event_owner", lambda what, slot: {"A": "B", "B": "A"}[slot]))
    assert lesson.case_7.check(putting("padding_place", lambda sizes, row: sizes.trash_block * sizes.block_size))


def test_the_worked_case_is_mended_by_its_wait():
    repair = putting("before_compute", lambda st, slot: st.compute.wait_event(slot.h2d_done))
    assert lesson.mend(repair).passed
    assert not lesson.mend(lambda parts: None).passed


def test_the_score_of_a_repair_is_its_host_waits():
    own_buffer, wait = lesson.case_4.solutions
    assert (lesson.case_4.score(own_buffer).value, lesson.case_4.score(wait).value) == (26, 52)
