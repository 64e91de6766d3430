from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from labkit.analysis.intervals import complement, per_bin, total, union

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def instants(intervals: list[tuple[int, int]]) -> set[int]:
    return {instant for start, end in intervals for instant in range(start, end)}


@given(INTERVALS)
def test_union_covers_the_same_instants_with_disjoint_ascending_intervals(intervals):
    merged = union(intervals)
    assert instants(merged) == instants(intervals)
    assert total(merged) == len(instants(intervals))
    assert all(end < start for (_, end), (start, _) in pairwise(merged))


@given(INTERVALS)
def test_complement_is_every_other_instant(intervals):
    merged = union(intervals)
    holes = complement(merged, 0, 60)
    assert instants(holes) == set(range(60)) - instants(merged)


@given(INTERVALS, st.integers(1, 90))
def test_bins_count_each_instant_once_even_where_a_bin_is_empty(intervals, bins):
    merged = union(intervals)
    edges = [60 * index // bins for index in range(bins + 1)]
    expected = [len(instants(merged) & set(range(a, b))) for a, b in pairwise(edges)]
    assert per_bin(merged, edges) == expected
