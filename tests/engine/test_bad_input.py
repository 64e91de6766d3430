"""Bad input: an error that names the argument, its value and what is allowed; other requests go on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from labkit.engine.sampling import SamplingParams
from labkit.errors import InvalidArgument, LabkitError
from tests.engine.harness import CONTEXT, ask, build, expected, prompt, run_out, sizes

PROMPTS: dict[str, tuple[Any, str]] = {
    "empty": ([], r"prompt=\[\]: at least one token"),
    "empty text": ("", r"prompt=\[\]: at least one token"),
    "empty array": (np.array([], dtype=np.int64), r"prompt=\[\]: at least one token"),
    "too large": ([3, 256], "prompt=256: token ids are integers from 0 to 255"),
    "negative": ([3, -1], "prompt=-1: token ids are integers from 0 to 255"),
    "bool": ([True, 2], "prompt=True: token ids are integers"),
    "float": ([1.0, 2], "prompt=1.0: token ids are integers"),
    "text in a list": (["a"], "prompt='a': token ids are integers"),
    "None in a list": ([None], "prompt=None: token ids are integers"),
    "nested": ([[1, 2]], r"prompt=\[1, 2\]: token ids are integers"),
    "bool tensor": (torch.tensor([True, False]), "prompt=True: token ids are integers"),
    "float tensor": (torch.tensor([1.0]), "prompt=1.0: token ids are integers"),
    "matrix": (torch.tensor([[1, 2]]), r"prompt=\[1, 2\]: token ids are integers"),
    "number": (7, "prompt=7: a sequence of token ids"),
    "nothing": (None, "prompt=None: a sequence of token ids"),
    "no room": (list(prompt(CONTEXT)), f"prompt='{CONTEXT} tokens': at most {CONTEXT - 1}: max_model_len is {CONTEXT}"),
    "very long": ([1] * 100_000, f"prompt='100000 tokens': at most {CONTEXT - 1}"),
}

PARAMS: dict[str, tuple[dict[str, Any], str]] = {
    "zero limit": ({"max_new_tokens": 0}, "max_new_tokens=0: an integer of at least 1"),
    "negative limit": ({"max_new_tokens": -3}, "max_new_tokens=-3: an integer of at least 1"),
    "float limit": ({"max_new_tokens": 2.0}, "max_new_tokens=2.0: an integer"),
    "limit beyond the context": ({"max_new_tokens": CONTEXT - 2}, f"max_new_tokens={CONTEXT - 2}: 1 to {CONTEXT - 3}"),
    "NaN temperature": ({"temperature": math.nan}, "temperature=nan: a number from 0 to 1e38; 0 is greedy"),
    "infinite temperature": ({"temperature": math.inf}, "temperature=inf: a number from 0 to 1e38"),
    "negative temperature": ({"temperature": -0.1}, "temperature=-0.1: a number from 0 to 1e38; 0 is greedy"),
    "temperature beyond float32": ({"temperature": 1e39}, "temperature=1e\\+39: a number from 0 to 1e38"),
    "text temperature": ({"temperature": "hot"}, "temperature='hot': a number from 0 to 1e38"),
    "bool temperature": ({"temperature": True}, "temperature=True: a number from 0 to 1e38"),
    "zero top_p": ({"top_p": 0.0}, "top_p=0.0: a number above 0 and at most 1"),
    "large top_p": ({"top_p": 1.01}, "top_p=1.01: a number above 0 and at most 1"),
    "NaN top_p": ({"top_p": math.nan}, "top_p=nan: a number above 0"),
    "negative top_k": ({"top_k": -1}, "top_k=-1: an integer of at least 0"),
    "huge top_k": ({"top_k": 2**31}, f"top_k={2**31}: an integer of at least 0 and at most {2**31 - 1}"),
    "negative seed": ({"seed": -1}, "seed=-1: an integer of at least 0"),
    "huge seed": ({"seed": 2**31}, f"seed={2**31}: an integer"),
    "logprobs as a count": ({"logprobs": 5}, "logprobs=5: True or False"),
    "one eos id": ({"eos_token_ids": 5}, "eos_token_ids=5: a tuple of token ids"),
    "eos text": ({"eos_token_ids": "5"}, "eos_token_ids='5': a tuple of token ids"),
    "eos outside the vocabulary": ({"eos_token_ids": (3, 256)}, "eos_token_ids=256: token ids are integers from 0 to"),
    "negative eos": ({"eos_token_ids": (-1,)}, "eos_token_ids=-1: token ids are integers"),
    "bool eos": ({"eos_token_ids": (True,)}, "eos_token_ids=True: token ids are integers"),
    "negative arrival": ({"arrival_ns": -1}, "arrival_ns=-1: an integer of at least 0"),
    "float arrival": ({"arrival_ns": 1e9}, "arrival_ns=1000000000.0: an integer"),
    "unknown": ({"temprature": 0.5}, "temprature=0.5: the sampling parameters are max_new_tokens, temperature"),
}


def refuse(bad_prompt: Any, options: dict[str, Any], message: str, rung: int) -> None:
    """The call is refused with that message while another request is running, which then ends as it should."""
    other = ask(prompt(5), 6)
    with build(rung, sizes(4)) as engine:
        request = engine.submit(other.prompt, other.params)
        engine.step()
        with pytest.raises(InvalidArgument, match=message) as caught:
            engine.submit(bad_prompt, **options)
        assert isinstance(caught.value, ValueError)
        run_out(engine)
    assert list(engine.core.requests) == [request.id]
    assert tuple(request.output) == expected([other], 4)[0].tokens


@pytest.mark.parametrize("rung", [0, 6])
@pytest.mark.parametrize("what", PROMPTS)
def test_a_bad_prompt(what: str, rung: int) -> None:
    bad, message = PROMPTS[what]
    refuse(bad, {"max_new_tokens": 1}, message, rung)


@pytest.mark.parametrize("rung", [0, 6])
@pytest.mark.parametrize("what", PARAMS)
def test_a_bad_parameter(what: str, rung: int) -> None:
    bad, message = PARAMS[what]
    refuse([1, 2, 3], bad, message, rung)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ("a text", "prompts='a text': a list of prompts; for one prompt write"),
        (7, "prompts=7: a list of prompts"),
        (None, "prompts=None: a list of prompts"),
        ([1, 2, 3], "prompt=1: a sequence of token ids"),
        ([[1], [2], []], r"prompt=\[\]: at least one token"),
    ],
)
def test_bad_prompts_of_generate_submit_nothing(prompts: Any, message: str) -> None:
    with build(5, sizes(4)) as engine:
        with pytest.raises(InvalidArgument, match=message):
            engine.generate(prompts, max_new_tokens=3)
        assert not engine.busy
        assert engine.core.requests == {}


def test_as_many_params_as_prompts() -> None:
    with build(5, sizes(4)) as engine:
        with pytest.raises(InvalidArgument, match="params='1 entries': one for each of the 2 prompts"):
            engine.generate([[1], [2]], [SamplingParams()])
        with pytest.raises(InvalidArgument, match="params='greedy'"):
            engine.generate([[1]], "greedy")  # type: ignore[arg-type]


def test_every_error_can_be_caught_as_one() -> None:
    with build(5, sizes(4, num_blocks=2)) as engine:
        for bad, options in (([], {}), ([1], {"seed": -1}), ([1], {"max_new_tokens": 60})):
            with pytest.raises(LabkitError):
                engine.submit(bad, **options)
