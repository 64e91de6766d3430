"""Any device, measured: host time of every call and phase, and how long a step's kernels take back to back.

Cheaper than a trace: a call costs a microsecond more, and nothing is kept of it but its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from labkit.device.api import Accesses, Buffer, Event, Graph, Stream, Work
from labkit.device.calibrate.rig import Rig

PhaseSample = tuple[int, int, int, int]  # rows, tokens, host ns without the calls in it, host ns without waits
Kernels = list[tuple[str, Work, int, int]]  # of a step: name, size, duration ns, busy ns


LISTENING = ("launch", "replay", "copy", "record", "wait", "synchronize", "phase")


class ProbeDevice:
    """A device that notes times.

    phases   name -> samples: the phase's own Python alone, and with the calls in it but not the host's waits
    calls    name -> host ns of each call: "copy upload", "launch forward", "replay", "synchronize", ...
    """

    def __init__(self, rig: Rig) -> None:
        self.rig, self.inner = rig, rig.device
        self.name, self.warm_up_before_capture = self.inner.name, self.inner.warm_up_before_capture
        self.default_stream = self._adopt(self.inner.default_stream)
        self.phases: dict[str, list[PhaseSample]] = {}
        self.calls: dict[str, list[int]] = {}
        self._clock, self._inside, self._waited, self._capturing = self.inner.now_ns, 0, 0, False
        self._hold_ns, self._held, self._ops = 0, False, []  # type: int, bool, list[list[tuple[str, Work, Any]]]

    def listen(self, on: bool) -> None:
        """Note times, or get out of the way: then the engine calls the inner device's own methods."""
        for name in LISTENING:
            if on:
                self.__dict__.pop(name, None)
            else:
                self.__dict__[name] = getattr(self.inner, name)

    def clear(self) -> None:
        """Forget what was noted."""
        self.phases, self.calls = {}, {}

    def host(self, rows: int) -> dict[str, list[int]]:
        """Host ns of each phase, without the host's waits, in steps in which ``rows`` requests decode."""
        return {
            name: [busy for r, tokens, _, busy in seen if r == rows and tokens <= rows]
            for name, seen in self.phases.items()
        }

    @contextmanager
    def holding(self, ns: int) -> Iterator[list[Kernels]]:
        """Put a kernel of ``ns`` before each step's own, so that the host is done launching before they begin.

        The list is filled at the end: the kernels of each step, as fast as the GPU can run them.
        """
        found: list[Kernels] = []
        self._hold_ns, self._ops = ns, []
        self.rig.timing(True)
        try:
            yield found
        finally:
            self._hold_ns = 0
            self.rig.timing(False)
        self.inner.synchronize()
        found += [[(name, work, *self.rig.duration(op)) for name, work, op in step] for step in self._ops]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def _adopt(self, handle: Any) -> Any:
        handle.device = self
        return handle

    def stream(self, name: str, **options: Any) -> Stream:
        stream: Stream = self._adopt(self.inner.stream(name, **options))
        return stream

    def event(self, name: str, **options: Any) -> Event:
        event: Event = self._adopt(self.inner.event(name, **options))
        return event

    @contextmanager
    def capture(self, name: str, stream: Stream, pool: Any = None) -> Iterator[Graph]:
        self._capturing = True
        try:
            with self.inner.capture(name, stream, pool) as graph:
                yield self._adopt(graph)
        finally:
            self._capturing = False

    def launch(
        self, fn: Callable[[], None], stream: Stream, *, reads: Accesses, writes: Accesses, work: Work, label: str
    ) -> Any:
        if self._capturing:
            return self.inner.launch(fn, stream, reads=reads, writes=writes, work=work, label=label)
        self._hold(stream)
        start = self._clock()
        op = self.inner.launch(fn, stream, reads=reads, writes=writes, work=work, label=label)
        self._called(f"launch {label}", start)
        self._keep(label, work, op)
        return op

    def replay(self, graph: Graph, stream: Stream, work: Work | None = None) -> Any:
        self._hold(stream)
        start = self._clock()
        op = self.inner.replay(graph, stream, work)
        self._called("replay", start)
        self._keep("graph", work or Work("fixed"), op)
        return op

    def copy(self, dst: Buffer, src: Buffer, stream: Stream, *, non_blocking: bool, label: str) -> Any:
        start = self._clock()
        op = self.inner.copy(dst, src, stream, non_blocking=non_blocking, label=label)
        self._called(f"copy {label}", start)
        return op

    def record(self, event: Event, stream: Stream) -> None:
        start = self._clock()
        self.inner.record(event, stream)
        self._called("record", start)

    def wait(self, stream: Stream, event: Event) -> None:
        start = self._clock()
        self.inner.wait(stream, event)
        self._called("wait", start)

    def synchronize(self, target: Stream | Event | None = None) -> None:
        start = self._clock()
        self.inner.synchronize(target)
        self._called("synchronize", start)
        self._waited += self.calls["synchronize"][-1]

    @contextmanager
    def phase(self, name: str, *, step: int, slot: str = "", rows: int = 0, tokens: int = 0) -> Iterator[None]:
        self._inside, self._waited, self._held, start = 0, 0, False, self._clock()
        with self.inner.phase(name, step=step, slot=slot, rows=rows, tokens=tokens):
            yield
        took = self._clock() - start
        self.phases.setdefault(name, []).append((rows, tokens, took - self._inside, took - self._waited))

    def _called(self, name: str, start: int) -> None:
        took = self._clock() - start
        self._inside += took
        self.calls.setdefault(name, []).append(took)

    def _hold(self, stream: Stream) -> None:
        """Once per phase: the first launch of ``compute`` is where a step's kernels begin."""
        if self._hold_ns and not self._held:
            self._held = True
            self._ops.append([])
            fn, work = self.rig.busy(self._hold_ns)
            self.inner.launch(fn, stream, reads=(), writes=(), work=work, label="hold")

    def _keep(self, name: str, work: Work, op: Any) -> None:
        if self._hold_ns:
            self._ops[-1].append((name, work, op))
