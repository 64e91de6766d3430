"""Invented traces with the shape of an engine's: times follow the device's ordering rules, and nothing runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labkit.trace.events import Edge, Span, Touch, Trace

US = 1_000


class Script:
    """A host clock, FIFO streams and events, in ns. Ids are in issue order."""

    def __init__(self) -> None:
        self.now = 0
        self.spans: list[Span] = []
        self.edges: list[Edge] = []
        self._id = 0
        self._tails: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._records: dict[str, tuple[int, int, int]] = {}  # event -> record span id, last operation id, its end
        self._counts: dict[str, int] = {}
        self._where: dict[str, object] = {}

    def _number(self) -> int:
        self._id += 1
        return self._id - 1

    def _add(self, number: int, kind: str, name: str, lane: str, start: int, end: int, **more: object) -> Span:
        span = Span(number, kind, name, lane, start, end, **{**self._where, **more})  # type: ignore[arg-type]
        self.spans.append(span)
        return span

    @contextmanager
    def phase(self, name: str, step: int, slot: str) -> Iterator[None]:
        number, start, outer = self._number(), self.now, self._where
        self._where = {"step": step, "slot": slot, "phase": name}
        yield
        self._add(number, "phase", name, "CPU", start, self.now, rows=8, tokens=24)
        self._where = outer

    def work(self, ns: int) -> None:
        self.now += ns

    def call(self, kind: str, name: str, ns: int, **more: object) -> Span:
        start = self.now
        self.now += ns
        return self._add(self._number(), kind, name, "CPU", start, self.now, **more)

    def op(
        self,
        kind: str,
        name: str,
        lane: str,
        stream: str,
        ns: int,
        *,
        busy: int = 0,
        blocking: bool = False,
        **more: object,
    ) -> Span:
        """Issue a device operation: the host spends 2 µs, the device starts 3 µs after that at the earliest."""
        call = self.call("launch", name, 2 * US, stream=stream)
        start = max(self.now + 3 * US, self._tails.get(stream, 0))
        more |= {"stream": stream, "issued_ns": self.now, "busy_ns": busy or ns, "blocking": blocking}
        span = self._add(self._number(), kind, name, lane, start, start + ns, source="loop.py:40", **more)
        self.edges.append(Edge(call.id, span.id, "issue"))
        self._tails[stream], self._last[stream] = span.end_ns, span.id
        if blocking:
            self.now = span.end_ns
        return span

    def record(self, event: str, stream: str) -> None:
        self._counts[event] = count = self._counts.get(event, 0) + 1
        span = self.call("record", event, US, stream=stream, event=event, record=count)
        self._records[event] = (span.id, self._last[stream], self._tails[stream])

    def wait(self, stream: str, event: str) -> None:
        record, _, end = self._records[event]
        span = self.call("wait", event, US, stream=stream, event=event, record=self._counts[event])
        self.edges.append(Edge(record, span.id, "event", event))
        self._tails[stream] = max(self._tails.get(stream, 0), end)

    def synchronize(self, event: str) -> None:
        _, operation, end = self._records[event]
        start, number = self.now, self._number()
        self.now = max(self.now, end) + US
        self._add(number, "synchronize", event, "CPU", start, self.now, event=event, record=self._counts[event])
        self.edges.append(Edge(operation, number, "host", event))

    def trace(self, **meta: object) -> Trace:
        spans = sorted(self.spans, key=lambda span: span.id)
        return Trace(tuple(spans), tuple(self.edges), {"source": "virtual", "device": "synthetic", **meta})


def _touch(buffer: str, place: str) -> tuple[Touch, ...]:
    return (Touch(buffer, 0, 4096, place),)


def sync_trace(steps: int = 4) -> Trace:
    """One stream, blocking copies: host and device take turns. A step takes 165 µs, the kernel 80 of them."""
    script = Script()
    for step in range(steps):
        with script.phase("plan", step, "A"):
            script.work(20 * US)
        with script.phase("fill", step, "A"):
            script.call("host_write", "inputs", 10 * US, writes=_touch("inputs", "pageable"))
        with script.phase("upload", step, "A"):
            script.op("copy", "inputs", "H2D", "default", 8 * US, bytes=4096, blocking=True)
        with script.phase("compute", step, "A"):
            script.op(
                "kernel", "forward", "compute", "default", 80 * US, busy=72 * US, reads=_touch("inputs", "device")
            )
        with script.phase("download", step, "A"):
            script.op("copy", "tokens", "D2H", "default", 5 * US, bytes=64, blocking=True)
        with script.phase("settle", step, "A"):
            script.work(27 * US)
    return script.trace()


def async_trace(steps: int = 6, kernel_ns: int = 80 * US) -> Trace:
    """Three streams, events, two slots: step N+1 is enqueued while step N runs, then step N is settled."""
    script = Script()
    for step in range(steps + 1):
        if step < steps:
            _enqueue(script, step, "AB"[step % 2], kernel_ns)
        if step:
            with script.phase("settle", step - 1, "AB"[(step - 1) % 2]):
                script.synchronize(f"d2h_done {'AB'[(step - 1) % 2]}")
                script.call("host_read", "tokens", 5 * US, reads=_touch("tokens", "pinned"))
    return script.trace(switches=("streams", "events"))


def _enqueue(script: Script, step: int, slot: str, kernel_ns: int) -> None:
    with script.phase("plan", step, slot):
        script.work(15 * US)
    with script.phase("fill", step, slot):
        script.call("host_write", "inputs", 10 * US, writes=_touch(f"inputs {slot}", "pinned"))
    with script.phase("upload", step, slot):
        script.op("copy", "inputs", "H2D", "h2d", 12 * US, bytes=4096)
        script.record(f"h2d_done {slot}", "h2d")
    with script.phase("compute", step, slot):
        script.wait("compute", f"h2d_done {slot}")
        script.op("kernel", "forward", "compute", "compute", kernel_ns, reads=_touch(f"inputs {slot}", "device"))
        script.record(f"compute_done {slot}", "compute")
    with script.phase("download", step, slot):
        script.wait("d2h", f"compute_done {slot}")
        script.op("copy", "tokens", "D2H", "d2h", 5 * US, bytes=64)
        script.record(f"d2h_done {slot}", "d2h")
