"""Random stream programs, and what running one on the virtual GPU leaves: values, times, a trace, a verdict.

A program is a list of steps over five streams (three of torch's, a blocking one, the default stream), four events, and
buffers of 64-bit integers. A kernel does ``dst = 31 * dst + src + number``, which says in which order things happened.
A *careful* program waits before each step for every stream, or host access, that touched the same buffers: it has no
race by construction. Another one waits at random.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from labkit import Trace
from labkit.analysis.races import count_races
from labkit.device.costs import Costs
from tests.devices.program import Virtual, contract_profile

Draw = Callable[[int, int], int]  # (low, high) -> an integer between them, both included
STREAMS, EVENTS, BUFFERS, STAGES = 5, 4, 3, 2


@dataclass(frozen=True)
class Step:
    """One call. What ``a``, ``b`` and ``us`` mean depends on ``kind``."""

    kind: str
    stream: int = 0
    a: int = 0
    b: int = 0
    us: int = 0


_STEPS = ("kernel", "kernel", "kernel", "upload", "download", "host_write", "host_read", "replay")
_ORDER = ("record", "wait", "wait_stream", "synchronize", "synchronize_event", "host", "synchronize_all", "query")


def draw_program(draw: Draw, *, careful: bool, length: int) -> list[Step]:
    """A program of about ``length`` steps."""
    steps: list[Step] = []
    used: dict[str, set[int]] = {}  # buffer -> streams that touched it, -1 for the host
    for _ in range(length):
        step = _draw_step(draw, careful)
        if careful:
            steps += _waits(step, used)
        steps.append(step)
    return steps


def _draw_step(draw: Draw, careful: bool) -> Step:
    """Careful programs keep their own order; the others have calls that order things by chance."""
    kinds = _STEPS if careful else _STEPS + _ORDER
    kind = kinds[draw(0, len(kinds) - 1)]
    limit = {"record": EVENTS, "wait": EVENTS, "synchronize_event": EVENTS, "query": EVENTS, "wait_stream": STREAMS}
    a, b = draw(0, limit.get(kind, BUFFERS) - 1), draw(0, STAGES - 1 if kind in ("upload", "download") else BUFFERS - 1)
    return Step(kind, draw(0, STREAMS - 1), a, b, draw(0, 40))


def buffers_of(step: Step) -> tuple[str, ...]:
    """The buffers that a step touches: d device, p pinned."""
    return {
        "kernel": (f"d{step.a}", f"d{step.b}"),
        "upload": (f"d{step.a}", f"p{step.b}"),
        "download": (f"d{step.a}", f"p{step.b}"),
        "host_write": (f"p{step.a % STAGES}",),
        "host_read": (f"p{step.a % STAGES}",),
        "replay": ("d0", "d1"),
    }.get(step.kind, ())


def _waits(step: Step, used: dict[str, set[int]]) -> Iterator[Step]:
    """Wait for everyone else who touched the step's buffers; then the step is the only one who did."""
    me = -1 if step.kind.startswith("host") else step.stream
    for other in sorted(set().union(*(used.get(name, set()) for name in buffers_of(step))) - {me, -1}):
        yield Step("synchronize", other) if me == -1 else Step("wait_stream", me, other)
    for name in buffers_of(step):
        used[name] = {me}


@dataclass
class Result:
    """What a run left. ``values``: host reads in order, then the final contents of every buffer."""

    values: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # the host's clock after each step
    trace: Trace = field(default_factory=lambda: Trace(()))

    @property
    def races(self) -> int:
        """Races that the checker finds."""
        return count_races(self.trace)

    @property
    def hash(self) -> str:
        """Of the whole trace except the lines of this file."""
        spans = [{**asdict(span), "source": ""} for span in self.trace.spans]
        text = repr((spans, self.trace.edges, sorted(self.trace.meta), self.values))
        return hashlib.sha256(text.encode()).hexdigest()


class Machine:
    """A virtual GPU with the streams, events and buffers of a program."""

    def __init__(self, costs: Costs | None, launch_blocking: bool) -> None:
        self.dev = Virtual(costs or contract_profile(query_ns=100), launch_blocking=launch_blocking)
        torch_streams = [self.dev.Stream() for _ in range(STREAMS - 2)]
        self.streams = [*torch_streams, self.dev.foreign_stream(blocking=True), self.dev.default_stream()]
        self.events = [self.dev.Event() for _ in range(EVENTS)]
        self.device = [self._buffer("cuda", n) for n in range(BUFFERS)]
        self.pinned = [self._buffer("cpu", 10 * n) for n in range(STAGES)]
        self.graph = self.dev.CUDAGraph()
        with self.dev.graph(self.graph):
            self.kernel(Step("kernel", STREAMS - 1, 0, 1, 5), 7, self.dev.current_stream())
        self.result = Result()

    def _buffer(self, device: str, value: int) -> Any:
        tensor = self.dev.empty(4, dtype=torch.int64, device=device, pin_memory=device == "cpu")
        tensor.data.fill_(value)
        return tensor

    def run(self, steps: list[Step]) -> Result:
        """Run a program, and wait for its end."""
        for number, step in enumerate(steps):
            getattr(self, step.kind)(step, number, self.streams[step.stream])
            self.result.times.append(self.dev.now)
        self.dev.synchronize()
        self.result.values += [int(value) for tensor in (*self.device, *self.pinned) for value in tensor.data]
        self.result.trace = self.dev.trace()
        return self.result

    def kernel(self, step: Step, number: int, stream: Any) -> None:
        src, dst = self.device[step.a], self.device[step.b]
        fraction = 1.0 if step.us % 2 else 0.3
        self.dev.kernel(step.us, stream, reads=[src, dst], writes=[dst], fn=_mix(number), fraction=fraction)

    def upload(self, step: Step, number: int, stream: Any) -> None:
        self.dev.copy(self.device[step.a], self.pinned[step.b], stream)

    def download(self, step: Step, number: int, stream: Any) -> None:
        self.dev.copy(self.pinned[step.b], self.device[step.a], stream)

    def host_write(self, step: Step, number: int, stream: Any) -> None:
        self.pinned[step.a % STAGES].fill_(1000 + number)

    def host_read(self, step: Step, number: int, stream: Any) -> None:
        self.result.values += self.pinned[step.a % STAGES].tolist()

    def replay(self, step: Step, number: int, stream: Any) -> None:
        self.dev.replay(self.graph, stream)

    def record(self, step: Step, number: int, stream: Any) -> None:
        self.events[step.a].record(stream)

    def wait(self, step: Step, number: int, stream: Any) -> None:
        stream.wait_event(self.events[step.a])

    def wait_stream(self, step: Step, number: int, stream: Any) -> None:
        stream.wait_stream(self.streams[step.a])

    def synchronize(self, step: Step, number: int, stream: Any) -> None:
        stream.synchronize()

    def synchronize_event(self, step: Step, number: int, stream: Any) -> None:
        self.events[step.a].synchronize()

    def synchronize_all(self, step: Step, number: int, stream: Any) -> None:
        self.dev.synchronize()

    def host(self, step: Step, number: int, stream: Any) -> None:
        self.dev.host(step.us)

    def query(self, step: Step, number: int, stream: Any) -> None:
        self.events[step.a].query()


def _mix(number: int) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]:
    return lambda src, dst, _: dst.copy_((31 * dst + src + number) % 1_000_003)


def run(steps: list[Step], costs: Costs | None = None, *, launch_blocking: bool = False) -> Result:
    """Run a program on a fresh machine."""
    return Machine(costs, launch_blocking).run(steps)


def without_queries(steps: list[Step]) -> list[Step]:
    """A query orders the host only where it answers True, so with queries even the verdict depends on costs."""
    return [step for step in steps if step.kind != "query"]
