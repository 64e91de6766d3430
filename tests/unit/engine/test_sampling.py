"""The sampler against a plain reference in NumPy, and frequencies over many seeds."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from labkit.engine.sampling import SamplingInputs, SamplingParams, check_integer, logprobs_of, sample
from labkit.errors import InvalidArgument

VOCAB = 8
LOGITS = torch.tensor([2.0, 1.0, 0.5, 0.0, -0.5, -1.0, 3.0, 1.5])
DRAWS = 4000


def inputs(rows, *, temperature=1.0, top_p=1.0, top_k=0, seeds=None, position=7):
    def full(value, dtype):
        return torch.full((rows,), value, dtype=dtype)

    seed = full(0, torch.int32) if seeds is None else torch.tensor(seeds, dtype=torch.int32)
    return SamplingInputs(
        full(temperature, torch.float32),
        full(top_p, torch.float32),
        full(top_k, torch.int32),
        seed,
        full(position, torch.int32),
    )


def draw(**options):
    """Frequencies [V] over ``DRAWS`` seeds."""
    tokens = sample(LOGITS.expand(DRAWS, VOCAB), inputs(DRAWS, seeds=range(DRAWS), **options))
    return np.bincount(tokens.numpy(), minlength=VOCAB) / DRAWS


def reference(temperature=1.0, top_p=1.0, top_k=0):
    """Probabilities [V]: temperature, then top-k, then top-p, the field's order."""
    scaled = LOGITS.double().numpy() / temperature
    order = np.argsort(-scaled, kind="stable")
    kept = order[: top_k or VOCAB]
    probabilities = np.exp(scaled[kept] - scaled.max())
    probabilities /= probabilities.sum()
    size = int(np.searchsorted(np.cumsum(probabilities), top_p, side="left")) + 1 if top_p < 1 else len(kept)
    result = np.zeros(VOCAB)
    result[kept[:size]] = probabilities[:size] / probabilities[:size].sum()
    return result


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 3.0},
        {"top_k": 1},
        {"top_k": 3},
        {"top_k": 100},
        {"top_p": 0.3},
        {"top_p": 0.75},
        {"top_p": 0.999},
        {"temperature": 2.0, "top_k": 5, "top_p": 0.8},
    ],
)
def test_frequencies_are_the_probabilities(options):
    """Seeds are fixed, so this is exact; 4 standard deviations of 4000 draws are at most 0.032."""
    found, wanted = draw(**options), reference(**options)
    assert np.abs(found - wanted).max() < 0.032
    assert (found[wanted == 0] == 0).all(), "nothing outside top-k and top-p"
    assert (found[wanted > 0.01] > 0).all()


def test_draws_of_different_positions_are_independent():
    by_position = [
        sample(LOGITS.expand(DRAWS, VOCAB), inputs(DRAWS, seeds=range(DRAWS), position=at)).numpy() for at in (7, 8)
    ]
    found = np.mean(by_position[0] == by_position[1])
    assert abs(found - (reference() ** 2).sum()) < 0.032


def test_a_row_draws_the_same_alone_and_in_any_batch():
    batch = inputs(5, seeds=[4, 9, 4, 2**31 - 1, 0])
    tokens = sample(LOGITS.expand(5, VOCAB), batch)
    for row, seed in enumerate(batch.seed.tolist()):
        assert sample(LOGITS[None], inputs(1, seeds=[seed])).item() == tokens[row]
    assert tokens[0] == tokens[2]


def test_greedy_rows_among_random_ones():
    mixed = inputs(3, seeds=[1, 2, 3])
    mixed.temperature[1] = 0.0
    tokens = sample(LOGITS.expand(3, VOCAB), mixed)
    assert tokens[1] == LOGITS.argmax()
    assert sample(LOGITS.expand(3, VOCAB), None).tolist() == [6, 6, 6]


@pytest.mark.parametrize("options", [{"temperature": 1e-38}, {"temperature": 1e-45}, {"top_p": 1e-45}, {"top_p": 0.0}])
def test_extremes_that_leave_the_most_likely_token(options):
    assert draw(**options)[6] == 1.0


def test_the_most_likely_token_stays_among_equals():
    equal = torch.zeros(DRAWS, 3)
    tokens = sample(equal, inputs(DRAWS, seeds=range(DRAWS), top_p=0.5))
    assert set(tokens.tolist()) == {0, 1}, "1/3 and 2/3: the second reaches one half"


def test_logprobs_are_of_the_unmodified_distribution():
    tokens = torch.tensor([6, 0])
    wanted = np.log(reference())[[6, 0]]
    assert logprobs_of(LOGITS.expand(2, VOCAB), tokens).tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_new_tokens", 0),
        ("max_new_tokens", True),
        ("max_new_tokens", 1.0),
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", 1e39),
        ("temperature", "1"),
        ("top_p", 0),
        ("top_p", 1.5),
        ("top_p", math.nan),
        ("top_k", -1),
        ("top_k", 2**31),
        ("seed", -1),
        ("seed", 2**31),
        ("logprobs", 1),
        ("eos_token_ids", 3),
        ("eos_token_ids", "3"),
    ],
)
def test_bad_parameters_name_themselves(name, value):
    with pytest.raises(InvalidArgument) as caught:
        SamplingParams(**{name: value})
    assert caught.value.argument == name
    assert caught.value.value is value


def test_numbers_of_other_kinds_are_taken():
    params = SamplingParams(np.int64(3), np.float32(0.5), top_k=np.int32(4), top_p=Fraction(1, 2), seed=np.uint8(7))
    assert (params.max_new_tokens, params.temperature, params.top_k) == (3, 0.5, 4)


def test_check_integer_says_what_is_allowed():
    check_integer("x", 3, 1, 5)
    with pytest.raises(InvalidArgument, match=r"^x=6: an integer of at least 1 and at most 5$"):
        check_integer("x", 6, 1, 5)
    with pytest.raises(InvalidArgument, match=r"^x=None: an integer of at least 1$"):
        check_integer("x", None, 1)
