"""``labkit races`` and the races in ``labkit ladder``."""

from __future__ import annotations

import json

import pytest

from labkit.cli import main
from labkit.engine.ordering import WAITS

SMALL = ["--requests", "3", "--prompt-tokens", "5", "--max-new-tokens", "5"]


def races(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["races", *SMALL, *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_waits_are_listed(capsys):
    assert main(["races", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(WAITS)


def test_a_right_rung(capsys):
    found = races(capsys, "--rung", "5")
    assert found["races"] == found["redundant"] == found["notices"] == []
    assert found["tokens_right"] is True


def test_a_dropped_wait(capsys):
    found = races(capsys, "--rung", "5", "--drop", "d2h_waits_compute")
    assert found["tokens_right"] is False
    race = found["races"][0]
    assert (race["kind"], race["buffer"]) == ("read after write", "outputs_dev[A]")
    assert (race["first"]["operation"], race["second"]["operation"]) == ("sample", "download")
    assert race["missing_edge"] == "record after `sample` on compute; d2h waits on it before `download` starts"
    assert race["fix"] == "d2h.wait_event(compute_done) before `download`"
    assert found["repair"] == [race["fix"]]


def test_two_dropped_waits_need_two_fixes(capsys):
    found = races(capsys, "--rung", "2", "--drop", WAITS[0], "--drop", WAITS[1])
    assert len(found["repair"]) == 2


def test_switches_may_be_changed(capsys):
    found = races(capsys, "--rung", "lookahead", "-s", "double_buffering=true")
    assert found["races"] == []
    assert found["tokens_right"] is False
    assert "placeholder" in found["why"]


def test_waits_that_order_nothing_new_are_redundant(capsys):
    """Events without streams: one stream is in order, and its copies block."""
    found = races(capsys, "--rung", "0", "-s", "events=true")
    assert found["redundant"] == ["default_waits_h2d", "default_waits_compute", "host_waits_d2h"]
    assert found["needed_if_dropped"] == {name: [] for name in found["redundant"]}


def test_as_text(capsys):
    assert main(["races", *SMALL, "--rung", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("7 races")
    assert "The tokens are WRONG." in text
    assert "Wrong without events" in text


def test_an_unknown_wait_is_one_line_on_stderr(capsys):
    assert main(["races", *SMALL, "--rung", "0", "--drop", "gpu_waits_for_godot"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "gpu_waits_for_godot" in error and WAITS[0] in error


def test_the_ladder_counts_the_races_of_each_rung(capsys):
    assert main(["ladder", *SMALL, "--json"]) == 0
    rungs = json.loads(capsys.readouterr().out)["rungs"]
    assert [rung["races"] for rung in rungs] == [0, 7, 0, 3, 0, 0, 0]
    assert [rung["right"] for rung in rungs] == [True, False, True, False, False, True, True]
    assert all(rung["races"] or "placeholder" in rung["why"] for rung in rungs if not rung["right"])
