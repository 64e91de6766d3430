"""A pinned buffer that is filled again and again under pending copies (semantics, rule 32), and its judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.device.api import Buffer
from labkit.errors import InvalidArgument
from labkit.lessons.playground import Playground
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.judging import host_waits, race_result
from labkit.trace.events import Span, Trace

Answer = Callable[..., Any]
VALUES = (1, 2, 3, 4)
PLAN_US = 12  # the host's work before each fill


class Feed(Playground):
    """Steps that each upload a value and read it, all on ``compute``: an upload waits for the step before it.

    ``pinned`` are two host buffers; the device has one input, ``x``, and an output for each step.
    """

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.pinned = [self.buffer(f"pinned[{number}]", "pinned") for number in range(2)]
        self.outputs = [self.buffer(f"output[{step}]", "device") for step in range(len(VALUES))]
        self.steps = 0
        self.device.take()

    def fill(self, value: float, buffer: int = 0) -> None:
        """The host plans for a while, then writes ``value`` into a pinned buffer, 0 or 1."""
        self.device.sleep_until(self.device.now_ns() + PLAN_US * 1000)
        self.write(value, self._pinned(buffer))

    def send(self, buffer: int = 0) -> None:
        """Enqueue the upload of a pinned buffer to ``x``."""
        self.upload(self.x, self._pinned(buffer), self.compute)

    def forward(self) -> None:
        """Enqueue the kernel that reads ``x``: 40 us."""
        output, x = self.outputs[self.steps % len(self.outputs)], self.x
        self.launch(f"forward[{self.steps}]", lambda: output.tensor.copy_(x.tensor), self.compute, [x], [output])
        self.steps += 1

    def _pinned(self, number: int) -> Buffer:
        if number not in (0, 1):
            raise InvalidArgument("buffer", number, "0 or 1")
        return self.pinned[number]

    def values(self) -> list[float]:
        """What each step has read; call it when the device is idle."""
        return [float(output.tensor[-1]) for output in self.outputs[: self.steps]]


def judge_guard(answer: Answer, device: str) -> Result:
    """One pinned buffer: no race, the right values, and waits for uploads alone."""
    play, trace = _run(answer, device)
    complaint = _complaint(play, trace)
    if complaint is not None:
        return complaint
    late = [wait for wait in host_waits(trace) if _covers_forward(trace, wait)]
    if late:
        return wrong(
            "The right values, but the host waits for a forward pass too: an event that is recorded behind it, or the "
            "whole stream, covers more than the upload.",
            yours=f"{len(late)} waits for a forward pass",
            expected="an event that is recorded right behind the upload",
            spans=late,
        )
    says = f"{len(VALUES)} values through one pinned buffer; the host waits for uploads, and for nothing else."
    idle = [wait for wait in host_waits(trace) if _right_behind_upload(trace, wait)]
    return right(says + _WAITS_LONG * bool(idle), idle)


_WAITS_LONG = (
    " But it waits as soon as the upload is enqueued: right before the next `fill` it would wait for less time, since "
    "the forward pass is launched by then. The score shows the difference."
)


def judge_two_pinned(answer: Answer, device: str) -> Result:
    """Two pinned buffers: as above, and the host never waits for the upload that it has just enqueued."""
    play, trace = _run(answer, device)
    complaint = _complaint(play, trace)
    if complaint is not None:
        return complaint
    early = [wait for wait in host_waits(trace) if _covers_latest(trace, wait)]
    if early:
        return wrong(
            "The right values, but the host waits for the upload that it has just enqueued: with two buffers it may go "
            "on. One event for both answers for the newer upload, whichever buffer is meant.",
            yours=f"{len(early)} waits for the newest upload",
            expected="each buffer has an event of its own, waited for before that buffer is filled again",
            spans=early,
        )
    return right("Two buffers in turn: the host waits for the upload before the last one, which is over or nearly so.")


def waiting_us(answer: Answer, device: str) -> float:
    """How long the host waited."""
    return round(sum(span.duration_ns for span in host_waits(_run(answer, device)[1])) / 1000, 1)


def _run(answer: Answer, device: str) -> tuple[Feed, Trace]:
    play = Feed(device)
    answer(play)
    return play, play.trace()


def _complaint(play: Feed, trace: Trace) -> Result | None:
    values = play.values()
    shown, expected = [f"{value:g}" for value in values], [str(value) for value in VALUES]
    race = race_result(trace, f"the steps read {', '.join(shown) or 'nothing'}", ", ".join(expected))
    if race is not None:
        return race
    if values != list(VALUES):
        return wrong("The order is right and the values are not.", yours=shown, expected=expected)
    return None


def _covered(trace: Trace, wait: Span) -> list[Span]:
    """The device operations that a wait of the host covers, in order of issue."""
    before = [s for s in trace.spans if s.id < wait.id]
    if wait.event:
        record = next((s for s in before if (s.kind, s.event, s.record) == ("record", wait.event, wait.record)), None)
        before = [s for s in before if record is not None and s.id < record.id]
    return [s for s in before if s.lane != "CPU"]


def _covers_forward(trace: Trace, wait: Span) -> bool:
    covered = _covered(trace, wait)
    return bool(covered) and covered[-1].kind == "kernel"


def _right_behind_upload(trace: Trace, wait: Span) -> bool:
    """Whether the host waits before it has launched the kernel that reads the upload."""
    issued = [s for s in trace.spans if s.id < wait.id and s.lane != "CPU"]
    return bool(issued) and issued[-1].kind == "copy"


def _covers_latest(trace: Trace, wait: Span) -> bool:
    sent = [s for s in trace.spans if s.kind == "copy" and s.id < wait.id]
    return bool(sent) and sent[-1] in _covered(trace, wait)
