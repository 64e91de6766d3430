from __future__ import annotations

from itertools import product

import pytest

from labkit import Switches
from labkit.switches import MECHANISMS, RUNG_NAMES, ladder
from labkit.viz.panels.board import Setup
from labkit.viz.panels.controls import Controls


def order(widget: object) -> list[object]:
    """Leaves in the order of the page, which is the order of the Tab key."""
    children = getattr(widget, "children", ())
    return [leaf for child in children for leaf in order(child)] if children else [widget]


def test_every_control_has_a_description_and_the_keyboard_goes_in_reading_order() -> None:
    controls = Controls(Setup())
    assert order(controls) == list(controls.all)
    descriptions = [control.description for control in controls.all]
    assert all(descriptions) and len(set(descriptions)) == len(descriptions)
    assert descriptions[2:8] == list(MECHANISMS)
    assert all(control.tooltip for control in controls.switches.values())


@pytest.mark.parametrize("on", list(product((False, True), repeat=6)), ids=lambda on: "".join(map(str, map(int, on))))
def test_what_is_shown_is_what_is_read(on: tuple[bool, ...]) -> None:
    setup = Setup(
        switches=Switches(**dict(zip(MECHANISMS, on, strict=True))),
        batch=16,
        token_budget=32,
        host_speed=0.5,
        profile="h200-8b",
    )
    controls = Controls(Setup())
    controls.show(setup)
    assert controls.setup == setup
    assert controls.rung.value == setup.rung


@pytest.mark.parametrize("rung", range(len(RUNG_NAMES)))
def test_the_switches_follow_the_rung(rung: int) -> None:
    controls = Controls(Setup())
    controls.rung.value = rung
    controls.take_rung()
    assert controls.setup.switches == ladder(rung)


def test_the_entry_for_no_rung_changes_nothing() -> None:
    controls = Controls(Setup(switches=ladder(4)))
    controls.rung.value = -1
    controls.take_rung()
    assert controls.setup.switches == ladder(4)


def test_setting_controls_is_told_apart_from_a_learner_doing_it() -> None:
    controls = Controls(Setup())
    seen: list[bool] = []
    controls.switches["events"].observe(lambda change: seen.append(controls.settling), "value")
    controls.show(Setup(switches=ladder(2)))
    controls.switches["events"].value = False
    assert seen == [True, False]
