"""Whether the race checker can be trusted: every combination of switches, under costs that an adversary draws.

    python benchmarks/soundness.py [SEEDS]        default: 100

For all 64 combinations, wrong ones included: wrong tokens under any seed must mean that the checker or ``explain``
named a cause, a clean verdict of both must mean right tokens under every seed, and the verdict must not depend on the
seed. Exits with 1 where one of these does not hold.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass, field

from labkit.analysis.conflicts import find_conflicts
from labkit.analysis.notices import notices
from labkit.device.costs import Adversary, load_profile
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.experiments import sizes_for, synthetic_prompts
from labkit.model import load_model
from labkit.run import Run
from labkit.switches import MECHANISMS, Switches, explain

MODEL = load_model("toy")
PROMPTS, PARAMS = synthetic_prompts(MODEL, 4, 9), SamplingParams(max_new_tokens=7)


@dataclass
class Tally:
    """What was seen of one combination."""

    verdicts: set[tuple[tuple[str, ...], ...]] = field(default_factory=set)
    right: int = 0
    wrong: int = 0

    @property
    def named(self) -> bool:
        """Whether the checker found something."""
        return any(any(verdict) for verdict in self.verdicts)


def generate(switches: Switches, seed: int) -> Run:
    costs = Adversary(load_profile("h200-8b"), seed)
    sizes = sizes_for(MODEL, PROMPTS, PARAMS)
    with Engine(MODEL, switches=switches, profile=costs, sizes=sizes, unsafe=True) as engine:
        return engine.generate(PROMPTS, PARAMS)


def verdict(run: Run) -> tuple[tuple[str, ...], ...]:
    assert run.trace is not None
    races = tuple(f"{conflict.key} x{conflict.count}" for conflict in find_conflicts(run.trace))
    return races, tuple(map(str, notices(run.trace)))


def tally(switches: Switches, seeds: int, reference: list[list[int]]) -> Tally:
    seen = Tally()
    for seed in range(seeds):
        run = generate(switches, seed)
        seen.verdicts.add(verdict(run))
        seen.right += run.tokens == reference
        seen.wrong += run.tokens != reference
    return seen


def main(seeds: int) -> int:
    reference = generate(Switches(), 0).tokens
    counts = dict.fromkeys(
        ("named by the checker", "named by explain alone", "clean and right", "UNSOUND", "UNSTABLE"), 0
    )
    for values in itertools.product((False, True), repeat=len(MECHANISMS)):
        switches = Switches(**dict(zip(MECHANISMS, values, strict=True)))
        seen = tally(switches, seeds, reference)
        explained = not explain(switches).right
        kind = "named by the checker" if seen.named else "named by explain alone" if explained else "clean and right"
        if seen.wrong and kind == "clean and right":
            kind = "UNSOUND"
        counts[kind] += 1
        counts["UNSTABLE"] += len(seen.verdicts) > 1
        print(
            f"{', '.join(switches.on) or 'nothing':<86} right {seen.right:>3}, wrong {seen.wrong:>3}: {kind}",
            flush=True,
        )
    print(
        f"\n{2 ** len(MECHANISMS)} combinations x {seeds} seeds: "
        + ", ".join(f"{n} {kind}" for kind, n in counts.items())
    )
    return 1 if counts["UNSOUND"] or counts["UNSTABLE"] else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
