"""Runs of the toy model that the tests of the views share: requests of several lengths, few rows, small blocks."""

from functools import lru_cache

from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.sizes import Sizes

SIZES = Sizes(max_rows=4, token_budget=12, block_size=4, num_blocks=40, max_model_len=64)
PROMPTS = [[(7 * request + place) % 200 + 1 for place in range(3 + 4 * request)] for request in range(6)]
LENGTHS = (3, 9, 5, 8, 6, 7)


@lru_cache
def mixed_run(rung: int) -> Run:
    """Six requests in four rows: prefill chunks beside decodes, requests that come and go."""
    params = [SamplingParams(max_new_tokens=count, eos_token_ids=()) for count in LENGTHS]
    with Engine(ToyModel(), switches=rung, sizes=SIZES, unsafe=True) as engine:
        return engine.generate(PROMPTS, params)
