"""The carry-over of one step, cell by cell: the placeholder, the mask, the previous output, and what the model gets."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from labkit.errors import InvalidArgument
from labkit.steplog import RowRecord, StepRecord
from labkit.viz import style
from labkit.viz.frame import Table, frame
from labkit.viz.grid import Cell, cells_trace, key_trace, request_colours, steps_of

_LINE_PX, _MOST_ROWS = 76, 16
_HOST, _MASK, _OUTPUT, _RESULT = 0.0, 1.0, 2.0, 3.4  # lines from top to bottom, with room for arrows above the last
_PLAIN, _UNKNOWN = "#F2F2F2", style.IDLE


def carry_over_view(run: Any, step: int, *, max_rows: int = _MOST_ROWS) -> go.Figure:
    """Draw where the input tokens of a step's decode rows come from.

    Four lines of cells, a column per row: the ``token_ids`` that the host wrote, with placeholders; ``carry_from``, the
    row to fetch from or -1; the output of the step before, as it lies on the device; the input ids of the model.

    Args:
        run: a Run of an engine built with trace=True.
        step: a step in which rows decode.
        max_rows: how many rows are drawn.

    Raises:
        InvalidArgument: a step that the run does not have, or one without decode rows.
    """
    steps = {record.step: record for record in steps_of(run)}
    record = steps.get(step)
    if record is None or not record.decode_rows:
        decoding = [number for number, one in steps.items() if one.decode_rows]
        allowed = f"a step with rows that decode: {decoding[0]} to {decoding[-1]}" if decoding else "none decodes"
        raise InvalidArgument("step", step, allowed)
    before, on = steps.get(step - 1), bool(run.switches.carry_over)
    rows = record.rows[: record.decode_rows]
    outputs = _outputs(before)
    ids = [_input_id(row, outputs, on) for row in rows]
    drawn = rows[:max_rows]
    columns = max(len(drawn), min(len(outputs), max_rows))
    figure = go.Figure(layout=_layout(record, rows, ids, outputs, on, columns, len(drawn)))
    cells = [_output_cell(place, token, before) for place, token in enumerate(outputs[:max_rows])]
    for place, row in enumerate(drawn):
        cells += _column(place, row, ids[place], on)
    figure.add_trace(_arrows(drawn, on, max_rows))
    figure.add_trace(cells_trace("tokens", cells, size=style.NOTE))
    for name, fill, hatch in (("known to the host", _PLAIN, ""), ("placeholder", _UNKNOWN, "x")):
        figure.add_trace(key_trace(name, fill, hatch))
    return figure


def _outputs(before: StepRecord | None) -> list[int | None]:
    """What the previous step sampled, by row; None for a row that sampled nothing."""
    return [] if before is None else [row.sampled for row in before.rows]


def _input_id(row: RowRecord, outputs: list[int | None], on: bool) -> int | None:
    return outputs[row.carry_from] if row.placeholder and on and row.carry_from < len(outputs) else row.token


def _output_cell(place: int, token: int | None, before: StepRecord | None) -> Cell:
    assert before is not None
    request = before.rows[place].request
    text = "–" if token is None else str(token)
    fill, ink = request_colours(request)
    return Cell(place, _OUTPUT, text, f"output of step {before.step}, row {place}: request {request}", fill, ink)


def _column(place: int, row: RowRecord, token: int | None, on: bool) -> list[Cell]:
    """What the host wrote for a row, the mask, and the result."""
    fill, ink = request_colours(row.request)
    written = Cell(place, _HOST, str(row.token), f"row {place}: request {row.request}, position {row.start}", _PLAIN)
    reaches = Cell(place, _RESULT, str(token), f"row {place}: the model gets {token}", fill, ink)
    if row.placeholder:
        written = Cell(place, _HOST, str(row.token), f"row {place}: a placeholder", _UNKNOWN, hatch="x")
        if not on:
            reaches = Cell(place, _RESULT, str(token), f"row {place}: the placeholder itself", _UNKNOWN, hatch="x")
    mask = Cell(place, _MASK, str(row.carry_from), f"row {place}: carry_from = {row.carry_from}", _PLAIN)
    return [written, mask, reaches]


def _arrows(rows: tuple[RowRecord, ...], on: bool, most: int) -> go.Scatter:
    """From the row of the previous output to the input that it becomes."""
    x: list[float | None] = []
    y: list[float | None] = []
    for place, row in enumerate(rows):
        if on and 0 <= row.carry_from < most:
            x += [row.carry_from, place, None]
            y += [_OUTPUT + 0.45, _RESULT - 0.45, None]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line={"color": style.INK, "width": 2},
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": [0, 16, 0] * (len(x) // 3),
            "color": style.INK,
            "opacity": 1,
        },
        name="carried over",
        hoverinfo="skip",
        showlegend=bool(x),
    )


def _layout(
    record: StepRecord,
    rows: tuple[RowRecord, ...],
    ids: list[int | None],
    outputs: list[int | None],
    on: bool,
    columns: int,
    drawn: int,
) -> go.Layout:
    names = ["token_ids,<br>host wrote", "carry_from", "output of the<br>step before", "input ids of<br>the model"]
    notes = ["carry_from: row of the previous output to fetch, -1 to keep what the host wrote."]
    if drawn < len(rows):
        notes.append(f"Drawn: {drawn} of {len(rows)} decode rows.")
    return frame(
        _sentence(record.step, rows, on),
        notes,
        round((_RESULT + 1) * _LINE_PX),
        _table(rows, ids, outputs),
        margin={"l": 145},
        xaxis={
            "title": {"text": "row"},
            "tickvals": list(range(columns)),
            "range": [-0.6, columns - 0.4],
            "showgrid": False,
        },
        yaxis={
            "tickvals": [_HOST, _MASK, _OUTPUT, _RESULT],
            "ticktext": [f"<b>{name}</b>" for name in names],
            "range": [_RESULT + 0.5, -0.5],
            "fixedrange": True,
            "showgrid": False,
        },
    )


def _sentence(step: int, rows: tuple[RowRecord, ...], on: bool) -> str:
    count = sum(row.placeholder for row in rows)
    if not count:
        return f"Step {step}: the host knew all {len(rows)} input tokens; nothing is carried over."
    if on:
        return f"Step {step}: {count} of {len(rows)} input tokens are fetched on the device from the step before."
    return f"Step {step}: carry-over is off, and {count} placeholders reach the model."


def _table(rows: tuple[RowRecord, ...], ids: list[int | None], outputs: list[int | None]) -> Table:
    return [
        {
            "row": place,
            "request": row.request,
            "position": row.start,
            "host_wrote": row.token,
            "placeholder": row.placeholder,
            "carry_from": row.carry_from,
            "previous_output": outputs[row.carry_from] if 0 <= row.carry_from < len(outputs) else None,
            "input_id": token,
        }
        for place, (row, token) in enumerate(zip(rows, ids, strict=True))
    ]
