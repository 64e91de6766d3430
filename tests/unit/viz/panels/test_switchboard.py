from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from typing import Any

import pytest

from labkit import ladder
from labkit.errors import InvalidArgument
from labkit.switches import MECHANISMS
from labkit.viz.figures import timeline
from labkit.viz.panels import Switchboard, words
from labkit.viz.panels.ghost import GHOST


@pytest.fixture(scope="module")
def board() -> Switchboard:
    return Switchboard()


def bars(drawn: dict[str, Any]) -> set[tuple[str, float, float]]:
    """(kind, start, duration) of every bar, the ghost's apart."""
    shown = [trace for trace in drawn["data"] if trace["type"] == "bar" and trace.get("base")]
    return {(t["name"], *bar) for t in shown if t["name"] != GHOST for bar in zip(t["base"], t["x"], strict=True)}


def assert_shows(board: Switchboard) -> None:
    """Everything on the panel is of the run of the present setup."""
    outcome = board.state.outcome
    assert board.verdict.value == words.verdict(outcome)
    assert board.explanation.value == words.explanation(outcome)
    assert board.numbers.value == words.numbers(outcome, board.state.previous)
    assert board.tokens.value == words.tokens(outcome)
    assert board.races.value == words.races(outcome)
    assert bars(board.plot.shown) == bars(timeline(outcome.trace).to_plotly_json())
    assert board.controls.setup == outcome.setup
    assert board.controls.rung.value == outcome.setup.rung


def test_all_64_combinations_one_flip_after_the_other(board: Switchboard) -> None:
    """In the order of a Gray code: each flip of one checkbox is a new combination."""
    seen = {board.state.setup.switches}
    for number in range(1, 64):
        box = board.controls.switches[MECHANISMS[(number & -number).bit_length() - 1]]
        box.value = not box.value
        assert_shows(board)
        seen.add(board.state.setup.switches)
    assert len(seen) == 64


@pytest.mark.parametrize("rung", [6, 1, 0])
def test_a_rung_sets_the_switches(board: Switchboard, rung: int) -> None:
    board.controls.rung.value = rung
    assert board.state.setup.switches == ladder(rung)
    assert_shows(board)


@pytest.mark.parametrize(
    ("name", "value"), [("batch", 2), ("token_budget", 16), ("host_speed", 4.0), ("profile", "toy-u")]
)
def test_the_other_controls(board: Switchboard, name: str, value: object) -> None:
    getattr(board.controls, name).value = value
    assert getattr(board.state.setup, name) == value
    assert_shows(board)


def test_the_entry_for_no_rung_goes_back_to_the_rung_that_is_on() -> None:
    board = Switchboard("events")
    board.controls.rung.value = -1
    assert board.controls.rung.value == 2
    assert_shows(board)


def test_in_a_notebook_the_fixes_come_after_the_answer() -> None:
    async def flip() -> list[tuple[str, str]]:
        board = Switchboard()
        board.controls.switches["streams"].value = True
        at_once = board.races.value, board.plot.figure
        await asyncio.sleep(0.3)
        return [at_once, (board.races.value, board.plot.figure)]

    (at_once, unmarked), (later, marked) = asyncio.run(flip())
    assert "looking for" in at_once
    assert "All of them are gone with" in later
    assert len(json.loads(marked)["data"]) == len(json.loads(unmarked)["data"]) + 1, "the races are marked"


def test_a_failure_is_shown_in_the_panel(board: Switchboard, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**changes: object) -> None:
        raise RuntimeError("no <luck>")

    monkeypatch.setattr(board.state, "change", fail)
    box = board.controls.switches["events"]
    box.value = not box.value
    assert "RuntimeError: no &lt;luck&gt;" in board.verdict.value


def test_nothing_is_printed_and_the_second_display_is_the_same_widget(capsys: pytest.CaptureFixture[str]) -> None:
    board = Switchboard(5, batch=4)
    first, second = board._repr_mimebundle_(), board._repr_mimebundle_()
    view = "application/vnd.jupyter.widget-view+json"
    assert first[view]["model_id"] == second[view]["model_id"] == board.model_id
    board.controls.switches["cuda_graphs"].value = True
    assert capsys.readouterr() == ("", "")


def test_what_is_not_offered_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="batch=5"):
        Switchboard(batch=5)


@pytest.mark.parametrize("package", ["ipywidgets", "anywidget"])
def test_without_widgets_the_panels_name_the_extra_and_the_figures_work(package: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
import labkit.viz
from labkit.errors import MissingExtra
for name in ("Live", "Prediction", "StepThrough", "Switchboard"):
    try:
        getattr(labkit.viz, name)
    except MissingExtra as error:
        print(error)
from labkit.viz.panels.board import Board
print(len(labkit.viz.timeline(Board().outcome.trace).data) > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *said, drawn = done.stdout.splitlines()
    assert said == [f"{package} is not installed: pip install 'labkit[lab]'"] * 4
    assert drawn == "True"


def test_the_panels_are_public_names_of_viz() -> None:
    import labkit.viz

    assert {"Live", "Prediction", "StepThrough", "Switchboard"} <= set(labkit.viz.__all__)
    assert labkit.viz.Switchboard is Switchboard
    with pytest.raises(AttributeError, match=re.escape("no attribute 'Switchbord'")):
        labkit.viz.Switchbord  # noqa: B018
