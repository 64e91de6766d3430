"""The real engine with the learner's own function in place of what orders its streams (``engine/ordering.py``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from labkit.engine.ordering import Streams
from labkit.engine.slots import Slot
from labkit.entry import Engine
from labkit.lessons.support.judging import unwrapped
from labkit.run import Run
from labkit.switches import ladder

MOMENTS = ("uploaded", "before_compute", "computed", "before_download", "downloaded", "before_read")
PROMPTS = tuple((request + 1, 2, 3, 4) for request in range(8))
NEW_TOKENS = 8

Order = Callable[[str, Slot, Streams], Any]


class Ordering:
    """Calls the learner's function with the name of each moment at which the engine asks for order."""

    def __init__(self, streams: Streams, order: Order) -> None:
        self._streams, self._order = streams, order

    def __getattr__(self, moment: str) -> Callable[[Slot], None]:
        if moment not in MOMENTS:
            raise AttributeError(moment)
        return lambda slot: self._order(moment, slot, self._streams)


def run_ordered(order: Order, device: str = "virtual") -> Run:
    """Rung 1 (three streams, nothing between them) with ``order`` called at every moment; eight requests.

    Raises:
        Whatever ``order`` raises.
    """

    def generate() -> Run:
        switches = ladder("streams")
        with Engine.from_pretrained(
            "toy", switches=switches, device=device, profile="article-8b", unsafe=True
        ) as engine:
            engine.core.order = Ordering(engine.core.streams, order)  # type: ignore[assignment]
            return engine.generate(PROMPTS, max_new_tokens=NEW_TOKENS)

    run: Run = unwrapped(generate)
    return run


@cache
def right_tokens() -> list[list[int]]:
    """The tokens of the same requests on rung 0: the toy model gives the same ones on every device."""
    with Engine.from_pretrained("toy", switches=ladder("default_stream"), profile="article-8b") as engine:
        return engine.generate(PROMPTS, max_new_tokens=NEW_TOKENS).tokens
