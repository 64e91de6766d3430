"""A trace drawn by stream: one row for the host, one for each stream. Text for a terminal, HTML for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from labkit.trace.events import DEVICE_KINDS, Span, Trace

_COLOURS = {"CPU": "#0072B2", "H2D": "#E69F00", "compute": "#009E73", "D2H": "#CC79A7"}
_HOST_KINDS = frozenset({"phase", "synchronize"})
_TOLD = 8  # operations whose times stand below the picture; with more they are in the hovers alone
_MARKS = {"kernel": "#", "copy": "=", "graph": "%", "phase": "#", "synchronize": "."}


@dataclass(frozen=True)
class Timeline:
    """Rows of a trace: the host's work and waits, then every stream's operations."""

    trace: Trace
    width: int = 72  # characters

    @property
    def rows(self) -> dict[str, list[Span]]:
        """Spans by row, streams in the order of their first operation. Host calls that take no time are left out."""
        rows: dict[str, list[Span]] = {"host": []}
        for span in self.trace.spans:
            if span.kind in DEVICE_KINDS:
                rows.setdefault(span.stream, []).append(span)
            elif span.duration_ns and (span.kind in _HOST_KINDS or span.kind == "launch"):
                rows["host"].append(span)
        return rows

    def __str__(self) -> str:
        rows, label = self.rows, max(map(len, self.rows))
        head = f"{'':{label}} 0 us{f'{self._end_ns / 1000:g} us':>{self.width - 4}}"
        return "\n".join(
            [head, *(f"{name:{label}} {self._line(spans)}" for name, spans in rows.items()), *self._legend()]
        )

    __repr__ = __str__

    @property
    def _end_ns(self) -> int:
        return max(1, self.trace.end_ns)

    def _line(self, spans: list[Span]) -> str:
        cells = [" "] * self.width
        for span in spans:
            first, last = self._cell(span.start_ns), self._cell(span.end_ns)
            for cell in range(first, max(first + 1, last)):
                cells[min(cell, self.width - 1)] = _MARKS.get(span.kind, "-")
        return "".join(cells).rstrip()

    def _cell(self, ns: int) -> int:
        return round(ns * self.width / self._end_ns)

    def _legend(self) -> list[str]:
        """Every device operation with its times."""
        return [
            f"{_MARKS[s.kind]} {s.name} on {s.stream}: {s.start_ns / 1000:g} to {s.end_ns / 1000:g} us"
            for s in self.trace.spans
            if s.kind in DEVICE_KINDS
        ]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:right;white-space:nowrap'>{escape(name)}</td>"
            f"<td style='position:relative;width:100%;height:1.6em'>{''.join(map(self._bar, spans))}</td></tr>"
            for name, spans in self.rows.items()
        )
        legend = self._legend()
        times = [f"0 to {self._end_ns / 1000:g} us", *(line[2:] for line in legend if len(legend) <= _TOLD)]
        # JupyterLab's tables have a fixed layout, in which a column of 100 % leaves the names no room.
        table = f"<table style='width:100%;table-layout:auto'>{rows}</table>"
        return f"{table}<small>{'<br/>'.join(map(escape, times))}</small>"

    def _bar(self, span: Span) -> str:
        left, width = 100 * span.start_ns / self._end_ns, 100 * span.duration_ns / self._end_ns
        title = f"{span.name}: {span.start_ns / 1000:g} to {span.end_ns / 1000:g} us"
        colour = "#bbbbbb" if span.kind == "synchronize" else _COLOURS[span.lane]
        return (
            f"<div title='{escape(title, quote=True)}' style='position:absolute;left:{left:.3f}%;width:{width:.3f}%;"
            f"min-width:1px;top:10%;height:80%;background:{colour};overflow:hidden;text-align:left;"
            f"font-size:0.75em;color:white'>"
            f"{escape(span.name)}</div>"
        )
