"""The toy model against its reference in plain integers, and that every wrong input changes what follows."""

import pytest
import torch

from labkit.errors import InvalidArgument
from labkit.model.api import Model
from labkit.model.toy import ToyModel
from tests.engine import reference
from tests.unit.model.paged_driver import PagedDriver, Row


def paged(model, block_size, **options):
    """A pool of garbage: whatever is read must have been written."""
    return PagedDriver(model, block_size, fill=-(2**40) + 12345, **options)


PROMPTS = [[5], [9, 8, 7], list(range(40, 51))]


@pytest.mark.parametrize("block_size", [1, 3, 16])
@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_paged_batches_agree_with_the_reference(block_size, chunk):
    driver = paged(ToyModel(), block_size, num_blocks=200, columns=40)
    assert driver.greedy(PROMPTS, 9, chunk) == [reference.greedy(prompt, 9) for prompt in PROMPTS]


@pytest.mark.parametrize("vocab_size", [2, 100, 256])
def test_logits_are_those_of_the_reference_no_two_alike(vocab_size):
    model = ToyModel(vocab_size)
    prompt = [token % vocab_size for token in PROMPTS[2]]
    logits = paged(model, 4).step([], [(Row(prompt), len(prompt))])
    assert logits.dtype == torch.float32
    assert logits[0].double().tolist() == reference.logits(prompt, vocab_size).tolist()
    assert len(set(logits[0].tolist())) == vocab_size
    assert 0 <= logits.min() and logits.max() < 8


def next_logits(change):
    """Logits after one decode step whose inputs or cache ``change`` has spoiled."""
    driver = paged(ToyModel(), 4)
    row, other = Row(list(range(10))), Row(list(range(50, 60)))
    driver.step([], [(row, 10), (other, 10)])
    row.tokens.append(33)
    inputs = driver.batch([row], [])
    change(inputs, driver.kv, other)
    return driver.model.forward(inputs, driver.kv)[0].tolist()


def set_token(inputs, kv, other):
    inputs.token_ids[0] = 0


def set_position(inputs, kv, other):
    inputs.positions[0] += 1


def take_a_block_of_another(inputs, kv, other):
    inputs.block_table[0, 1] = other.blocks[1]  # where the earlier key lies


def take_the_last_block_of_another(inputs, kv, other):
    inputs.block_table[0, 2] = other.blocks[2]


def lose_a_total(inputs, kv, other):
    kv[1][inputs.block_table[0, 2], 1] = 0


def lose_a_key(inputs, kv, other):
    kv[0][inputs.block_table[0, 1], 2] = 0


@pytest.mark.parametrize(
    "change",
    [set_token, set_position, take_a_block_of_another, take_the_last_block_of_another, lose_a_total, lose_a_key],
)
def test_anything_wrong_changes_the_output(change):
    assert next_logits(change) != next_logits(lambda *unchanged: None)


def test_any_in_range_index_is_tolerated():
    """In a wrong combination of switches the indices may belong to another step."""
    driver = paged(ToyModel(), 4)
    inputs = driver.batch([], [(Row(list(range(7))), 7), (Row([1, 2]), 2)])
    for name in ("cu_seqlens_q", "output_index", "positions", "seq_lens"):
        spoiled = driver.batch([], [(Row(list(range(7))), 7), (Row([1, 2]), 2)])
        for value in (0, 3, 200):
            getattr(spoiled, name).fill_(value)
            assert driver.model.forward(spoiled, driver.kv).shape == (2, 256)
    assert driver.model.forward(inputs, driver.kv).isfinite().all()


def test_text_is_bytes():
    model = ToyModel()
    assert model.encode("aé") == [97, 195, 169]
    assert model.decode([0, 25, 26]) == "aza"
    assert ToyModel(100).encode("é") == [95, 69]


def test_moving_keeps_everything():
    model = ToyModel(50, 99, (3,))
    moved = model.to(torch.device("cpu"))
    assert isinstance(moved, Model)
    assert (moved.vocab_size, moved.max_model_len, moved.eos_token_ids) == (50, 99, (3,))


@pytest.mark.parametrize("size", [0, 1, 257])
def test_the_vocabulary_is_at_most_a_byte(size):
    with pytest.raises(InvalidArgument, match=f"vocab_size={size}: 2 to 256"):
        ToyModel(size)


def test_one_graph_serves_every_context():
    assert ToyModel().context_bucket(3, 100) == 100
