"""Predictions beside measurements."""

from __future__ import annotations

from labkit.lessons.support.beside import beside


def test_a_line_for_each_prediction_that_was_measured():
    text = beside({"B starts": 0, "the host": None, "not measured": 3}, {"the host": 5.0, "B starts": 30.5})
    assert text == "B starts  you said 0 us, it was 30.5 us\nthe host  you said nothing, it was 5 us"


def test_keys_of_several_parts_and_answers_in_words():
    assert beside({("H2D", 64): "wrong"}, {("H2D", 64): "right"}) == "H2D, 64  you said wrong, it was right"
    assert beside({"same": True}, {"same": False}) == "same  you said True, it was False"


def test_nothing_to_compare():
    assert beside({}, {"a": 1}) == ""
