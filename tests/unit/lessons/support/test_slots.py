"""Engines whose slots share a buffer: each of the four is a race, and each does damage on some machine."""

from __future__ import annotations

import pytest

from labkit.lessons.support.slots import BUFFERS, races_of, run_sharing, slow_copies, slow_host

DAMAGE = {"inputs_host": slow_copies(), "inputs_dev": "article-8b", "outputs_dev": slow_copies()}
DAMAGE["outputs_host"] = slow_host()


def test_all_buffers_doubled_is_clean_on_every_machine() -> None:
    runs = [run_sharing("virtual", profile=profile) for profile in ("article-8b", slow_copies(), slow_host())]
    assert [races_of(run) for run in runs] == [[], [], []]
    assert runs[0].tokens == runs[1].tokens == runs[2].tokens


@pytest.mark.parametrize("buffer", BUFFERS)
def test_a_shared_buffer_is_one_race_and_changes_tokens_on_some_machine(buffer: str) -> None:
    assert len(races_of(run_sharing("virtual", buffer))) == 1
    profile = DAMAGE[buffer]
    assert run_sharing("virtual", buffer, profile=profile).tokens != run_sharing("virtual", profile=profile).tokens
