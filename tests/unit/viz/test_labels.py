"""Texts: names that stay inside their bars, and for each reason of idleness its longest gap, none over another."""

from itertools import combinations

import plotly.graph_objects as go

from labkit.analysis.idle import idle_gaps
from labkit.analysis.units import time_text
from labkit.trace.events import Trace
from labkit.viz import style
from labkit.viz.bars import select
from labkit.viz.drawing import ROW
from labkit.viz.labels import label_trace
from tests.unit.synthetic import async_trace, sync_trace
from tests.unit.viz.runs import mixed_run

PLOT_PX, CHARACTER_PX = 580, 8


def texts_of(trace: Trace, steps: tuple[int, int] | None = None) -> list[tuple[float, float, str, str]]:
    """(left and right end in px of a narrow plot, lane's y, text)"""
    selection = select(trace, steps, None, 4000)
    labels = go.Scatter(label_trace(selection, selection.start_ns))
    per_px = (selection.end_ns - selection.start_ns) / 1000 / PLOT_PX
    found = []
    for x, y, text, place in zip(labels.x, labels.y, labels.text, labels.textposition, strict=True):
        width = len(text) * CHARACTER_PX
        left = x / per_px - width * {"middle right": 0, "middle center": 0.5, "middle left": 1}[place]
        found.append((left, left + width, y, text))
    return found


def reasons_of(trace: Trace, steps: tuple[int, int] | None = None) -> list[tuple[float, float, str]]:
    return [(left, right, text) for left, right, _, text in texts_of(trace, steps) if text.startswith("idle ")]


def test_names_stay_inside_their_bars():
    trace = async_trace(3)
    per_px = trace.duration_ns / PLOT_PX
    bars = [(bar.start_ns / per_px, bar.end_ns / per_px) for bar in select(trace, None, None, 4000).bars]
    names = [(left, right, text) for left, right, _, text in texts_of(trace) if not text.startswith("idle ")]
    assert len(names) > 5
    for left, right, text in names:
        assert any(start <= left + 1e-6 and right <= end + 1e-6 for start, end in bars), text


def test_each_reason_is_told_at_its_longest_gap():
    trace = sync_trace(6)
    told = [text for _, _, text in reasons_of(trace)]
    assert told
    for text in told:
        reason = text.split(": ")[1]
        longest = max(gap.duration_ns for gap in idle_gaps(trace) if gap.reason == reason)
        assert text == f"idle {time_text(longest)}: {reason}"
    assert len(told) == len({text.split(": ")[1] for text in told})


def test_the_largest_reason_of_a_synchronous_run_is_told_over_one_of_its_gaps():
    trace = sync_trace(6)
    largest = max(idle_gaps(trace), key=lambda gap: gap.duration_ns)
    (left, right, _), *_ = reasons_of(trace)
    per_px = trace.duration_ns / PLOT_PX
    gaps = [gap for gap in idle_gaps(trace) if gap.duration_ns == largest.duration_ns and gap.reason == largest.reason]
    assert any(left - 1e-6 <= (gap.start_ns - trace.start_ns) / per_px <= right + 1e-6 for gap in gaps)


def test_reasons_lie_side_by_side_within_the_plot_between_two_lanes():
    for trace in (sync_trace(3), sync_trace(8), async_trace(4), async_trace(60)):
        reasons = reasons_of(trace)
        assert all(-1e-6 <= left and right <= PLOT_PX + 1e-6 for left, right, _ in reasons)
        for (left, right, _), (other_left, other_right, _) in combinations(reasons, 2):
            assert right <= other_left + 1e-6 or other_right <= left + 1e-6
    heights = {y for _, _, y, text in texts_of(sync_trace(3)) if text.startswith("idle ")}
    (height,) = heights
    assert ROW["compute"] + style.LOOKS["kernel"].height / 2 < height < ROW["H2D"] - style.LOOKS["H2D copy"].height / 2


def test_a_gap_too_narrow_to_be_seen_is_not_pointed_at():
    trace = mixed_run(0).trace
    assert max(gap.duration_ns for gap in idle_gaps(trace)) < 2 * trace.duration_ns / PLOT_PX
    assert reasons_of(trace) == []
