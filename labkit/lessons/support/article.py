"""Steady steps of the article's experiment on the virtual GPU: 8B costs, 32 requests, contexts as in its middle.

The article's requests go from a short prompt to 8192 new tokens. A step's time grows with the context, linearly, so a
step with the mean context takes the mean time; these few steps stand for all 8192.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labkit.analysis.comparison import step_ends
from labkit.entry import Engine
from labkit.run import Run
from labkit.sizes import Sizes
from labkit.trace.events import Span, Trace

ROWS, CONTEXT, NEW_TOKENS = 32, 4200, 64
FIRST, LAST = 38, 58  # all prompts are through before, and no request ends within
SIZES = Sizes(
    max_rows=ROWS, token_budget=4096, num_blocks=ROWS * 267, max_model_len=CONTEXT + NEW_TOKENS, graph_rows=(ROWS,)
)


def article_run(device: str, rung: int | str, profile: Any = "article-8b") -> Run:
    """32 requests with 4200 tokens each in the cache, 64 new ones."""
    prompts = [[(7919 * request + place) % 251 for place in range(CONTEXT)] for request in range(ROWS)]
    with Engine.from_pretrained("toy", switches=rung, device=device, profile=profile, sizes=SIZES) as engine:
        return engine.generate(prompts, max_new_tokens=NEW_TOKENS)


def steady(run: Run, first: int = FIRST, last: int = LAST) -> Trace:
    """The time from one step's tokens to another's: what lies between the ends of two ``settle``, cut at both.

    Steps are counted from 0 again.
    """
    assert run.trace is not None
    ends = step_ends(run.trace)
    trace = cut(run.trace, ends[first], ends[last])
    return replace(trace, spans=tuple(replace(span, step=span.step - first - 1) for span in trace.spans))


def cut(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    """The spans of a window, each cut where it reaches out of it, and the edges between them."""
    window = trace.window(start_ns, end_ns)
    return replace(window, spans=tuple(_cut(span, start_ns, end_ns) for span in window.spans))


def _cut(span: Span, start_ns: int, end_ns: int) -> Span:
    start, end = max(span.start_ns, start_ns), min(span.end_ns, end_ns)
    return replace(span, start_ns=start, end_ns=end, busy_ns=min(span.busy_ns, end - start))
