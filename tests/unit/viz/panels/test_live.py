from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from labkit import ladder
from labkit.errors import EngineClosed
from labkit.switches import MECHANISMS
from labkit.viz.panels import Live, driver
from tests.unit.viz.panels.test_controls import order
from tests.unit.viz.panels.test_driver import Events, notebook  # noqa: F401


@pytest.fixture
def live() -> Iterator[Live]:
    made = Live(5)
    yield made
    made.close()


def scene(play: Callable[[Live], Awaitable[Any]], rung: int = 5) -> Any:
    """Play in an event loop, as in a notebook's kernel."""

    async def inside() -> Any:
        live = Live(rung)
        live.speed.value = 16
        try:
            return await play(live)
        finally:
            live.close()

    return asyncio.run(inside())


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_it_runs_by_itself_and_answers_meanwhile() -> None:
    async def play(live: Live) -> int:
        live.run.click()
        assert live.going
        answers = 0
        while live.state.steps < 6:
            await asyncio.sleep(0.01)
            answers += 1
        assert "running" in live.verdict.value
        return answers

    assert scene(play) >= 3


def test_pause_holds_and_run_goes_on() -> None:
    async def play(live: Live) -> None:
        live.run.click()
        await until(lambda: live.state.steps >= 2)
        live.pause.click()
        stood = live.state.steps
        await asyncio.sleep(0.4)
        assert (live.state.steps, live.going) == (stood, False)
        assert "paused" in live.verdict.value
        live.run.click()
        await until(lambda: live.state.steps > stood)

    scene(play)


def test_a_single_step_pauses_and_runs_one(live: Live) -> None:
    for number in (1, 2, 3):
        live.step.click()
        assert live.state.steps == number
    assert not live.going
    assert live.plot.shown["layout"]["xaxis"]["range"][1] == live.state.trace.end_ns / 1e6


def test_a_flip_waits_for_the_step_and_is_then_drawn(live: Live) -> None:
    live.step.click()
    live.switches["events"].value = False
    assert "at the next step: events" in live.verdict.value and "UNSAFE" not in live.verdict.value
    live.step.click()
    assert live.state.switches == ladder(5).with_(events=False)
    assert "UNSAFE" in live.verdict.value
    line = next(trace for trace in live.plot.shown["data"] if trace.get("name") == "flip")
    assert line["x"][0] == live.state.flips[0].start_ns / 1e6


def test_the_numbers_move(live: Live) -> None:
    live.state.advance(20)
    live.step.click()
    fast = live.numbers.value
    assert "99.0 %" in fast
    live.switches["lookahead"].value = False
    live.state.advance(20)
    live.step.click()
    assert live.numbers.value != fast


def test_stop_frees_the_engine_and_run_starts_a_new_one() -> None:
    async def play(live: Live) -> None:
        live.run.click()
        await until(lambda: live.state.steps >= 2)
        live.switches["cuda_graphs"].value = True
        live.end.click()
        old = live.state
        assert not live.going and "stopped" in live.verdict.value
        with pytest.raises(EngineClosed):
            old.advance()
        live.end.click()
        live.run.click()
        assert live.state is not old and live.state.switches == ladder(6)

    scene(play)


def test_an_exception_inside_is_shown_and_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(live: Live) -> None:
        def fail(steps: int) -> None:
            raise RuntimeError("no <luck>")

        monkeypatch.setattr(live.state, "advance", fail)
        live.run.click()
        await until(lambda: "no &lt;luck&gt;" in live.verdict.value)
        assert not live.going

    scene(play)


def test_closing_the_panel_stops_it() -> None:
    async def play(live: Live) -> None:
        live.run.click()
        await until(lambda: live.state.steps >= 1)
        live.close()
        assert not live.going
        with pytest.raises(EngineClosed):
            live.state.advance()
        live.close()

    scene(play)


def test_running_its_cell_again_stops_it(notebook: Events) -> None:  # noqa: F811
    async def play(live: Live) -> None:
        live.run.click()
        notebook.run("another")
        assert live.going
        notebook.run("this")
        assert not live.going and "stopped" in live.verdict.value

    assert driver.current_cell() == "this"
    scene(play)


def test_shown_twice_it_is_one_run_that_stops_when_the_last_view_is_gone() -> None:
    async def play(live: Live) -> None:
        view = "application/vnd.jupyter.widget-view+json"
        assert live._repr_mimebundle_()[view] == live._repr_mimebundle_()[view]
        live.run.click()
        live.run.click()
        assert len([task for task in asyncio.all_tasks() if not task.done()]) == 2, "this scene, and one driver"
        live._view_count = 2
        live._view_count = 1
        assert live.going
        live._view_count = 0
        assert not live.going and "stopped" in live.verdict.value

    scene(play)


def test_every_control_has_a_description_in_reading_order(live: Live) -> None:
    controls = [leaf for leaf in order(live) if hasattr(leaf, "description") and leaf.description]
    descriptions = [control.description for control in controls]
    assert descriptions == ["Run", "Pause", "One step", "Stop", "Steps per second", *MECHANISMS]
    assert all(control.tooltip for control in controls if control.description != "Steps per second")


def test_nothing_is_printed(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    live.step.click()
    live.end.click()
    assert capsys.readouterr() == ("", "")
