"""One hash of the traces of fifty fixed programs, to compare between processes, Python versions and machines.

python -m tests.devices.trace_hash
"""

from __future__ import annotations

import hashlib
import platform

from labkit.device.costs import Adversary
from tests.devices.program import contract_profile
from tests.devices.stream_programs import Draw, draw_program, run

PROGRAMS = 50


def draws(seed: int) -> Draw:
    """Integers from a generator of our own (a linear congruential one, by Knuth), so that no library has a say."""
    state = seed

    def draw(low: int, high: int) -> int:
        nonlocal state
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        return low + (state >> 33) % (high - low + 1)

    return draw


def trace_hash(programs: int = PROGRAMS) -> str:
    """The hash over all traces, half of them under costs of an adversary."""
    total = hashlib.sha256()
    for number in range(programs):
        steps = draw_program(draws(number), careful=number % 4 == 0, length=30)
        costs = Adversary(contract_profile(query_ns=100), number) if number % 2 else None
        total.update(run(steps, costs).hash.encode())
    return total.hexdigest()


if __name__ == "__main__":
    print(f"{trace_hash()} Python {platform.python_version()}")
