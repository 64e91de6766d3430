"""Host time per step of the engine: all six phases, no model, no trace, and a device that does nothing.

    python benchmarks/host_time.py [--rung carry_over] [--steps 300]

Prints the median and the 5th and 95th percentile of one step's wall time in ms, for 32 and 256 requests that decode.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from labkit.device.api import Buffer, Event, Graph, Place, Stream
from labkit.engine.assemble import assemble
from labkit.engine.sampling import SamplingParams
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes
from labkit.switches import ladder

_NOTHING: AbstractContextManager[None] = nullcontext()


class NullDevice:
    """Accepts every call and does nothing: what is left is the engine's own Python."""

    name, warm_up_before_capture = "null", False

    def __init__(self) -> None:
        self.default_stream = Stream("default", self)  # type: ignore[arg-type]

    def buffer(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, place: Place, fill: float | None = None
    ) -> Buffer:
        return Buffer(name, place, torch.zeros(tuple(shape), dtype=dtype))

    def stream(self, name: str, *, priority: int = 0) -> Stream:
        return Stream(name, self)  # type: ignore[arg-type]

    def event(self, name: str) -> Event:
        return Event(name, self)  # type: ignore[arg-type]

    def graph_pool(self) -> None: ...

    def launch(self, fn: Callable[[], None], stream: Stream, **options: Any) -> None: ...

    def copy(self, dst: Buffer, src: Buffer, stream: Stream, **options: Any) -> None: ...

    @contextmanager
    def capture(self, name: str, stream: Stream, pool: Any = None):  # type: ignore[no-untyped-def]
        yield Graph(name, self)  # type: ignore[arg-type]

    def replay(self, graph: Graph, stream: Stream, work: Any = None) -> None: ...

    def record(self, event: Event, stream: Stream) -> None: ...

    def wait(self, stream: Stream, event: Event) -> None: ...

    def synchronize(self, target: Any = None) -> None: ...

    def host_read(self, buffer: Buffer) -> torch.Tensor:
        return buffer.tensor

    def host_write(self, buffer: Buffer) -> AbstractContextManager[None]:
        return _NOTHING

    def phase(self, name: str, **place: Any) -> AbstractContextManager[None]:
        return _NOTHING

    def now_ns(self) -> int:
        return 0

    def sleep_until(self, when_ns: int) -> None: ...

    def free(self, buffer: Buffer) -> None: ...

    def reset(self) -> None: ...


def step_times(requests: int, steps: int, rung: str) -> list[float]:
    """Wall time of each decode step, ms."""
    sizes = Sizes(
        max_rows=requests,
        token_budget=max(512, requests),
        block_size=16,
        max_model_len=2048,
        num_blocks=requests * 128,
    )
    engine = assemble(ladder(rung), sizes, NullDevice(), ToyModel())  # type: ignore[arg-type]
    for request in range(requests):
        engine.submit([request % 256] * 128, SamplingParams(max_new_tokens=steps + 200))
    while engine.scheduler.waiting:
        engine.step()
    for _ in range(50):
        engine.step()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        events = engine.step()
        times.append((time.perf_counter() - start) * 1e3)
        assert len(events) == requests
    return times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rung", default="carry_over")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    print(f"{arguments.rung}, Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}")
    print(f"{'requests':>9}{'median ms':>11}{'p5':>8}{'p95':>8}")
    for requests in (32, 256):
        times = step_times(requests, arguments.steps, arguments.rung)
        cuts = statistics.quantiles(times, n=20)
        print(f"{requests:>9}{statistics.median(times):>11.3f}{cuts[0]:>8.3f}{cuts[-1]:>8.3f}")


if __name__ == "__main__":
    main()
