"""The last steps of a recording without an end, over several engines, on one time axis."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from labkit.trace.events import Edge, Span, Trace


class Rolling:
    """Spans of the last ``keep`` steps. Ids, step numbers and times go on where one engine ends and the next begins."""

    def __init__(self, keep: int) -> None:
        self._spans: deque[Span] = deque()
        self._edges: deque[Edge] = deque()
        self._settled: deque[tuple[int, int]] = deque(maxlen=keep + 1)  # of each step: when settled, in ns; tokens
        self._device: Any = None
        self._shift_ns = self._first_id = self._first_step = 0
        self._last_id = self._last_step = -1
        self.now_ns = 0

    def follow(self, device: Any) -> None:
        """From now on, collect from this traced device, which has just been set up."""
        self._device = device
        self._first_id, self._first_step = self._last_id + 1, self._last_step + 1
        self.resume()

    def resume(self) -> None:
        """The device's present is where the axis stands: what passed since is cut out."""
        self._shift_ns = self.now_ns - self._device.now_ns()

    @property
    def in_flight(self) -> int:
        """Operations that had not ended when ``collect`` was last called."""
        return len(self._device.recorder)

    def collect(self) -> None:
        """Take over what has ended, and forget what is older than the steps to keep."""
        self.now_ns = self._device.now_ns() + self._shift_ns
        part = self._device.take_ended()
        self._spans.extend(self._placed(span) for span in part.spans)
        first = self._first_id
        self._edges.extend(replace(edge, before=edge.before + first, after=edge.after + first) for edge in part.edges)
        self._forget()

    def step_settled(self, tokens: int) -> None:
        """One more step's tokens are known now."""
        self._settled.append((self._device.now_ns() + self._shift_ns, tokens))

    @property
    def tokens_per_s(self) -> float:
        if len(self._settled) < 2:
            return 0.0
        (start_ns, first), (end_ns, _) = self._settled[0], self._settled[-1]
        return (sum(tokens for _, tokens in self._settled) - first) * 1e9 / (end_ns - start_ns)

    def trace(self) -> Trace:
        """What is kept, in issue order, with the edges between what is kept."""
        spans = tuple(sorted(self._spans, key=lambda span: span.id))
        kept = {span.id for span in spans}
        edges = tuple(edge for edge in self._edges if edge.before in kept and edge.after in kept)
        return Trace(spans, edges, {"device": self._device.name})

    def _placed(self, span: Span) -> Span:
        number, step = span.id + self._first_id, span.step + self._first_step if span.step >= 0 else -1
        self._last_id, self._last_step = max(self._last_id, number), max(self._last_step, step)
        times = {name: getattr(span, name) + self._shift_ns for name in ("start_ns", "end_ns", "issued_ns")}
        return replace(span, id=number, step=step, **times)

    def _forget(self) -> None:
        if len(self._settled) < (self._settled.maxlen or 0):
            return
        horizon = self._settled[0][0]
        self._spans = deque(span for span in self._spans if span.end_ns > horizon)
        oldest = min((span.id for span in self._spans), default=0)
        while self._edges and self._edges[0].after < oldest:
            self._edges.popleft()
