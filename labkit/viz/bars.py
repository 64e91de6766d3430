"""From a trace to the bars of its picture: which spans, of which kind, over which time. No plotly here.

The figure and its table are made from the same bars, so that they say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.analysis.idle import Gap, Waits, idle_gaps
from labkit.errors import InvalidArgument
from labkit.trace.events import DEVICE_KINDS, HOST_WAIT_KINDS, Span, Trace

WAIT, IDLE, LAUNCH = "CPU waits", "compute is idle", "launch"
_STEADY = (8, 6, 4, 3, 2, 1)  # steps shown in the middle of a run that has too many bars


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. ``kind`` is what the legend calls it, ``detail`` what it waited for or why it is there."""

    kind: str
    lane: str
    name: str
    start_ns: int
    end_ns: int
    step: int = -1
    slot: str = ""
    stream: str = ""
    bytes: int = 0
    detail: str = ""


@dataclass(frozen=True)
class Selection:
    """What is drawn: the bars that touch ``[start_ns, end_ns)``, and what was left out.

    total    bars of the range that was asked for; more than ``len(bars)`` means that the figure must say so
    steps    first and last step, (-1, -1) where the range was not chosen by steps
    """

    bars: tuple[Bar, ...]
    start_ns: int
    end_ns: int
    total: int
    steps: tuple[int, int] = (-1, -1)

    @property
    def reduced(self) -> bool:
        return self.total > len(self.bars)


def select(
    trace: Trace, steps: int | tuple[int, int] | None, window: tuple[int, int] | None, max_bars: int
) -> Selection:
    """The bars of a range of steps, of a window, or of the whole run; the steps in the middle if they are too many.

    Raises:
        InvalidArgument: see ``labkit.viz.timeline``.
    """
    if not isinstance(max_bars, int) or isinstance(max_bars, bool) or max_bars < 1:
        raise InvalidArgument("max_bars", max_bars, "an integer of at least 1")
    chosen = (-1, -1) if steps is None else _step_range(trace, steps)
    start, end = (trace.start_ns, trace.end_ns) if steps is None else _extent(trace, *chosen)
    if window is not None:
        if steps is not None:
            raise InvalidArgument("window", window, "give steps or window, not both")
        start, end = _checked_window(trace, window)
    pieces = [piece for piece in _pieces(trace) if _touches(piece, start, end)]
    kept, chosen, start, end = _reduce(trace, pieces, max_bars, chosen, start, end)
    waits = Waits(trace)
    return Selection(tuple(_bar(piece, waits) for piece in kept), start, end, len(pieces), chosen)


Piece = tuple[int, int, Span | Gap, str]  # start, end, what, kind of the bar


def _pieces(trace: Trace) -> list[Piece]:
    """Everything that has a bar, by start. A blocking copy has two: on its lane, and the host's wait for it, which
    stands for its launch too."""
    pieces: list[Piece] = [(gap.start_ns, gap.end_ns, gap, IDLE) for gap in idle_gaps(trace)]
    blocking = {span.id for span in trace.spans if span.blocking}
    waited_in = {edge.before for edge in trace.edges if edge.kind == "issue" and edge.after in blocking}
    for span in trace.spans:
        if span.kind == "phase":
            pieces.append((span.start_ns, span.end_ns, span, span.name))
        elif span.kind == "launch" and span.id not in waited_in:
            pieces.append((span.start_ns, span.end_ns, span, LAUNCH))
        elif span.kind in DEVICE_KINDS:
            pieces.append((span.start_ns, span.end_ns, span, _operation_kind(span)))
        if span.kind in HOST_WAIT_KINDS or span.blocking:
            pieces.append((span.start_ns if span.lane == "CPU" else span.issued_ns, span.end_ns, span, WAIT))
    pieces.sort(key=lambda piece: piece[:2])
    return pieces


def _operation_kind(span: Span) -> str:
    return f"{span.lane} copy" if span.kind == "copy" else span.kind


def _touches(piece: Piece, start: int, end: int) -> bool:
    return piece[0] < end and piece[1] > start


def _reduce(
    trace: Trace, pieces: list[Piece], most: int, steps: tuple[int, int], start: int, end: int
) -> tuple[list[Piece], tuple[int, int], int, int]:
    """At most ``most`` pieces: the steps in the middle, or where one step has too many, the pieces in the middle."""
    if len(pieces) <= most:
        return pieces, steps, start, end
    numbers = sorted({piece[2].step for piece in pieces if piece[2].step >= 0})
    for count in _STEADY:
        middle = numbers[(len(numbers) - count) // 2 :][:count] if len(numbers) > count else []
        if middle:
            first, last = _extent(trace, middle[0], middle[-1])
            first, last = max(first, start), min(last, end)
            kept = [piece for piece in pieces if _touches(piece, first, last)]
            if len(kept) <= most:
                return kept, (middle[0], middle[-1]), first, last
    offset = (len(pieces) - most) // 2
    kept = pieces[offset : offset + most]
    return kept, (-1, -1), kept[0][0], max(piece[1] for piece in kept)


def _bar(piece: Piece, waits: Waits) -> Bar:
    start, end, what, kind = piece
    if isinstance(what, Gap):
        return Bar(kind, "compute", what.reason, start, end, what.step, detail=what.detail)
    lane = "CPU" if kind == WAIT else what.lane
    detail = "; ".join(_waited(what, kind, waits))
    return Bar(kind, lane, what.name, start, end, what.step, what.slot, what.stream, what.bytes, detail)


def _waited(span: Span, kind: str, waits: Waits) -> Iterator[str]:
    if kind == WAIT:
        yield "its own copy, which blocks" if span.blocking else f"event {span.event}" if span.event else "the device"
    if span.kind != "phase":
        yield from (str(wait) for wait in waits.of(span) if wait.kind != "issue")


def _step_range(trace: Trace, steps: int | tuple[int, int]) -> tuple[int, int]:
    numbers = {span.step for span in trace.spans if span.step >= 0}
    ends = (steps, steps) if isinstance(steps, int) else steps
    whole = isinstance(ends, tuple) and len(ends) == 2 and all(isinstance(n, int) and n in numbers for n in ends)
    if not whole or ends[0] > ends[1]:
        known = f"the steps are {min(numbers)} to {max(numbers)}" if numbers else "this trace has no steps"
        raise InvalidArgument("steps", steps, f"a step, or the first and the last as a pair; {known}")
    return ends


def _extent(trace: Trace, first: int, last: int) -> tuple[int, int]:
    """From the start of the first span of these steps to the end of the last."""
    spans = [span for span in trace.spans if first <= span.step <= last]
    return min(span.start_ns for span in spans), max(span.end_ns for span in spans)


def _checked_window(trace: Trace, window: tuple[int, int]) -> tuple[int, int]:
    pair = isinstance(window, tuple) and len(window) == 2 and all(isinstance(ns, int) for ns in window)
    if not pair or window[0] >= window[1] or window[0] >= trace.end_ns or window[1] <= trace.start_ns:
        run = f"the run is {trace.start_ns} to {trace.end_ns}"
        raise InvalidArgument("window", window, f"(start_ns, end_ns), start before end, within the run; {run}")
    return window
