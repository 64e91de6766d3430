"""The garbage collector is off during a run, and as it was afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from labkit.collector import no_collection
from labkit.entry import Engine
from labkit.errors import EngineFault
from labkit.model import load_model


@pytest.fixture(autouse=True)
def collector_on() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_off_within_and_on_after() -> None:
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            pass
        assert not gc.isenabled(), "an inner block does not turn it on"
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with no_collection():
        pass
    assert not gc.isenabled()


def test_an_error_turns_it_on_again() -> None:
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()


class Watcher:
    """An observer that notes whether the collector is on, and can fail."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: set[bool] = set()
        self.fails = fails

    def planned(self, *_: Any) -> None:
        self.seen.add(gc.isenabled())
        if self.fails:
            raise ValueError("no more")


def test_generate_runs_without_it() -> None:
    watcher = Watcher()
    with Engine(load_model("toy"), observers=[watcher]) as engine:
        engine.generate([[1, 2]], max_new_tokens=3)
    assert watcher.seen == {False}
    assert gc.isenabled()


def test_a_run_that_fails_turns_it_on_again() -> None:
    with Engine(load_model("toy"), observers=[Watcher(fails=True)]) as engine, pytest.raises(EngineFault):
        engine.generate([[1, 2]], max_new_tokens=3)
    assert gc.isenabled()
