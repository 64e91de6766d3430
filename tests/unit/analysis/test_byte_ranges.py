import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.analysis.byte_ranges import ByteRanges


class Seen(list):
    """What happened to some bytes."""

    def copy(self):
        return Seen(self)


def test_a_range_seen_before_is_one_cell():
    ranges = ByteRanges(Seen)
    (cell,) = ranges.cells(0, 64)
    cell.append("a")
    assert ranges.cells(0, 64) == [["a"]]
    assert len(ranges) == 1


def test_an_empty_range_has_no_cells():
    ranges = ByteRanges(Seen)
    ranges.cells(0, 64)
    assert ranges.cells(8, 8) == []
    assert len(ranges) == 1


def test_a_split_gives_each_half_a_value_of_its_own():
    ranges = ByteRanges(Seen)
    ranges.cells(0, 64)[0].append("a")
    (half,) = ranges.cells(16, 32)
    half.append("b")
    assert ranges.cells(0, 64) == [["a"], ["a", "b"], ["a"]]


def test_gaps_get_new_values():
    ranges = ByteRanges(Seen)
    ranges.cells(16, 32)[0].append("a")
    assert ranges.cells(0, 48) == [[], ["a"], []]


def test_replace_makes_one_cell_and_leaves_the_others():
    ranges = ByteRanges(Seen)
    for start in range(0, 64, 8):
        ranges.cells(start, start + 8)[0].append(start)
    ranges.cells(16, 48)
    ranges.replace(16, 48, Seen(["new"]))
    assert ranges.cells(0, 64) == [[0], [8], ["new"], [48], [56]]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.booleans()), max_size=25))
def test_every_byte_knows_exactly_the_ranges_that_held_it(calls):
    ranges = ByteRanges(Seen)
    truth: list[list[int]] = [[] for _ in range(30)]
    for number, (start, stop, replace) in enumerate(calls):
        cells = ranges.cells(start, stop)
        for cell in cells:
            cell.append(number)
        for byte in range(start, stop):
            truth[byte].append(number)
        if replace and cells:
            ranges.replace(start, stop, Seen([number]))
            truth[start:stop] = [[number] for _ in range(start, stop)]
    assert [ranges.cells(byte, byte + 1)[0] for byte in range(30)] == truth


@pytest.mark.parametrize("start", [0, 8])
def test_cells_come_in_ascending_order(start):
    ranges = ByteRanges(Seen)
    for at in (40, 8, 24):
        ranges.cells(at, at + 8)[0].append(at)
    assert [cell[0] for cell in ranges.cells(start, 48) if cell] == [8, 24, 40]
