"""Mechanisms, rungs, and what is said about them. That it comes true is tested in tests/engine/test_wrong_rungs.py."""

from dataclasses import FrozenInstanceError, fields
from itertools import product

import pytest

from labkit.errors import InvalidSwitches
from labkit.switches import BEYOND, MECHANISMS, RUNG_NAMES, SWITCHES, Switches, explain, ladder


def test_each_rung_adds_one_mechanism_in_order():
    for number, name in enumerate(RUNG_NAMES):
        assert ladder(number) == ladder(name)
        assert ladder(number).on == MECHANISMS[:number]
    assert RUNG_NAMES[1:] == MECHANISMS


@pytest.mark.parametrize("rung", [-1, 7, True, 1.0, None, "graphs", "", [5]])
def test_an_unknown_rung_lists_the_known_ones(rung):
    with pytest.raises(InvalidSwitches, match=r"the rungs are 0 default_stream, 1 streams, .* 6 cuda_graphs"):
        ladder(rung)


def test_switches_are_frozen_and_take_only_booleans():
    with pytest.raises(FrozenInstanceError):
        Switches().streams = True
    for value in (1, None, "true"):
        with pytest.raises(InvalidSwitches, match="a switch is True or False"):
            Switches(events=value)
    with pytest.raises(TypeError):
        Switches(True)


def test_with_changes_a_copy_and_knows_its_names():
    base = ladder(2)
    assert base.with_(streams=False).on == ("events",)
    assert base == ladder(2)
    with pytest.raises(InvalidSwitches, match="graphs=True: the mechanisms are streams, events"):
        base.with_(graphs=True)


def test_the_ladder_is_right_where_the_design_says_so():
    assert [explain(ladder(number)).right for number in range(7)] == [True, False, True, False, False, True, True]


def test_what_is_missing_is_named_on_the_wrong_rungs():
    missing = [[f.mechanism for f in explain(ladder(n)).findings if f.kind == "wrong"] for n in (1, 3, 4)]
    assert missing == [["events"], ["double_buffering", "carry_over"], ["carry_over"]]


def test_adding_what_is_missing_makes_any_combination_right():
    for on in product((False, True), repeat=len(MECHANISMS)):
        switches = Switches(**dict(zip(MECHANISMS, on, strict=True)))
        found = explain(switches)
        wrong = {finding.mechanism for finding in found.findings if finding.kind == "wrong"}
        assert found.right == (not wrong)
        assert found.why.startswith("Right: " if found.right else f"Wrong without {found.findings[0].mechanism}")
        assert explain(switches.with_(**dict.fromkeys(wrong, True))).right
        assert not any(getattr(switches, mechanism) for mechanism in wrong), "what is missing is off"


def test_an_unused_mechanism_changes_nothing_when_it_is_taken_away():
    for on in product((False, True), repeat=len(MECHANISMS)):
        switches = Switches(**dict(zip(MECHANISMS, on, strict=True)))
        for finding in explain(switches).findings:
            if finding.kind == "unused":
                assert getattr(switches, finding.mechanism)
                assert explain(switches.with_(**{finding.mechanism: False})).right == explain(switches).right


def test_an_explanation_reads_as_text():
    text = str(explain(ladder("lookahead")))
    assert text.splitlines()[0].startswith("Wrong without double_buffering and carry_over: With one slot")
    assert text.splitlines()[1:] == ["- " + explain(ladder("lookahead")).findings[1].text], "nothing is said twice"


def test_a_mechanism_beyond_the_ladder_is_on_no_rung_and_changes_no_verdict():
    assert (*MECHANISMS, *BEYOND) == SWITCHES
    for rung in range(len(RUNG_NAMES)):
        plain, compiled = ladder(rung), ladder(rung).with_(compiled=True)
        assert not plain.compiled
        assert compiled.on == (*plain.on, "compiled")
        assert explain(compiled).right == explain(plain).right
        assert explain(compiled).why == explain(plain).why
        added = [finding for finding in explain(compiled).findings if finding not in explain(plain).findings]
        assert [(finding.kind, finding.mechanism) for finding in added] == [("note", "compiled")]


def test_every_mechanism_is_documented():
    assert all(f"\n    {field.name} " in Switches.__doc__ for field in fields(Switches))
