"""A property test: whatever arrives whenever, under any costs, all loops give each request's tokens alone."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from labkit.device.costs import Adversary, load_profile
from labkit.entry import Engine
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from tests.engine.harness import CONTEXT, RIGHT, Ask, ask, expected, play, prompt

PROFILE = load_profile("h200-8b")
RARE_ENDS, FREQUENT_ENDS = (7,), tuple(range(0, 256, 11))

asks = st.builds(
    lambda length, salt, limit, step, arrival, hot, ends: ask(
        prompt(length, salt),
        limit,
        at_step=step,
        arrival_ns=arrival,
        temperature=1.0 if hot else 0.0,
        seed=salt,
        eos_token_ids=FREQUENT_ENDS if ends else None,
    ),
    length=st.integers(1, 24),
    salt=st.integers(0, 3),
    limit=st.integers(1, 16),
    step=st.integers(0, 20),
    arrival=st.integers(0, 300_000_000),
    hot=st.booleans(),
    ends=st.booleans(),
)


@st.composite
def capacities(draw: st.DrawFn) -> Sizes:
    """Any pool that holds the largest request alone: 39 tokens."""
    block_size = draw(st.sampled_from([1, 3, 4, 16]))
    least = -(-39 // block_size)
    return Sizes(
        max_rows=draw(st.integers(1, 6)),
        token_budget=draw(st.integers(1, 40)),
        block_size=block_size,
        num_blocks=draw(st.integers(least, 4 * least)),
        max_model_len=CONTEXT,
    )


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking a failure takes minutes; for that, run it alone without this line
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(asks, min_size=1, max_size=9), capacities(), st.integers(0, 2**32), st.sampled_from([(), RARE_ENDS]))
def test_all_loops_agree(requests: list[Ask], sizes: Sizes, costs: int, ends: tuple[int, ...]) -> None:
    """``play`` checks blocks, events and the idle state on the way; ``costs`` bends every duration."""
    model = ToyModel(max_model_len=CONTEXT, eos_token_ids=ends)
    wanted = expected(requests, 16, model)
    for rung in RIGHT:
        adversary = Adversary(PROFILE, costs)
        with Engine(model, switches=rung, sizes=sizes, profile=adversary, trace=False) as engine:
            assert play(engine, requests).outcomes == wanted
