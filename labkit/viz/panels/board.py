"""What the Switchboard knows: a setup, the run that it gives, and the run before it. No widgets here.

Every setup runs the same made-up requests on the virtual GPU with the toy model, so an answer takes some 20 ms, and is
kept: going back costs nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from labkit.analysis.occupancy import Report
from labkit.analysis.races import RaceReport, check, count_races
from labkit.device.costs import load_profile, profile_names, scaled_host
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes
from labkit.errors import InvalidArgument
from labkit.experiments import synthetic_prompts
from labkit.model.toy import ToyModel
from labkit.run import Run
from labkit.switches import MECHANISMS, RUNGS, Explanation, Switches, explain, ladder
from labkit.trace.events import Trace
from labkit.viz.bars import Selection, select

PROMPT_TOKENS, NEW_TOKENS = 8, 8
BATCHES = (1, 2, 4, 8, 16, 32)
BUDGETS = (8, 16, 32, 64, 128, 256)
HOST_SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)
MOST_BARS = 4000  # the largest run that can be set up has fewer
_KEPT = 200  # answers

RIGHT, LUCKY, WRONG = "right", "lucky", "wrong"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the controls say.

    batch         requests, all of which are in every batch that the token budget has room for
    token_budget  tokens in one batch, prefill chunks included
    host_speed    2.0 is a host twice as fast as the profile's
    profile       what things cost on the virtual GPU
    """

    switches: Switches = field(default_factory=Switches)
    batch: int = 8
    token_budget: int = 256
    host_speed: float = 1.0
    profile: str = "article-8b"

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise InvalidArgument(name, getattr(self, name), f"one of {', '.join(map(str, known))}")

    @property
    def rung(self) -> int:
        """The rung of the ladder that these switches are, -1 for none."""
        return next((number for number, rung in enumerate(RUNGS) if rung() == self.switches), -1)


_CHOICES: dict[str, tuple[Any, ...]] = {
    "batch": BATCHES,
    "token_budget": BUDGETS,
    "host_speed": HOST_SPEEDS,
    "profile": profile_names(),
}


@dataclass(frozen=True)
class Outcome:
    """One run and what to say about it. ``reference`` holds the tokens of rung 0 for the same requests."""

    setup: Setup
    run: Run
    reference: list[list[int]]

    @property
    def trace(self) -> Trace:
        assert self.run.trace is not None
        return self.run.trace

    @cached_property
    def report(self) -> Report:
        return self.run.report()

    @cached_property
    def selection(self) -> Selection:
        """The bars of the run's timeline."""
        return select(self.trace, None, None, MOST_BARS)

    @cached_property
    def races(self) -> int:
        """How many different races the run has."""
        return count_races(self.trace)

    @cached_property
    def race_report(self) -> RaceReport:
        """The races with their fixes, which take longer than counting them."""
        return check(self.trace)

    @cached_property
    def explanation(self) -> Explanation:
        return explain(self.setup.switches)

    @property
    def total_tokens(self) -> int:
        return sum(map(len, self.run.tokens))

    @cached_property
    def wrong_tokens(self) -> int:
        """Tokens that differ from the reference's at the same place, missing ones included."""
        pairs = zip(self.run.tokens, self.reference, strict=True)
        return sum(
            sum(a != b for a, b in zip(ours, theirs, strict=False)) + abs(len(ours) - len(theirs))
            for ours, theirs in pairs
        )

    @property
    def verdict(self) -> str:
        """``right``; ``lucky``: the right tokens in spite of a race; or ``wrong``."""
        return WRONG if self.wrong_tokens else LUCKY if self.races else RIGHT

    @property
    def tokens_per_s(self) -> float:
        return self.total_tokens * 1e9 / self.report.window_ns if self.report.window_ns else 0.0


class Board:
    """The Switchboard without its widgets: ``change`` the setup, then look at ``outcome`` and ``previous``."""

    def __init__(self, setup: Setup | None = None) -> None:
        self.setup = setup or Setup()
        self.previous: Outcome | None = None
        self._model = ToyModel()
        self._kept: OrderedDict[Setup, Outcome] = OrderedDict()

    @property
    def outcome(self) -> Outcome:
        """The run of the present setup."""
        return self.outcome_of(self.setup)

    def change(self, **changes: Any) -> Outcome:
        """Change fields of the setup or single mechanisms, by name; returns the new outcome.

        Raises:
            InvalidArgument: an unknown name, or a value that is not offered.
        """
        flips = {name: changes.pop(name) for name in MECHANISMS if name in changes}
        known = {*_CHOICES, "switches"}
        for name, value in changes.items():
            if name not in known:
                raise InvalidArgument(name, value, f"one of {', '.join([*sorted(known), *MECHANISMS])}")
        setup = replace(self.setup, **changes)
        setup = replace(setup, switches=setup.switches.with_(**flips))
        if setup != self.setup:
            before, self.previous = self.setup, None  # nothing stale is shown if the run fails
            self.setup = setup
            self.outcome_of(setup)
            self.previous = self.outcome_of(before)
        return self.outcome

    def flip(self, mechanism: str) -> Outcome:
        """Turn one mechanism on or off."""
        return self.change(**{mechanism: not getattr(self.setup.switches, mechanism, False)})

    def choose_rung(self, rung: int | str) -> Outcome:
        """The switches of a rung."""
        return self.change(switches=ladder(rung))

    def outcome_of(self, setup: Setup) -> Outcome:
        """The run of any setup, run now or taken from those that are kept."""
        if setup not in self._kept:
            oracle = replace(setup, switches=Switches())
            run = self._generate(setup)
            reference = run.tokens if setup == oracle else self.outcome_of(oracle).run.tokens
            self._kept[setup] = Outcome(setup, run, reference)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(setup)
        return self._kept[setup]

    def _generate(self, setup: Setup) -> Run:
        prompts = synthetic_prompts(self._model, setup.batch, PROMPT_TOKENS)
        sizes = default_sizes(
            self._model,
            max_rows=setup.batch,
            token_budget=setup.token_budget,
            max_model_len=PROMPT_TOKENS + NEW_TOKENS,
        )
        profile = scaled_host(load_profile(setup.profile), 1 / setup.host_speed)
        with Engine(self._model, switches=setup.switches, profile=profile, sizes=sizes, unsafe=True) as engine:
            return engine.generate(prompts, SamplingParams(max_new_tokens=NEW_TOKENS))
