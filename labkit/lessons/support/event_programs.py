"""Programs in which the answers of lesson 04 are tried: two steps in flight, an event to poll, a diamond of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.device.api import Buffer, Stream, Work
from labkit.errors import InvalidArgument, LabkitError
from labkit.lessons.playground import KERNEL_US, Playground
from labkit.virtual_gpu import VirtualGPU

MOST_CALLS = 20_000  # of a function that an answer may call in a loop: more is a loop without end


class EndlessLoop(LabkitError):
    """An answer called the same thing without end."""


def limited(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The same function, which raises when it is called too often."""
    calls = 0

    def call(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > MOST_CALLS:
            raise EndlessLoop(f"your loop called {what} {MOST_CALLS:,} times: nothing that happens in it ends it")
        return function(*arguments)

    return call


@dataclass(frozen=True)
class Step:
    """The buffers of one step."""

    x_host: Buffer
    x: Buffer
    y: Buffer
    y_host: Buffer


class TwoSteps(Playground):
    """A playground with buffers for two steps. ``run`` enqueues all of a step, with the waits between its streams."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.steps = (Step(self.x_host, self.x, self.y, self.y_host), self._more())
        self._ready = [[self.event(f"{what}_{number}") for what in ("uploaded", "doubled")] for number in range(2)]
        for value, step in zip((21, 50), self.steps, strict=True):
            self.write(value, step.x_host)
        self.device.take()

    def _more(self) -> Step:
        names = ("x_host_1", "pinned"), ("x_1", "device"), ("y_1", "device"), ("y_host_1", "pinned")
        return Step(*(self.buffer(name, place) for name, place in names))

    def run(self, step: Step) -> None:
        """Enqueue upload, kernel and download of a step on ``h2d``, ``compute`` and ``d2h``; the host does not wait."""
        number = self.steps.index(step)
        uploaded, doubled = self._ready[number]
        with self.device.phase("enqueue", step=number):
            self.upload(step.x, step.x_host)
            uploaded.record(self.h2d)
            self.compute.wait_event(uploaded)
            self.double(step.y, step.x)
            doubled.record(self.compute)
            self.d2h.wait_event(doubled)
            self.download(step.y_host, step.y)


class Polling(Playground):
    """A playground in which everything is enqueued and recorded, and only the host's side is left to write."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.pieces = 0
        self.device.query = limited(self.device.query, "query()")
        uploaded, doubled, self.landed = (self.event(name) for name in ("uploaded", "doubled", "landed"))
        self.write(21)
        self.upload()
        uploaded.record(self.h2d)
        self.compute.wait_event(uploaded)
        self.double()
        doubled.record(self.compute)
        self.d2h.wait_event(doubled)
        self.download()
        self.landed.record(self.d2h)
        self.work = limited(self._work, "work()")

    def _work(self) -> None:
        """10 us of the host's own work."""
        with self.device.phase("work", step=-1):
            self.device.sleep_until(self.device.now_ns() + 10_000)
        self.pieces += 1


class Diamond(Playground):
    """Two kernels that both read ``x`` and could run side by side, and a third that adds their results.

    double   y = 2 * x on ``compute``
    triple   z = 3 * x on ``side``
    add      y = y + z on ``compute``
    """

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.side: Stream = self.device.stream("side")
        self.z = self.buffer("z", "device")
        self.device.take()

    def double(self, dst: Buffer | None = None, src: Buffer | None = None, stream: Stream | None = None) -> None:
        """Enqueue ``y = 2 * x`` on ``compute``; it fills half of the GPU."""
        y, x = dst or self.y, src or self.x
        self._half("double", lambda: y.tensor.copy_(x.tensor).mul_(2), stream or self.compute, [x], [y])

    def triple(self) -> None:
        """Enqueue ``z = 3 * x`` on ``side``; it fills half of the GPU."""
        self._half("triple", lambda: self.z.tensor.copy_(self.x.tensor).mul_(3), self.side, [self.x], [self.z])

    def add(self) -> None:
        """Enqueue ``y = y + z`` on ``compute``."""
        self._half("add", lambda: self.y.tensor.add_(self.z.tensor), self.compute, [self.y, self.z], [self.y])

    def _half(self, name: str, fn: Any, stream: Stream, reads: list[Buffer], writes: list[Buffer]) -> None:
        work = Work("fixed", fixed_ns=round(KERNEL_US * 1000), fraction=0.5)
        self.device.launch(fn, stream, reads=reads, writes=writes, work=work, label=name)


def short_program(text: str) -> VirtualGPU:
    """Run a program in shorthand on a virtual GPU whose calls take no time; the GPU has the times and the trace.

    ``A30`` is a kernel of 30 us on stream 1 that writes ``x``, ``B10`` one of 10 us on stream 2 that reads it, each on
    0.3 of the GPU. ``record`` records one event on stream 1, ``wait`` makes stream 2 wait for it, ``host50`` is 50 us
    of the host's own work and ``sync`` its wait for the event.

    Raises:
        InvalidArgument: a word that is none of these.
    """
    gpu = VirtualGPU("zero")
    one, two, event = gpu.Stream(), gpu.Stream(), gpu.Event()
    x = gpu.empty(1, device="cuda", name="x")
    for word in text.split():
        verb, us = word.rstrip("0123456789"), word.lstrip("ABhost")
        if verb == "A" and us:
            gpu.kernel(word, float(us), writes=[x], stream=one, fraction=0.3)
        elif verb == "B" and us:
            gpu.kernel(word, float(us), reads=[x], stream=two, fraction=0.3)
        elif verb == "host" and us:
            gpu.host(float(us))
        elif word == "record":
            event.record(one)
        elif word == "wait":
            two.wait_event(event)
        elif word == "sync":
            event.synchronize()
        else:
            raise InvalidArgument("word", word, "A30, B10, host50 (with a number), record, wait or sync")
    return gpu


def starts(gpu: VirtualGPU, kernel: str) -> list[float]:
    """When the kernels with this letter start, us."""
    return [span.start_ns / 1000 for span in gpu.trace().of_kind("kernel") if span.name.startswith(kernel)]
