"""Which request sits in which row of the batch, step by step; and which blocks of the KV pool each one has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go

from labkit.steplog import RowRecord, StepRecord
from labkit.viz import style
from labkit.viz.frame import Table, frame
from labkit.viz.grid import Cell, cells_trace, chosen_steps, key_trace, request_colours, step_axis, steps_of

_ROW_PX, _BLOCK_PX, _MOST_STEPS, _MOST_BLOCKS = 36, 24, 16, 32
_PREFILL_HATCH, _HELD = "/", "#BFBFBF"


def batch_view(run: Any, *, steps: tuple[int, int] | None = None, max_steps: int = _MOST_STEPS) -> go.Figure:
    """Draw the rows of each step's batch: the request in each, whether it decodes or prefills.

    Args:
        run: a Run of an engine built with trace=True.
        steps: first and last step; default the first ``max_steps`` of the run.

    Raises:
        InvalidArgument: a run without steps, or steps that it does not have.
    """
    known = steps_of(run)
    shown = chosen_steps(known, steps, max_steps)
    most = max(len(step.rows) for step in shown)
    cells = [_row_cell(step, place, row) for step in shown for place, row in enumerate(step.rows)]
    figure = go.Figure(
        layout=frame(
            _batch_sentence(shown),
            [
                "A cell is a row: its number is the request. Hatched: a prefill chunk, and its number of tokens.",
                *_part_of(known, shown),
            ],
            most * _ROW_PX + 20,
            _batch_table(shown),
            margin={"b": 95},
            xaxis=step_axis(shown),
            yaxis=_rows_axis(most, "row of the batch"),
        )
    )
    figure.add_trace(cells_trace("rows", cells, size=style.AXIS))
    figure.add_trace(key_trace("decode", style.GRID))
    return figure.add_trace(key_trace("prefill chunk", style.GRID, _PREFILL_HATCH))


def _row_cell(step: StepRecord, place: int, row: RowRecord) -> Cell:
    fill, ink = request_colours(row.request)
    decodes = place < step.decode_rows
    text = f"{row.request}" if decodes else f"{row.request}: {row.count}"
    return Cell(step.step, place, text, _row_hover(step, place, row), fill, ink, "" if decodes else _PREFILL_HATCH)


def _row_hover(step: StepRecord, place: int, row: RowRecord) -> str:
    what = "decodes position" if place < step.decode_rows else f"prefills {row.count} tokens from position"
    origin = f"from row {row.carry_from} of the step before" if row.placeholder else "known to the host"
    sampled = f"token {row.sampled}" if row.sampled is not None else "nothing"
    return (
        f"request {row.request} in row {place} of step {step.step}\n{what} {row.start}\n"
        f"input {origin}; samples {sampled}\n{len(row.blocks)} KV blocks"
    )


def _batch_sentence(steps: list[StepRecord]) -> str:
    requests = {row.request for step in steps for row in step.rows}
    decodes = sum(step.decode_rows for step in steps)
    chunks = sum(len(step.rows) for step in steps) - decodes
    return f"{len(requests)} requests in {len(steps)} steps: {decodes} rows decode, {chunks} are prefill chunks."


def _batch_table(steps: list[StepRecord]) -> Table:
    return [
        {
            "step": step.step,
            "slot": step.slot,
            "row": place,
            "request": row.request,
            "kind": "decode" if place < step.decode_rows else "prefill chunk",
            "start": row.start,
            "tokens": row.count,
            "carry_from": row.carry_from,
            "sampled": row.sampled,
        }
        for step in steps
        for place, row in enumerate(step.rows)
    ]


# -- blocks ------------------------------------------------------------------------------------------------------------


def kv_view(
    run: Any, *, steps: tuple[int, int] | None = None, max_steps: int = _MOST_STEPS, max_blocks: int = _MOST_BLOCKS
) -> go.Figure:
    """Draw the blocks of the KV pool over the steps: whose each one is, which are held, which are free.

    Args:
        run: a Run of an engine built with trace=True.
        steps: first and last step; default the first ``max_steps`` of the run.
        max_blocks: the first so many of the blocks that are ever used in these steps are drawn.

    Raises:
        InvalidArgument: a run without steps, or steps that it does not have.
    """
    known = steps_of(run)
    shown = chosen_steps(known, steps, max_steps)
    used = sorted({block for step in shown for block, _ in _owned(step)})
    drawn = {block: place for place, block in enumerate(used[:max_blocks])}
    cells = [
        _block_cell(step, block, owner, drawn[block])
        for step in shown
        for block, owner in _owned(step)
        if block in drawn
    ]
    figure = go.Figure(
        layout=frame(
            _kv_sentence(shown),
            [
                "A cell is a block after the step was planned: the number is the request that has it. Empty: free.",
                "Held: freed under a step in flight that may still write to it, and free once that step has ended.",
                *([f"Drawn: {len(drawn)} of the {len(used)} blocks in use."] if len(used) > len(drawn) else []),
                *_part_of(known, shown),
            ],
            max(1, len(drawn)) * _BLOCK_PX + 20,
            _kv_table(shown),
            margin={"b": 95},
            xaxis=step_axis(shown),
            yaxis=_rows_axis(len(drawn), "block of the KV pool", list(drawn)),
        )
    )
    figure.add_trace(cells_trace("blocks", cells))
    figure.add_trace(key_trace("a request's", style.GRID))
    return figure.add_trace(key_trace("held", _HELD, "x"))


def _owned(step: StepRecord) -> Iterator[tuple[int, int]]:
    """(block, request), a request of -1 for a held block."""
    for request, blocks in step.owners:
        yield from ((block, request) for block in blocks)
    yield from ((block, -1) for block in step.held)


def _block_cell(step: StepRecord, block: int, owner: int, place: int) -> Cell:
    where = f"block {block} in step {step.step}"
    if owner < 0:
        return Cell(step.step, place, "held", f"{where}: held", _HELD, style.INK, "x")
    fill, ink = request_colours(owner)
    return Cell(step.step, place, str(owner), f"{where}: request {owner}", fill, ink)


def _kv_sentence(steps: list[StepRecord]) -> str:
    counts = [sum(1 for _ in _owned(step)) for step in steps]
    held, pool = max(len(step.held) for step in steps), steps[0].num_blocks
    most = f"up to {held} {'is' if held == 1 else 'are'}" if held else "none is"
    return f"At most {max(counts)} of {pool} KV blocks are in use at once; {most} held for a step in flight."


def _kv_table(steps: list[StepRecord]) -> Table:
    return [
        {"step": step.step, "block": block, "owner": f"request {owner}" if owner >= 0 else "held"}
        for step in steps
        for block, owner in sorted(_owned(step))
    ]


# -- both --------------------------------------------------------------------------------------------------------------


def _part_of(known: tuple[StepRecord, ...], shown: list[StepRecord]) -> list[str]:
    if len(shown) == len(known):
        return []
    return [f"Drawn: steps {shown[0].step} to {shown[-1].step}; the run has {known[0].step} to {known[-1].step}."]


def _rows_axis(count: int, title: str, labels: list[int] | None = None) -> dict[str, Any]:
    """Rows from top to bottom."""
    return {
        "title": {"text": title, "standoff": 8},
        "tickvals": list(range(count)),
        "ticktext": [str(label) for label in (labels or range(count))],
        "range": [max(1, count) - 0.5, -0.5],
        "fixedrange": True,
        "showgrid": False,
    }
