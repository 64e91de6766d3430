"""Phases and kernels of a cost profile, from the samples of ``step_costs.py``."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import numpy as np

from labkit.bench.probe import PhaseSample
from labkit.bench.step_costs import SMALL, Sample, Samples
from labkit.device.calibrate.fit import line
from labkit.device.costs import Linear, Profile


def fit_steps(profile: Profile, samples: Samples) -> Profile:
    """``profile``, whose API costs have been measured, with the phases and kernels of the model."""
    small = {name: _small(samples.kernels[name]) for name in SMALL if name in samples.kernels}
    inner = 2 * profile.node_gap_ns  # a graph of carry-over, forward pass and sampling
    in_graph = _table(
        [
            [(r, t, c, ns - inner - sum(kernel(r, t, c) for kernel in small.values())) for r, t, c, ns in stretch]
            for stretch in samples.graphs
        ]
    )
    forward = _eager(in_graph, samples.kernels["forward"])
    chunk = _chunk(samples.kernels.get("chunk", []), forward)
    kernels = {**small, "forward": replace(forward, **chunk)}
    return replace(
        profile,
        phases={name: _phase(seen) for name, seen in samples.phases.items()},
        kernels={name: replace(kernel, **_launching(name, profile, samples)) for name, kernel in kernels.items()},
        graph_kernels={"forward": in_graph},
    )


def _table(stretches: list[list[Sample]]) -> Linear:
    """A point for each stretch of steps: its mean context, its median time."""
    points = [
        (
            stretch[0][0],
            round(statistics.fmean(context / rows for rows, _, context, _ in stretch), 1),
            round(statistics.median(ns for *_, ns in stretch), 1),
        )
        for stretch in stretches
    ]
    return Linear(points=tuple(sorted(points)))


def _eager(in_graph: Linear, samples: list[Sample]) -> Linear:
    """The same kernels with the gaps of eager launches: by how much longer, measured at a few row counts."""
    counts = sorted({sample[0] for sample in samples})
    more = [
        statistics.median(
            ns - in_graph(rows, tokens, context) for rows, tokens, context, ns in samples if rows == count
        )
        for count in counts
    ]
    points = [(rows, each, round(ns + float(np.interp(rows, counts, more)), 1)) for rows, each, ns in in_graph.points]
    return Linear(points=tuple(points))


def _small(samples: list[Sample]) -> Linear:
    base, per_row = line([s[0] for s in samples], [s[3] for s in samples])
    return Linear(base_ns=round(base, 1), per_row_ns=round(per_row, 2))


def _launching(name: str, profile: Profile, samples: Samples) -> dict[str, Any]:
    """How many kernels, and host time for each after the first. The quietest row count: the others are disturbed."""
    host = min(samples.host[name])
    count = samples.launches.get(name, 0) or max(1, round(host / max(1, profile.launch_ns)))
    if count == 1:
        return {"launches": 1}
    each = (host - profile.launch_ns) / (count - 1)
    return {"launches": count, "launch_ns": round(max(1.0, each), 1)}


def _chunk(samples: list[Sample], forward: Linear) -> dict[str, Any]:
    """Time per token beyond those that the weights' bytes hide, from what is above a decode step's time."""
    if len(samples) < 2:
        return {}
    above = [(tokens, ns - forward(rows, 0, context)) for rows, tokens, context, ns in samples]
    (low, first), (high, last) = above[-2], above[-1]
    per_token = max(0.0, (last - first) / (high - low))
    free = high - last / per_token if per_token else 0
    return {"per_token_ns": round(per_token, 2), "free_tokens": max(0, round(free))}


def _phase(samples: list[PhaseSample]) -> Linear:
    """Host time over rows, from decode steps; per token, from what a prompt's step takes beyond that."""
    decode = [s for s in samples if s[1] <= s[0]]
    counts = sorted({s[0] for s in decode})
    base, slope = line(counts, [statistics.median(s[2] for s in decode if s[0] == rows) for rows in counts])
    longer = [(s[2] - base - slope * s[0]) / (s[1] - s[0]) for s in samples if s[1] > s[0]]
    per_token = min(slope, max(0.0, statistics.median(longer))) if longer else 0.0
    return Linear(round(base, 1), round(slope - per_token, 3), round(per_token, 3))
