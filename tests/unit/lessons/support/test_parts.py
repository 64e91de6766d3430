"""The parts as a table of functions: what may be replaced, and what a part that fails is told."""

from __future__ import annotations

import pytest

from labkit.errors import InvalidArgument
from labkit.lessons.support.parts import RIGHT, PartFailed, Parts, PartsTable, signature


def test_what_was_replaced_is_remembered_once():
    parts = Parts()
    assert parts.replaced == []
    parts.carry_row = lambda request, row: 1
    parts.carry_row = lambda request, row: 2
    assert parts.replaced == ["carry_row"]
    assert parts.ask("carry_row", None, 0) == 2


def test_what_is_broken_from_the_start_is_not_replaced():
    parts = Parts(carry_row=lambda request, row: 7)
    assert parts.replaced == []
    assert parts.carry_row(None, 0) == 7


@pytest.mark.parametrize(("name", "value"), [("before_red", len), ("before_read", None), ("before_read", 3)])
def test_only_a_part_can_be_replaced_and_only_by_a_function(name, value):
    with pytest.raises(InvalidArgument, match=name):
        setattr(Parts(), name, value)


def test_a_part_that_does_not_exist_is_not_found():
    with pytest.raises(InvalidArgument, match="the parts are before_fill"):
        Parts().streams  # noqa: B018


def test_a_part_that_raises_is_named():
    parts = Parts(host_place=lambda: "pinned")
    with pytest.raises(PartFailed, match=r"host_place\(what\) raised TypeError"):
        parts.ask("host_place", "inputs_host")


@pytest.mark.parametrize("answer", [None, "disk", True, 1])
def test_an_answer_that_is_not_allowed_is_named(answer):
    parts = Parts(host_place=lambda what: answer)
    with pytest.raises(PartFailed, match=r"returned .*, and the engine needs pinned or pageable"):
        parts.choose("host_place", ("pinned", "pageable"), "pinned or pageable", "inputs_host")


def test_true_is_not_row_one():
    with pytest.raises(PartFailed):
        Parts(carry_row=lambda request, row: True).choose("carry_row", range(4), "a row", None, 0)


def test_the_table_has_every_part_with_its_job():
    rows = dict(PartsTable().rows())
    assert list(rows) == [signature(name) for name in RIGHT]
    assert all(len(job) > 30 for job in rows.values())
    assert all(f"`{call}`" in PartsTable()._repr_markdown_() and call in repr(PartsTable()) for call in rows)
