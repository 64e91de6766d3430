"""Straight lines through disturbed measurements."""

import pytest

from labkit.device.calibrate.fit import line, solve


def test_a_line_without_noise_is_found_exactly():
    x = [1, 10, 100, 1000]
    assert line(x, [5 + 2 * v for v in x]) == pytest.approx((5, 2))


def test_one_wild_measurement_changes_little():
    x = list(range(1, 21))
    y = [100 + 3.0 * v for v in x]
    y[7] *= 4
    start, slope = line(x, y)
    assert start == pytest.approx(100, rel=0.02)
    assert slope == pytest.approx(3, rel=0.05)


def test_a_cost_never_falls_and_is_never_negative():
    assert line([1, 2, 3], [30, 20, 10]) == (20, 0)
    start, slope = line([1, 2, 3], [1, 3, 5.5])
    assert start == 0 and slope == pytest.approx(1.5)


def test_one_place_is_a_constant():
    assert line([7, 7, 7], [1, 2, 9]) == (2, 0)


def test_several_columns():
    ones, rows, tokens = [1.0] * 4, [1, 2, 4, 8], [10, 5, 20, 1]
    values = [50 + 3 * r + 0.5 * t for r, t in zip(rows, tokens, strict=True)]
    assert solve([ones, rows, tokens], values) == pytest.approx([50, 3, 0.5])
