"""What ``Engine.generate`` returns: tokens, texts, and the trace of how they came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.errors import InvalidArgument
from labkit.switches import Switches
from labkit.trace.events import Trace

if TYPE_CHECKING:
    from labkit.analysis.occupancy import Report
    from labkit.memory import MemoryUse
    from labkit.steplog import StepRecord


@dataclass(frozen=True)
class Run:
    """The outcome of one ``generate`` call, in the order of its prompts.

    tokens          generated token ids, the end-of-sequence token included
    texts           the same, decoded
    logprobs        per token, for requests that asked for them, else an empty list
    finish_reasons  eos, length, cancelled or error
    prompts         prompt token ids
    trace           what host and device did, or None if the engine was built with ``trace=False``
    stats           counts of the run: steps, overruns (rows computed for a request that had ended), preemptions
    steps           what each step was, row by row; nothing if the engine was built with ``trace=False``
    memory          bytes of the engine's slots, KV cache and graphs
    """

    tokens: list[list[int]]
    texts: list[str]
    logprobs: list[list[float]]
    finish_reasons: list[str]
    prompts: list[list[int]]
    switches: Switches
    trace: Trace | None
    stats: dict[str, Any]
    steps: tuple[StepRecord, ...] = ()
    memory: tuple[MemoryUse, ...] = ()

    def report(self) -> Report:
        """GPU active, idle time and its reasons, host time per phase (``analysis/occupancy.py``)."""
        from labkit.analysis.occupancy import report

        if self.trace is None:
            raise InvalidArgument("trace", None, "a report needs a trace: build the engine with trace=True")
        return report(self.trace)

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        total = sum(map(len, self.tokens))
        return f"Run({len(self)} requests, {total} tokens, {self.stats['steps']} steps, switches: {self._on()})"

    def _on(self) -> str:
        return ", ".join(self.switches.on) or "none"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """In a notebook a run is its timeline and numbers; without plotly or a trace, its texts and numbers."""
        plain = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        try:
            from labkit.viz.notebook import mimebundle
        except ImportError:
            return plain
        return plain if self.trace is None else mimebundle(self)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{i}</td><td style='text-align:left'>{escape(text)}</td><td>{len(t)}</td><td>{reason}</td></tr>"
            for i, (text, t, reason) in enumerate(zip(self.texts, self.tokens, self.finish_reasons, strict=True))
        )
        head = "<tr><th>#</th><th style='text-align:left'>text</th><th>tokens</th><th>ended by</th></tr>"
        numbers = "" if self.trace is None else self.report()._repr_html_()
        return f"<p><b>Run</b> with {escape(self._on())}</p><table>{head}{rows}</table>{numbers}"
