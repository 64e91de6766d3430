"""Capacities and the numbers derived from them."""

from dataclasses import FrozenInstanceError

import pytest

from labkit.errors import InvalidArgument
from labkit.sizes import COUNTS, Sizes


def test_derived_numbers():
    sizes = Sizes(max_rows=20, token_budget=64, block_size=16, num_blocks=10, max_model_len=33)
    assert sizes.blocks_per_request == 3
    assert sizes.kv_slots == 160
    assert sizes.trash_block == 10


@pytest.mark.parametrize(
    ("rows", "padded"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (3, (1, 2, 3)),
        (4, (1, 2, 4)),
        (6, (1, 2, 4, 6)),
        (8, (1, 2, 4, 8)),
        (9, (1, 2, 4, 8, 9)),
        (20, (1, 2, 4, 8, 16, 20)),
        (32, (1, 2, 4, 8, 16, 24, 32)),
    ],
)
def test_padded_row_counts(rows, padded):
    sizes = Sizes(max_rows=rows)
    assert sizes.padded_rows == padded
    for count in range(1, rows + 1):
        assert sizes.pad(count) == min(size for size in padded if size >= count)


def test_chosen_row_counts_for_graphs():
    sizes = Sizes(max_rows=5, graph_rows=(2, 5))
    assert sizes.padded_rows == (2, 5)
    assert [sizes.pad(count) for count in (1, 2, 3, 5)] == [2, 2, 5, 5]


@pytest.mark.parametrize("rows", [(5, 2), (2, 2, 5), (2, 4), (0, 5), (2, 6), [2, 5], 5, ("2", 5), (True, 5)])
def test_bad_row_counts_for_graphs(rows):
    with pytest.raises(InvalidArgument, match=r"graph_rows=.*: ascending row counts"):
        Sizes(max_rows=5, graph_rows=rows)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "4"])
def test_a_size_is_a_positive_integer(name, value):
    with pytest.raises(InvalidArgument, match=f"{name}={value!r}: a size is an integer of at least 1"):
        Sizes(**{name: value})


def test_a_token_budget_may_be_below_the_row_count():
    assert Sizes(max_rows=8, token_budget=1).token_budget == 1


def test_sizes_are_frozen_and_take_keywords_only():
    with pytest.raises(FrozenInstanceError):
        Sizes().max_rows = 3
    with pytest.raises(TypeError):
        Sizes(3)
