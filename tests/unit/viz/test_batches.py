"""The rows of each step and the blocks of the pool: what is drawn is what the engine did."""

import plotly.graph_objects as go
import pytest

from labkit.errors import InvalidArgument
from labkit.viz import batch_view, kv_view, table_of
from tests.unit.viz.runs import mixed_run


def cells(figure: go.Figure, name: str) -> dict[tuple[int, int], str]:
    trace = next(trace for trace in figure.data if trace.name == name)
    places = [round(base + width / 2) for base, width in zip(trace.base, trace.x, strict=True)]
    return {(x, y): text for x, y, text in zip(places, trace.y, trace.text, strict=True)}


@pytest.mark.parametrize("rung", [0, 5])
def test_each_row_of_each_step_is_a_cell_with_its_request(rung):
    run = mixed_run(rung)
    drawn = cells(batch_view(run, max_steps=99), "rows")
    expected = {
        (step.step, place): str(row.request) if place < step.decode_rows else f"{row.request}: {row.count}"
        for step in run.steps
        for place, row in enumerate(step.rows)
    }
    assert drawn == expected
    assert any(":" in text for text in drawn.values()) and any(":" not in text for text in drawn.values())


def test_prefill_chunks_are_hatched_and_decode_rows_are_not():
    trace = batch_view(mixed_run(5), max_steps=99).data[0]
    for text, shape in zip(trace.text, trace.marker.pattern.shape, strict=True):
        assert bool(shape) == (":" in text)


def test_the_sentence_counts_rows():
    run = mixed_run(5)
    decodes = sum(step.decode_rows for step in run.steps)
    chunks = sum(len(step.rows) for step in run.steps) - decodes
    sentence = batch_view(run, max_steps=99).layout.meta["summary"]
    assert sentence == f"6 requests in {len(run.steps)} steps: {decodes} rows decode, {chunks} are prefill chunks."


def test_a_part_of_the_steps_is_drawn_and_said():
    figure = batch_view(mixed_run(5), steps=(2, 4))
    assert {x for x, _ in cells(figure, "rows")} == {2, 3, 4}
    assert any("Drawn: steps 2 to 4" in note for note in figure.layout.meta["notes"])
    assert {row["step"] for row in table_of(figure)} == {2, 3, 4}


@pytest.mark.parametrize("view", [batch_view, kv_view])
def test_bad_arguments_are_named(view):
    with pytest.raises(InvalidArgument, match="run"):
        view("a run")
    with pytest.raises(InvalidArgument, match="steps"):
        view(mixed_run(5), steps=(0, 999))


@pytest.mark.parametrize("view", [batch_view, kv_view])
def test_views_are_plain_and_deterministic_and_small(view):
    figure = view(mixed_run(5))
    assert type(figure) is go.Figure
    assert figure.to_json() == view(mixed_run(5)).to_json()
    assert len(figure.to_json()) < 200_000


def test_the_table_of_the_batch_has_every_row():
    run = mixed_run(5)
    rows = table_of(batch_view(run, max_steps=99))
    assert len(rows) == sum(len(step.rows) for step in run.steps)
    sampled = [row["sampled"] for row in rows if row["request"] == 1 and row["sampled"] is not None]
    assert sampled[: len(run.tokens[1])] == run.tokens[1]


def test_each_block_in_use_is_a_cell_with_its_owner():
    run = mixed_run(5)
    figure = kv_view(run, max_steps=99, max_blocks=99)
    labels = [int(text) for text in figure.layout.yaxis.ticktext]
    drawn = {(step, labels[y]): text for (step, y), text in cells(figure, "blocks").items()}
    expected = {}
    for step in run.steps:
        expected |= {(step.step, block): str(request) for request, blocks in step.owners for block in blocks}
        expected |= {(step.step, block): "held" for block in step.held}
    assert drawn == expected
    assert "held" in drawn.values()


def test_a_large_pool_is_cut_and_says_so():
    figure = kv_view(mixed_run(5), max_blocks=3)
    assert len(figure.layout.yaxis.ticktext) == 3
    assert any("Drawn: 3 of the" in note for note in figure.layout.meta["notes"])


def test_a_synchronous_run_holds_no_block():
    assert "none is held" in kv_view(mixed_run(0)).layout.meta["summary"]
