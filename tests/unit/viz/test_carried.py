"""The carry-over, cell by cell: what the model gets are the tokens that rung 0 knows."""

import pytest

from labkit.errors import InvalidArgument
from labkit.viz import carry_over_view, table_of
from tests.unit.viz.runs import mixed_run

RIGHT, OFF, SYNC = mixed_run(5), mixed_run(4), mixed_run(0)
DECODING = [step.step for step in RIGHT.steps if step.decode_rows]


@pytest.mark.parametrize("step", DECODING)
def test_the_resulting_input_ids_are_the_tokens_of_rung_0(step):
    for row in table_of(carry_over_view(RIGHT, step)):
        tokens = SYNC.prompts[row["request"]] + SYNC.tokens[row["request"]]
        if row["position"] < len(tokens):  # a row computed after its request had ended has no token to compare with
            assert row["input_id"] == tokens[row["position"]]


def test_a_placeholder_is_fetched_from_the_row_that_the_mask_names():
    rows = table_of(carry_over_view(RIGHT, DECODING[3]))
    carried = [row for row in rows if row["placeholder"]]
    assert carried
    for row in carried:
        assert (row["host_wrote"], row["input_id"]) == (0, row["previous_output"])
        assert row["carry_from"] >= 0


def test_arrows_go_from_the_previous_row_to_the_input():
    step = next(
        number
        for number in DECODING
        if any(r["carry_from"] not in (-1, r["row"]) for r in table_of(carry_over_view(RIGHT, number)))
    )
    figure = carry_over_view(RIGHT, step)
    arrows = next(trace for trace in figure.data if trace.name == "carried over")
    expected = [(row["carry_from"], row["row"]) for row in table_of(figure) if row["placeholder"]]
    assert list(zip(arrows.x[::3], arrows.x[1::3], strict=True)) == expected


def test_with_carry_over_off_placeholders_reach_the_model():
    figure = carry_over_view(OFF, DECODING[3])
    assert "placeholders reach the model" in figure.layout.meta["summary"]
    rows = [row for row in table_of(figure) if row["placeholder"]]
    assert rows and {row["input_id"] for row in rows} == {0}
    assert not next(trace for trace in figure.data if trace.name == "carried over").x


def test_a_synchronous_host_knows_every_token():
    assert "nothing is carried over" in carry_over_view(SYNC, DECODING[3]).layout.meta["summary"]


def test_placeholders_are_hatched():
    figure = carry_over_view(RIGHT, DECODING[3])
    cells = next(trace for trace in figure.data if trace.name == "tokens")
    hatched = sum(bool(shape) for shape in cells.marker.pattern.shape)
    assert hatched == sum(row["placeholder"] for row in table_of(figure))


def test_many_rows_are_cut_and_it_says_so():
    figure = carry_over_view(RIGHT, DECODING[3], max_rows=1)
    assert any("Drawn: 1 of" in note for note in figure.layout.meta["notes"])
    assert len(table_of(figure)) > 1


@pytest.mark.parametrize("step", [-1, 999, 0, "2"])
def test_a_step_without_decode_rows_is_refused(step):
    with pytest.raises(InvalidArgument, match=f"step={step!r}.*rows that decode"):
        carry_over_view(RIGHT, step)
