"""A real engine in which one part is the learner's, and sentences about what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from labkit.device.costs import Profile
from labkit.engine.core import EngineCore
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import EngineFault
from labkit.lessons.result import Result
from labkit.run import Run
from labkit.sizes import Sizes
from labkit.switches import Switches

Tokens = list[list[int]]
SIZES = Sizes(max_rows=4, num_blocks=64, max_model_len=64, block_size=4)
PROMPTS: tuple[tuple[int, ...], ...] = ((1, 2, 3, 4), (2, 2, 3, 4), (3, 2, 3, 4), (4, 2, 3, 4))


class Refusal(Exception):
    """Ends a run early with what there is to say."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.says)
        self.result = result


@contextmanager
def patched_engine(
    device: str,
    switches: str | int | Switches,
    change: Callable[[EngineCore], Any] = lambda core: None,
    *,
    model: Any = None,
    sizes: Sizes = SIZES,
    observers: Sequence[Any] = (),
    profile: str | Profile = "article-8b",
) -> Iterator[Engine]:
    """An engine with ``change`` applied to it; an error of the learner's comes out as it is, not as an EngineFault."""
    options: dict[str, Any] = {"switches": switches, "device": device, "sizes": sizes, "profile": profile}
    options |= {"unsafe": True, "observers": observers}
    build = Engine.from_pretrained("toy", **options) if model is None else Engine(model, **options)
    with build as engine:
        change(engine.core)
        try:
            yield engine
        except EngineFault as fault:
            raise fault.__cause__ or fault from None


def run_patched(
    device: str,
    switches: str | int | Switches,
    change: Callable[[EngineCore], Any] = lambda core: None,
    *,
    prompts: Sequence[Sequence[int]] = PROMPTS,
    params: SamplingParams | Sequence[SamplingParams] | None = None,
    **options: Any,
) -> Run:
    """``generate`` on such an engine; 12 tokens each and no end-of-sequence unless ``params`` says otherwise."""
    params = params or SamplingParams(max_new_tokens=12, eos_token_ids=())
    with patched_engine(device, switches, change, **options) as engine:
        return engine.generate(prompts, params)


def right_tokens(tokens: Tokens, expected: Tokens) -> str:
    """``13 of 48 tokens are right``"""
    same = sum(
        a == b for mine, theirs in zip(tokens, expected, strict=True) for a, b in zip(mine, theirs, strict=False)
    )
    return f"{same} of {sum(map(len, expected))} tokens are right"


def counted(number: int, what: str) -> str:
    """``1 race``, ``2 races``"""
    return f"{number} {what}" + "s" * (number != 1)


def reverse_rows(core: EngineCore) -> None:
    """The rows that decode in reverse order."""
    core.scheduler.arrange = lambda decodes: decodes[::-1]  # type: ignore[method-assign]
