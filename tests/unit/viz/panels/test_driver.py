from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from labkit.viz.panels import driver
from labkit.viz.panels.driver import Driver, current_cell, when_cell_runs_again


class Counter:
    def __init__(self, fails_at: int = -1) -> None:
        self.beats, self.fails_at, self.errors = 0, fails_at, []
        self.driver = Driver(self.beat, self.errors.append)

    def beat(self) -> float:
        self.beats += 1
        if self.beats == self.fails_at:
            raise ValueError("a beat")
        return 0.0


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_it_beats_until_it_is_stopped_and_others_run_meanwhile() -> None:
    async def scene() -> tuple[int, int, bool]:
        counter = Counter()
        counter.driver.start()
        await until(lambda: counter.beats >= 5)  # this coroutine is answered between the beats
        counter.driver.stop()
        stopped_at = counter.beats
        await asyncio.sleep(0.15)
        return stopped_at, counter.beats, counter.driver.going

    stopped_at, later, going = asyncio.run(scene())
    assert stopped_at == later and not going


def test_starting_twice_is_starting_once() -> None:
    async def scene() -> int:
        counter = Counter()
        counter.driver.start()
        counter.driver.start()
        tasks = len(asyncio.all_tasks()) - 1
        counter.driver.stop()
        return tasks

    assert asyncio.run(scene()) == 1


def test_an_exception_ends_it_and_is_told() -> None:
    async def scene() -> Counter:
        counter = Counter(fails_at=3)
        counter.driver.start()
        await until(lambda: counter.errors)
        await asyncio.sleep(0.1)
        assert not counter.driver.going
        return counter

    counter = asyncio.run(scene())
    assert counter.beats == 3
    assert [str(error) for error in counter.errors] == ["a beat"]


def test_it_can_be_started_again() -> None:
    async def scene() -> int:
        counter = Counter()
        for goal in (2, 4):
            counter.driver.start()
            await until(lambda goal=goal: counter.beats >= goal)
            counter.driver.stop()
        return counter.beats

    assert asyncio.run(scene()) >= 4


def test_without_an_event_loop_it_cannot_start() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        Counter().driver.start()


def test_stopping_what_never_started_or_whose_loop_is_gone() -> None:
    counter = Counter()
    counter.driver.stop()

    async def scene() -> None:
        counter.driver.start()

    asyncio.run(scene())
    counter.driver.stop()
    assert not counter.driver.going


class Events:
    """IPython's event registry, as far as it is used."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def register(self, name: str, call: Any) -> None:
        assert name == "pre_run_cell"
        self.calls.append(call)

    def unregister(self, name: str, call: Any) -> None:
        self.calls.remove(call)

    def run(self, cell: str) -> None:
        for call in list(self.calls):
            call(SimpleNamespace(cell_id=cell))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Events:
    kernel = SimpleNamespace(get_parent=lambda: {"metadata": {"cellId": "this"}})
    shell = SimpleNamespace(kernel=kernel, events=Events())
    monkeypatch.setattr(driver, "_shell", lambda: shell)
    return shell.events


def test_a_cell_that_runs_again_is_noticed_once(notebook: Events) -> None:
    calls: list[int] = []
    assert current_cell() == "this"
    when_cell_runs_again(lambda: calls.append(1))
    notebook.run("another")
    assert calls == []
    notebook.run("this")
    notebook.run("this")
    assert calls == [1]
    assert notebook.calls == []


def test_it_can_be_taken_back_more_than_once(notebook: Events) -> None:
    forget = when_cell_runs_again(lambda: pytest.fail("called"))
    forget()
    forget()
    notebook.run("this")


def test_outside_a_notebook_there_is_no_cell() -> None:
    assert current_cell() == ""
    when_cell_runs_again(lambda: None)()
