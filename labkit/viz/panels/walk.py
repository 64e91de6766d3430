"""What StepThrough knows: the moments of a run, in order of issue or of execution, and the code of each. No widgets.

A moment is a phase of the host or an operation of the device. In issue order an operation comes right after the phase
that enqueued it; in execution order everything comes when it starts. Where the two differ, something is asynchronous.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from labkit.analysis.idle import Waits
from labkit.analysis.units import time_text
from labkit.engine import core, loop
from labkit.errors import InvalidArgument
from labkit.run import Run
from labkit.trace.events import DEVICE_KINDS, PHASES, Span, Trace

ISSUE, EXECUTION = "issue", "execution"


@dataclass(frozen=True)
class Code:
    """Source lines, and the one that is meant (counted from 0, -1 for none)."""

    title: str
    lines: tuple[str, ...]
    marked: int


class Walk:
    """A place in a run: ``order`` and ``place`` (from 0) say where; ``moment`` is the span there.

    Raises:
        InvalidArgument: a run without a trace, or with an empty one.
    """

    def __init__(self, run: Run) -> None:
        if run.trace is None or not run.trace.spans:
            raise InvalidArgument("run", run, "a run with a trace: build the engine with trace=True")
        self.trace: Trace = run.trace
        self.loop = loop.run_async if run.switches.lookahead else loop.run_sync
        self._waits = Waits(run.trace)
        self._orders = {ISSUE: tuple(issue_order(run.trace)), EXECUTION: tuple(execution_order(run.trace))}
        self.order, self.place = ISSUE, 0

    @property
    def moments(self) -> Sequence[Span]:
        return self._orders[self.order]

    @property
    def moment(self) -> Span:
        return self.moments[self.place]

    @property
    def other_place(self) -> int:
        """Where this moment is in the other order."""
        return self._orders[EXECUTION if self.order == ISSUE else ISSUE].index(self.moment)

    # -- moving ------------------------------------------------------------------------------------------------------

    def go(self, place: int) -> Span:
        """To a place, or to the nearest end."""
        self.place = min(max(place, 0), len(self.moments) - 1)
        return self.moment

    def next(self) -> Span:
        return self.go(self.place + 1)

    def back(self) -> Span:
        return self.go(self.place - 1)

    def next_step(self) -> Span:
        """To the first moment ahead that belongs to a later step than this one; to the end if there is none."""
        ahead = range(self.place + 1, len(self.moments))
        step = self.moment.step
        return self.go(next((place for place in ahead if self.moments[place].step > step), len(self.moments)))

    def take_order(self, order: str) -> Span:
        """The same moment in the other order.

        Raises:
            InvalidArgument: no such order.
        """
        if order not in self._orders:
            raise InvalidArgument("order", order, f"{ISSUE} or {EXECUTION}")
        moment, self.order = self.moment, order
        return self.go(self.moments.index(moment))

    # -- saying ------------------------------------------------------------------------------------------------------

    def sentence(self) -> str:
        """What happens at this moment."""
        span = self.moment
        where = f"step {span.step}" + (f", slot {span.slot}" if span.slot else "")
        start, took = time_text(span.start_ns - self.trace.start_ns), time_text(span.duration_ns)
        if span.kind == "phase":
            return f"The host runs {span.name} ({where}): from {start}, for {took}."
        delay = time_text(span.start_ns - span.issued_ns)
        waits = "; ".join(str(wait) for wait in self._waits.of(span) if wait.kind != "issue")
        return (
            f"The device runs {span.name} on {span.lane} ({where}): from {start}, {delay} after it was issued, "
            f"for {took}. It waited for {waits or 'nothing but its own stream'}."
        )

    def loop_code(self) -> Code:
        """The loop, with the line of the phase that this moment belongs to."""
        call = f"engine.{self.moment.phase}("
        return _code(f"engine/loop.py, {self.loop.__name__}", self.loop, lambda number, line: call in line)

    def phase_code(self) -> Code:
        """The phase method, with the line that issued this operation, if it stands there."""
        name = self.moment.phase
        if name not in PHASES:
            return Code("outside the six phases", (), -1)
        file, at = _source(self.moment)
        method = getattr(core.EngineCore, name)
        title = f"engine/core.py, EngineCore.{name}"
        return _code(title, method, lambda number, line: file == "core.py" and number == at)

    def issued_by(self) -> str:
        """``file:line`` and text of the call that issued an operation, empty for a phase."""
        file, line = _source(self.moment)
        text = linecache.getline(str(Path(core.__file__).with_name(file)), line).strip() if file else ""
        return f"engine/{file}:{line}: {text}" if text else self.moment.source


def issue_order(trace: Trace) -> Iterator[Span]:
    """Phases in the order in which the host ran them, each followed by the operations that it enqueued."""
    enqueued: list[Span] = []
    for span in sorted(trace.spans, key=lambda span: span.id):  # a phase is recorded at its end, after its calls
        if span.kind in DEVICE_KINDS:
            enqueued.append(span)
        elif span.kind == "phase":
            yield span
            yield from enqueued
            enqueued.clear()
    yield from enqueued


def execution_order(trace: Trace) -> list[Span]:
    """Phases and operations by their start; of two that start together the one issued first."""
    return sorted(issue_order(trace), key=lambda span: (span.start_ns, span.id))


def _code(title: str, function: Any, meant: Callable[[int, str], bool]) -> Code:
    """The source of a function without its docstring; ``meant(line number in the file, line)`` says which line."""
    lines, first = inspect.getsourcelines(function)
    doc = ast.parse(dedent("".join(lines))).body[0].body[0]  # type: ignore[attr-defined]
    without = range(doc.lineno, doc.end_lineno + 1) if function.__doc__ else ()
    kept = [(first + place - 1, line.rstrip()) for place, line in enumerate(lines, 1) if place not in without]
    marked = next((place for place, (number, line) in enumerate(kept) if meant(number, line)), -1)
    return Code(title, tuple(line for _, line in kept), marked)


def _source(span: Span) -> tuple[str, int]:
    file, _, line = span.source.rpartition(":")
    return (file, int(line)) if file and line.isdigit() else ("", 0)
