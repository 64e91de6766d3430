"""Engine case 21: the host waits once per step, for the download, and nothing else makes it wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from labkit.trace.events import Trace
from tests.engine.harness import build, prompt, sizes


@contextmanager
def no_other_wait(device: str) -> Iterator[None]:
    """On a real GPU: PyTorch raises at every call that makes the host wait unasked."""
    if device == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if device == "cuda":
            torch.cuda.set_sync_debug_mode("default")


def waits_by_step(trace: Trace) -> dict[int, list[str]]:
    """What the host waited for in each step: an event by name without its slot, or ``copy``."""
    waits: dict[int, list[str]] = {}
    for span in trace.spans:
        if span.kind == "synchronize" or span.blocking:
            waits.setdefault(span.step, []).append(span.event.partition("[")[0] or span.kind)
    return waits


@pytest.mark.parametrize("rung", [2, 5, 6])
def test_one_wait_per_step_for_the_download(device: str, rung: int) -> None:
    with build(rung, sizes(16), device=device, trace=True) as engine:
        with no_other_wait(device):
            for number in range(4):
                engine.submit(prompt(20 + number, number), max_new_tokens=12)
            while engine.busy:
                engine.step()
        trace = engine.take_trace()
    steps = {span.step for span in trace.of_kind("phase") if span.name == "settle"}
    assert len(steps) > 12
    assert waits_by_step(trace) == {step: ["d2h_done"] for step in steps}


def test_without_streams_both_copies_block(device: str) -> None:
    with build(0, sizes(16), device=device, trace=True) as engine:
        trace = engine.generate([prompt(5)], max_new_tokens=6).trace
    assert trace is not None
    assert Counter(map(tuple, waits_by_step(trace).values())) == {("copy", "copy"): 6}
