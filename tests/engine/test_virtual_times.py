"""The times in a trace obey the device's rules: one kernel at a time, and nothing before what it waits for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from labkit.device.costs import Adversary, Costs, Link, load_profile
from labkit.entry import Engine
from labkit.trace.events import LANES, Trace
from tests.engine.harness import MODEL, prompt, sizes

PROFILE = load_profile("h200-8b")
COSTS = {
    "shipped": Costs(PROFILE),
    "slow uploads": Costs(replace(PROFILE, h2d=Link(latency_ns=5_000_000))),
    "slow launches": Costs(replace(PROFILE, launch_ns=40_000)),
    **{f"adversary {seed}": Adversary(PROFILE, seed) for seed in range(3)},
}


def trace_of(rung: int, costs: Costs) -> Trace:
    with Engine(MODEL, switches=rung, sizes=sizes(4), profile=costs) as engine:
        trace = engine.generate([prompt(3 + i, i) for i in range(3)], max_new_tokens=5).trace
    assert trace is not None
    return trace


@pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS)
def test_spans_of_a_lane_do_not_overlap_and_waits_are_kept(right_rung: int, costs: Costs) -> None:
    trace = trace_of(right_rung, costs)
    for lane in LANES[1:]:
        spans = sorted(trace.lane(lane), key=lambda span: span.start_ns)
        assert len(spans) >= 5
        assert all(before.end_ns <= after.start_ns for before, after in pairwise(spans)), lane
    by_id = {span.id: span for span in trace.spans}
    waits = [edge for edge in trace.edges if edge.kind == "event"]
    assert bool(waits) == (right_rung > 0)
    assert all(by_id[edge.before].end_ns <= by_id[edge.after].start_ns for edge in waits)
    host = [edge for edge in trace.edges if edge.kind == "host"]
    assert all(by_id[edge.before].end_ns <= by_id[edge.after].end_ns for edge in host)
