"""Robust least squares: what a straight line is where some measurements were disturbed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_ROUNDS = 20
_HUBER = 1.345  # residuals beyond so many robust standard deviations count less
_EXACT = 1e-9


def solve(columns: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Coefficients c with ``sum(c[i] * columns[i]) ~ values``, by relative error, outliers weighed down (Huber).

    Args:
        columns: each as long as ``values``.
        values: positive measurements; their errors are taken to grow with them.
    """
    a, y = np.array(columns, float).T, np.array(values, float)
    scale = 1 / np.maximum(np.abs(y), 1.0)
    weights = np.ones_like(y)
    found = np.zeros(a.shape[1])
    for _ in range(_ROUNDS):
        w = np.sqrt(weights) * scale
        found = np.linalg.lstsq(a * w[:, None], y * w, rcond=None)[0]
        residual = np.abs(a @ found - y) * scale
        spread = 1.4826 * np.median(residual)
        if spread < _EXACT:
            break
        weights = np.minimum(1.0, _HUBER * spread / np.maximum(residual, _EXACT))
    return [float(value) for value in found]


def line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Start and slope of ``y`` over ``x``, neither below 0: costs are not."""
    if len(set(x)) < 2:
        return float(np.median(y)), 0.0
    start, slope = solve([[1.0] * len(x), list(x)], y)
    if slope < 0:
        return float(np.median(y)), 0.0
    if start < 0:
        return 0.0, float(np.median(np.array(y) / np.maximum(np.array(x), 1e-12)))
    return start, slope
