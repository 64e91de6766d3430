"""The panels in a real JupyterLab: what the page shows after each flip is what the engine says."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from labkit.analysis.units import share_text, time_text
from labkit.switches import MECHANISMS
from labkit.viz import timeline
from labkit.viz.panels import words
from labkit.viz.panels.board import Board, Outcome
from tests.browser.lab import (
    CLASHES,
    Seen,
    Server,
    check_no_share_button,
    chromium,
    keep,
    needs_browser,
    needs_install,
    run_all,
)

NOTEBOOK = "panels.ipynb"
ANSWER_MS = 20_000  # of a busy machine; how long it takes is measured elsewhere

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not on PATH"),
    needs_browser,
    needs_install,
]


@pytest.fixture(scope="module")
def opened(server: Server) -> Iterator[tuple[Any, Seen]]:
    """The notebook, run; its panels in order are Switchboard, Live, StepThrough, Prediction, and Live once more."""
    with chromium(height=6600) as (page, seen):
        page.set_default_timeout(ANSWER_MS)
        run_all(page, server, NOTEBOOK)
        page.locator(".labkit-panel .js-plotly-plot .main-svg").nth(4).wait_for(timeout=60_000)
        yield page, seen


def panel(page: Any, number: int) -> Any:
    return page.locator(".widget-vbox.labkit-panel").nth(number)


def wait_for_text(page: Any, number: int, selector: str, text: str) -> None:
    """Until an element of a panel, or the panel, holds this text."""
    look = """([number, selector, text]) => {
        const panel = document.querySelectorAll('.widget-vbox.labkit-panel')[number];
        const node = selector ? panel?.querySelector(selector) : panel;  // a cell that runs again has none for a while
        return Boolean(node) && node.textContent.replace(/\\s+/g, ' ').includes(text);
    }"""
    page.wait_for_function(look, arg=[number, selector, text], timeout=ANSWER_MS)


BARS = """panel => panel.querySelector('.js-plotly-plot')._fullData
    .filter(trace => trace.type === 'bar' && trace.base && trace.name !== 'run before')
    .flatMap(trace => Array.from(trace.base).map((base, at) => [trace.name, base, trace.x[at]]))"""
LINES = """panel => Object.fromEntries(panel.querySelector('.js-plotly-plot')._fullData
    .filter(trace => trace.type === 'scatter' && trace.x)
    .map(trace => [trace.name, Array.from(trace.x)]))"""


def bars_of(outcome: Outcome) -> list[tuple[Any, ...]]:
    figure = timeline(outcome.trace)
    drawn = [trace for trace in figure.data if trace.type == "bar" and trace.base]
    return sorted((trace.name, *bar) for trace in drawn for bar in zip(trace.base, trace.x, strict=True))


def plain(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def check_switchboard(page: Any, board: Board) -> None:
    """Verdict, explanation, numbers, bars and races are those of the engine's run."""
    outcome = board.outcome
    verdict = plain(words.verdict(outcome))
    wait_for_text(page, 0, ".verdict", verdict.split(" ⚠")[0])
    shown = panel(page, 0)
    assert ("⚠ UNSAFE" in shown.locator(".verdict").inner_text()) == (not outcome.explanation.right)
    report = outcome.report
    for text in (outcome.explanation.why, share_text(report.gpu_active), time_text(report.window_ns)):
        wait_for_text(page, 0, "", text)
    page.wait_for_function(
        f"end => ({LINES})(document.querySelector('.widget-vbox.labkit-panel'))['end of this run']?.[0] === end",
        arg=outcome.trace.duration_ns / 1000,
    )
    assert sorted(map(tuple, shown.evaluate(BARS))) == bars_of(outcome)
    if board.previous is not None:
        assert shown.evaluate(LINES)["end of the run before"][0] == board.previous.trace.duration_ns / 1000
    page.wait_for_function(f"() => !({CLASHES})(document.querySelector('.labkit-panel .js-plotly-plot')).length")
    for fix in outcome.race_report.repair:
        wait_for_text(page, 0, "", plain(str(fix)))


def test_the_switchboard_answers_each_flip_as_the_engine_does(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    board = Board()
    check_switchboard(page, board)
    for name in MECHANISMS:
        before = board.outcome
        panel(page, 0).get_by_label(name, exact=True).click()
        after = board.flip(name)
        assert bars_of(after) != bars_of(before)
        check_switchboard(page, board)
        keep(panel(page, 0), f"switchboard_{name}")
    panel(page, 0).get_by_label("Rung").select_option(label="3 lookahead")
    board.choose_rung(3)
    check_switchboard(page, board)
    assert not panel(page, 0).get_by_label("carry_over").is_checked()


def test_the_keyboard_goes_through_the_switchboard_in_reading_order(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    places = """panel => [...panel.querySelectorAll('select, input, [tabindex="0"], button')]
        .filter(node => !node.closest('.js-plotly-plot') && node.tabIndex >= 0)
        .map(node => { const box = node.getBoundingClientRect(); return [Math.round(box.top / 20), box.left]; })"""
    found = panel(page, 0).evaluate(places)
    assert len(found) >= 11
    assert found == sorted(found)


def steps_of(page: Any, number: int) -> int:
    return int(panel(page, number).locator("th:text-is('steps') + td").inner_text())


def click(page: Any, number: int, button: str) -> None:
    panel(page, number).get_by_role("button", name=button, exact=True).click()


MOVED_ON = """([number, steps]) => {
    const panel = document.querySelectorAll('.widget-vbox.labkit-panel')[number];
    return Number(panel.innerText.match(/steps\\s+(\\d+)/)[1]) > steps;
}"""


AXIS_MOVED = """began => document.querySelectorAll('.widget-vbox.labkit-panel')[1]
    .querySelector('.js-plotly-plot').layout.xaxis.range[1] > began"""
FLIP_DRAWN = """() => {
    const plot = document.querySelectorAll('.widget-vbox.labkit-panel')[1].querySelector('.js-plotly-plot');
    const [low, high] = plot.layout.xaxis.range, x = plot._fullData.find(trace => trace.name === 'flip')?.x ?? [];
    return Array.from(x).slice(-3)[0] >= low && Array.from(x).slice(-3)[0] <= high
        && Array.from(plot._fullData.find(trace => trace.name === 'flip').text).slice(-2)[0].includes('events on');
}"""


def axis_end(page: Any) -> float:
    end = panel(page, 1).evaluate("panel => panel.querySelector('.js-plotly-plot').layout.xaxis.range[1]")
    return float(end)


def test_live_runs_flips_pauses_steps_and_stops(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    assert (steps_of(page, 1), steps_of(page, 4)) == (0, 0)
    click(page, 1, "Run")
    for shown in (1, 4):  # the same panel, shown twice
        page.wait_for_function(MOVED_ON, arg=[shown, 4])
    wait_for_text(page, 1, "p", "running")
    began = axis_end(page)
    panel(page, 1).get_by_label("events", exact=True).click()
    wait_for_text(page, 1, ".verdict", "⚠ UNSAFE")
    wait_for_text(page, 1, ".verdict", "WRONG")
    page.wait_for_function(AXIS_MOVED, arg=began)
    click(page, 1, "Pause")
    wait_for_text(page, 1, "p", "paused")
    stood = steps_of(page, 1)
    page.wait_for_timeout(700)
    assert steps_of(page, 1) == stood
    keep(panel(page, 1), "live_wrong")
    panel(page, 1).get_by_label("events", exact=True).click()
    wait_for_text(page, 1, "p", "at the next step: events")
    click(page, 1, "One step")
    wait_for_text(page, 1, "p", "paused. Right")
    assert steps_of(page, 1) == 1, "counted since the flip"
    page.wait_for_function(FLIP_DRAWN)  # on the part of the time axis that is in view
    keep(panel(page, 1), "live_mended")
    click(page, 1, "Stop")
    for shown in (1, 4):
        wait_for_text(page, shown, "p", "stopped")


def test_live_stops_when_its_cell_runs_again(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    click(page, 4, "Run")
    wait_for_text(page, 4, "p", "running")
    page.locator(".jp-WindowedPanel-outer").evaluate("node => { node.scrollTop = 0; }")  # cells out of view are hidden
    page.locator(".jp-CodeCell .jp-InputPrompt").nth(1).click()
    page.keyboard.press("Control+Enter")
    wait_for_text(page, 4, "p", "stopped")
    wait_for_text(page, 1, "p", "paused")


def test_a_run_moment_by_moment(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    for number in range(2, 7):
        click(page, 2, "Next")
        wait_for_text(page, 2, "[role=status]", f"Moment {number} of")
    wait_for_text(page, 2, "[role=status]", "The device runs forward on compute")
    wait_for_text(page, 2, "", "EngineCore.compute")
    keep(panel(page, 2), "step_through")


def test_a_prediction_is_stored_and_drawn_with_the_measurement(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    panel(page, 3).get_by_label("Your answer (%)").fill("10")
    click(page, 3, "Store my answer, then run")
    wait_for_text(page, 3, "[role=status]", "You said 10 %; measured: 2")
    assert panel(page, 3).get_by_label("Your answer (%)").is_disabled()
    keep(panel(page, 3), "prediction")


AS_WIDE_AS_THEIR_PANELS = """() => [...document.querySelectorAll('.labkit-panel .js-plotly-plot')].every(plot => {
    const drawn = plot.querySelector('.main-svg')?.getBoundingClientRect();
    return drawn && drawn.height > 100 && Math.abs(drawn.width - plot.parentElement.offsetWidth) <= 1;
})"""
DESCRIBED = """panel => [...panel.querySelectorAll('select, input, button, [role=slider]')]
    .filter(node => !node.closest('.js-plotly-plot'))
    .map(node => node.textContent.trim() || node.getAttribute('aria-label') || node.title
        || [...(node.labels ?? [])].map(label => label.textContent).join('').trim()
        || node.closest('.jupyter-widgets').querySelector('label')?.textContent.trim() || '')"""


def test_every_control_has_a_description(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    for number, least in ((0, 11), (1, 11), (2, 5), (3, 2)):
        described = panel(page, number).evaluate(DESCRIBED)
        assert len(described) >= least
        assert "" not in described, f"panel {number}"


def clashes(page: Any, plot: Any) -> list[str]:
    """What is cut or overlaps once the plot has come to rest: a last picture can arrive after the page's new width."""
    for _ in range(20):
        found: list[str] = plot.evaluate(CLASHES)
        if not found:
            break
        page.wait_for_timeout(500)
    return found


def test_on_a_projector_no_text_of_a_plot_is_cut_or_lies_over_another(opened: tuple[Any, Seen]) -> None:
    page, _ = opened
    click(page, 1, "Run")
    page.wait_for_function(MOVED_ON, arg=[1, 4])
    panel(page, 1).get_by_label("cuda_graphs", exact=True).click()
    wait_for_text(page, 1, "p", "running. Right")
    page.wait_for_function(MOVED_ON, arg=[1, 20])
    click(page, 1, "Pause")
    bad, heights = {}, defaultdict(set)
    for width in (1280, 1920):
        page.set_viewport_size({"width": width, "height": 6600})
        page.wait_for_function(AS_WIDE_AS_THEIR_PANELS, timeout=60_000)  # every plot is drawn again, in turn
        for number, name in enumerate(("switchboard", "live", "step_through", "prediction")):
            plot = panel(page, number).locator(".js-plotly-plot")
            heights[name].add(plot.bounding_box()["height"])
            bad[name, width] = clashes(page, plot)
            keep(panel(page, number), f"{name}_{width}")
    assert {name: found for name, found in bad.items() if found} == {}
    assert all(len(found) == 1 and min(found) > 200 for found in heights.values()), heights


def test_the_page_is_quiet_and_stays_at_home(opened: tuple[Any, Seen]) -> None:
    page, seen = opened
    errors = "[data-mime-type='application/vnd.jupyter.error'], [data-mime-type='application/vnd.jupyter.stderr']"
    assert page.locator(errors).all_inner_texts() == []
    check_no_share_button(page)
    assert seen.errors == []
    assert seen.hosts == {"127.0.0.1"}
