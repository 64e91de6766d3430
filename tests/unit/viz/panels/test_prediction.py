from __future__ import annotations

import pytest

from labkit.errors import InvalidArgument
from labkit.viz.panels import Prediction
from tests.unit.viz.panels.test_controls import order
from tests.unit.viz.panels.test_guess import Measure


def drawn(panel: Prediction) -> list[str]:
    return sorted(trace["name"] for trace in panel.plot.shown["data"])


def test_one_click_stores_runs_and_draws_both() -> None:
    measure = Measure()
    panel = Prediction("How much?", measure)
    assert (drawn(panel), panel.sentence.value.count("Predict first")) == ([], 1)
    panel.answer.value = 10
    assert measure.calls == 0
    panel.go.click()
    assert (panel.state.answer, panel.state.measured) == (10, 24.2)
    assert drawn(panel) == ["measured", "your answer"]
    assert panel.answer.disabled and panel.go.disabled
    assert "You said 10 %; measured: 24.2 %" in panel.sentence.value


def test_the_answer_is_stored_when_the_run_begins() -> None:
    panel = Prediction("How much?", lambda: panel.state.answer * 2)
    panel.answer.value = 21
    panel.go.click()
    assert panel.state.measured == 42


def test_a_failure_is_shown_and_the_run_can_be_repeated() -> None:
    results = iter([1 / 2, 3.0])
    fails = iter([True, False])

    def measure() -> float:
        if next(fails):
            raise RuntimeError("no <luck>")
        return next(results)

    panel = Prediction("How much?", measure)
    panel.go.click()
    assert "RuntimeError: no &lt;luck&gt;" in panel.sentence.value
    assert panel.answer.disabled and not panel.go.disabled
    panel.go.click()
    assert panel.state.measured == 0.5


def test_every_control_has_a_description_and_the_question_is_escaped() -> None:
    panel = Prediction("a < b?", Measure())
    assert [leaf.description for leaf in order(panel) if getattr(leaf, "description", "")] == [
        "Your answer (%)",
        "Store my answer, then run",
    ]
    assert any("a &lt; b?" in str(getattr(child, "value", "")) for child in panel.children)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="below high"):
        Prediction("How much?", Measure(), low=2, high=1)
