"""One step's work: which requests are in it, which tokens, and where they go. Made by ``plan``, read by every phase.

Legend: T tokens, R rows. Row i is request i of the batch; decode rows (one token) come first, prefill chunks after.
"""

from __future__ import annotations

from dataclasses import dataclass

from labkit.device.api import Work
from labkit.engine.request import Request
from labkit.model.api import BatchShape


@dataclass(eq=False, slots=True)
class Batch:
    """A planned step.

    starts    position of each row's first token
    counts    tokens of each row
    samples   whether a row samples a token (a chunk that does not reach the end of its prompt samples none)
    carries   row of the previous batch that holds the row's input token, or -1 if the host knows it
    """

    step: int
    requests: list[Request]
    starts: list[int]
    counts: list[int]
    samples: list[bool]
    carries: list[int]
    shape: BatchShape
    context: int  # summed over the rows
    random: bool  # some row is not greedy
    logprobs: bool  # some row wants log-probabilities

    @property
    def rows(self) -> int:
        return len(self.requests)

    @property
    def tokens(self) -> int:
        return self.shape.tokens

    def work(self, kind: str) -> Work:
        """This batch's size, to price a kernel with."""
        return Work(kind, self.rows, self.shape.tokens, self.context)
