from __future__ import annotations

import pytest

from labkit.viz.panels import StepThrough
from labkit.viz.panels.step_through import code_html
from labkit.viz.panels.walk import EXECUTION, Code
from tests.unit.viz.panels.test_controls import order


@pytest.fixture
def panel() -> StepThrough:
    return StepThrough()


def framed(panel: StepThrough) -> tuple[float, float]:
    cursor = next(trace for trace in panel.plot.shown["data"] if trace.get("name") == "this moment")
    return cursor["x"][2], cursor["x"][3]


def assert_shows(panel: StepThrough) -> None:
    span = panel.state.moment
    assert panel.place.value == panel.state.place + 1
    assert framed(panel) == (span.start_ns / 1000, span.end_ns / 1000)
    assert f"EngineCore.{span.phase}" in panel.phase_code.value
    line = next(line for line in panel.loop_code.value.splitlines() if "▶" in line)
    assert f"engine.{span.phase}(" in line


def test_the_buttons_move_the_frame_and_the_code(panel: StepThrough) -> None:
    for control, place in (
        (panel.next, 1),
        (panel.next, 2),
        (panel.back, 1),
        (panel.next_step, 9),
        (panel.next_step, 20),
    ):
        control.click()
        assert panel.state.place == place
        assert_shows(panel)


def test_the_slider_goes_anywhere(panel: StepThrough) -> None:
    panel.place.value = panel.place.max
    assert panel.state.moment == panel.state.moments[-1]
    assert_shows(panel)


def test_the_order_keeps_the_moment(panel: StepThrough) -> None:
    panel.place.value = 9
    moment = panel.state.moment
    panel.order.value = EXECUTION
    assert panel.state.moment == moment
    assert_shows(panel)
    panel.next.click()
    assert_shows(panel)


def test_every_moment_of_the_synchronous_engine_too() -> None:
    panel = StepThrough("default_stream")
    while panel.state.place < len(panel.state.moments) - 1:
        panel.next.click()
        assert_shows(panel)


def test_every_control_has_a_description_in_reading_order(panel: StepThrough) -> None:
    descriptions = [leaf.description for leaf in order(panel) if getattr(leaf, "description", "")]
    assert descriptions == ["Order", "Back", "Next", "Next step", "Moment"]


def test_code_is_escaped_and_the_meant_line_marked() -> None:
    assert code_html(Code("a", ("    if a < b:", "        c()"), 1)).endswith(
        "<pre>  if a &lt; b:\n<b>▶     c()</b></pre>"
    )


def test_nothing_is_printed(panel: StepThrough, capsys: pytest.CaptureFixture[str]) -> None:
    panel.next.click()
    assert capsys.readouterr() == ("", "")
