"""A request: its prompt, what has been generated, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from labkit.engine.sampling import SamplingParams


class State(Enum):
    """Where a request stands."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(eq=False, slots=True)
class Request:
    """One request.

    tokens    prompt plus the generated tokens that the host knows
    pending   1 while a sampled token is still on the device, else 0; the placeholder stands for it
    computed  tokens whose K and V are in the cache, or will be when the steps in flight have run
    row       row in the batch that sampled the pending token
    """

    id: int
    prompt: list[int]
    params: SamplingParams
    eos_token_ids: frozenset[int]
    arrival_ns: int = 0
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    state: State = State.WAITING
    pending: int = 0
    computed: int = 0
    row: int = -1
    seat: int = -1
    last_step: int = -1
    preemptions: int = 0
    finish_reason: str = ""
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.tokens = list(self.prompt)

    @property
    def output(self) -> list[int]:
        """The generated tokens that the host knows."""
        return self.tokens[len(self.prompt) :]

    @property
    def generated(self) -> int:
        """How many tokens ``output`` has."""
        return len(self.tokens) - len(self.prompt)

    @property
    def total(self) -> int:
        """Tokens known to exist, the pending one included."""
        return len(self.tokens) + self.pending

    @property
    def limit(self) -> int:
        """Tokens at which the request ends by length."""
        return len(self.prompt) + self.params.max_new_tokens

    @property
    def finished(self) -> bool:
        return self.state is State.FINISHED


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One new token, or the end of a request. ``token`` is None for an end that brings no token (cancel, fault)."""

    request_id: int
    token: int | None
    index: int  # position among the generated tokens
    finish_reason: str = ""  # "", "eos", "length", "cancelled", "error"
    logprob: float | None = None
