"""What a check says: passed or not yet, yours, expected, and the spans concerned. Shows itself in a notebook."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from labkit.trace.events import Span

_SPANS_SHOWN = 8
_LONGEST = 1200  # characters of a text in a result
_GOOD, _BAD = "#006D4E", "#B03A00"  # on white at least 4.5 : 1


@dataclass(frozen=True)
class Text:
    """Markdown that a notebook renders and a terminal prints."""

    markdown: str

    def __repr__(self) -> str:
        return self.markdown

    def _repr_markdown_(self) -> str:
        return self.markdown


@dataclass(frozen=True)
class Result:
    """The outcome of a check.

    says       one sentence
    yours      what the answer did, expected what was asked for; both empty where there is nothing to compare
    spans      of the trace, that the sentence is about
    """

    passed: bool
    says: str
    yours: str = ""
    expected: str = ""
    spans: tuple[Span, ...] = ()
    number: str = ""
    title: str = ""

    def of(self, number: str, title: str) -> Result:
        """The same result, of that exercise."""
        return replace(self, number=number, title=title)

    @property
    def verdict(self) -> str:
        """``passed`` or ``not yet``."""
        return "passed" if self.passed else "not yet"

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        lines = [f"{self.number} {self.title}: {self.verdict}. {self.says}"]
        lines += [f"  yours:    {self.yours}", f"  expected: {self.expected}"] if self.expected else []
        lines += [f"  {' '.join(map(str, row))}" for row in self._rows()]
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (span.lane, span.name, str(span.step) if span.step >= 0 else "", _us(span.start_ns), _us(span.end_ns))
            for span in self.spans[:_SPANS_SHOWN]
        ]

    def _repr_html_(self) -> str:
        sign, colour = ("&#10003;", _GOOD) if self.passed else ("&#10007;", _BAD)
        parts = [
            f"<p><b style='color:{colour}'>{sign} {self.number} {escape(self.title)}: {self.verdict}.</b> "
            f"{_html(self.says)}</p>"
        ]
        if self.expected:
            pair = (("yours", self.yours), ("expected", self.expected))
            parts.append(_table(("", ""), [(name, text) for name, text in pair]))
        if self.spans:
            parts.append(_table(("lane", "operation", "step", "start, us", "end, us"), self._rows()))
        return "".join(parts)


@dataclass(frozen=True)
class Score:
    """What an answer costs, less being better; ``value`` is None for an answer that does not pass."""

    number: str
    value: float | None
    best: float
    unit: str

    def __repr__(self) -> str:
        if self.value is None:
            return (
                f"{self.number}: no score yet, the answer does not pass; the solution needs {self.best:g} {self.unit}"
            )
        return f"{self.number}: {self.value:g} {self.unit}; the solution needs {self.best:g} {self.unit}"


def right(says: str, spans: Sequence[Span] = ()) -> Result:
    """The answer passes."""
    return Result(True, says, spans=tuple(spans))


def wrong(says: str, *, yours: Any, expected: Any, spans: Sequence[Span] = ()) -> Result:
    """The answer does not pass yet. What an answer gives can be of any length; what is shown is not."""
    return Result(False, _short(says), _short(str(yours)), _short(str(expected)), tuple(spans))


def _short(text: str) -> str:
    """The text, or its beginning and how much is missing."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(text) - _LONGEST:,} characters more)"


def failure(error: BaseException, answer: Callable[..., Any]) -> Result:
    """Something was raised: by the answer (then with the line in it), or while the check used what it gave."""
    frames = _frames_of(answer, error)
    name = type(error).__name__
    if not frames:
        return wrong(
            f"The check cannot work with what your function gives or leaves behind ({name}).",
            yours=str(error) or repr(error),
            expected="what the task asks for",
        )
    where = f" at line {frames[-1].lineno}: {frames[-1].line}" if frames[-1].line else ""
    return wrong(f"Your function raised {name}{where}", yours=str(error) or repr(error), expected="no error")


def _frames_of(answer: Callable[..., Any], error: BaseException) -> list[traceback.FrameSummary]:
    """The lines of the answer's file that the error came through, from the answer on; none if it was not in it."""
    code = getattr(answer, "__code__", None)
    calls = list(traceback.walk_tb(error.__traceback__))
    inside = next((n for n, (frame, _) in enumerate(calls) if frame.f_code is code), len(calls))
    return [it for it in traceback.extract_tb(error.__traceback__)[inside:] if code and it.filename == code.co_filename]


def _html(text: str) -> str:
    """The text for a page, what stands between backquotes as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _us(ns: int) -> str:
    return f"{ns / 1000:,.1f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{_html(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table>{f'<tr>{cells}</tr>' if any(head) else ''}{body}</table>"
