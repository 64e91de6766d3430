"""What the rows of a step say: whose they are, where they write, where their token comes from."""

from __future__ import annotations

from labkit.lessons.support.filled import FilledRow, rows_text
from labkit.sizes import Sizes
from labkit.steplog import RowRecord, StepRecord

SIZES = Sizes(max_rows=4, block_size=4, num_blocks=8, max_model_len=16)


def step(number: int, *requests: int) -> StepRecord:
    rows = tuple(RowRecord(request, 0, 1, True, -1, 5, 6, (request,)) for request in requests)
    owners = tuple((request, (request,)) for request in requests)
    return StepRecord(number, "A", rows, len(rows), owners, (), 8, True)


def lines(*rows: FilledRow, before: StepRecord | None = None) -> list[str]:
    return [" ".join(line.split()) for line in rows_text(rows, step(3, 0, 1), before, SIZES)]


def test_a_row_says_whose_block_it_writes_to():
    assert lines(FilledRow(1, False, 2, 6, -1), FilledRow(-1, False, 0, 2, -1), FilledRow(-1, False, 0, 32, -1)) == [
        "row 0 request 1 at 2 -> block 1 (request 1) token: the host's",
        "row 1 padding at 0 -> block 0 (request 0) token: the host's",
        "row 2 padding at 0 -> block 8 (trash) token: the host's",
    ]


def test_a_row_that_carries_over_says_who_sat_in_that_row():
    before = step(2, 7, 1)
    assert [
        line.split("  ")[-1].split("token: ")[1]
        for line in lines(FilledRow(1, True, 2, 20, 1), FilledRow(1, False, 2, 20, 3), before=before)
    ] == ["row 1 of step 2 (request 1)", "row 3 of step 2 (nobody)"]


def test_a_random_row_says_so():
    assert lines(FilledRow(1, True, 2, 20, -1)) == ["row 0 request 1 (random) at 2 -> block 5 (free) token: the host's"]
