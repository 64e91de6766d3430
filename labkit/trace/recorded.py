"""Traces that were recorded on a real GPU and come with the lab, for those who have none.

    from labkit.trace.recorded import load_recording, recordings

    recordings()                                # the names
    trace = load_recording("async-graphs-4096")
    trace.meta["gpu"], trace.meta["command"]    # where it comes from

A recording is a window of steady steps of the 8B shape, batch 32: a ``Trace`` like any other, so that figures, reports
and the race checker take it. Its name is the loop, how steps are launched, and the context length. The first step
follows an idle device. ``whole_runs`` has the numbers of the whole experiment, 8192 new tokens. Made by
``benchmarks/record.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from labkit.errors import InvalidArgument
from labkit.trace.events import Trace
from labkit.trace.export import load_chrome

RECORDINGS = Path(__file__).parent / "recordings"
WHOLE_RUNS = "whole_runs.json"
CONTEXTS = (512, 4096)
MODES = ("sync-eager", "async-eager", "sync-graphs", "async-graphs")
NAMES: tuple[str, ...] = tuple(f"{mode}-{context}" for mode in MODES for context in CONTEXTS)


@dataclass(frozen=True)
class WholeRun:
    """A whole experiment in numbers.

    seconds        start of the first span to the end of the last
    stream_active  share of the run with an operation on the compute lane (``analysis/occupancy.py``)
    host_ms        mean time of each phase, ms; settle includes the wait
    contexts       context length in the middle of each stretch of steps
    ms_per_step    median time of a step in each stretch
    about          GPU, versions, date, command
    """

    name: str
    seconds: float
    steps: int
    stream_active: float
    host_ms: dict[str, float]
    contexts: tuple[int, ...]
    ms_per_step: tuple[float, ...]
    about: dict[str, Any]


def recordings(directory: Path = RECORDINGS) -> tuple[str, ...]:
    """Names of the recordings that are here."""
    return tuple(sorted(path.name.removesuffix(".json.gz") for path in directory.glob("*.json.gz")))


def load_recording(name: str, directory: Path = RECORDINGS) -> Trace:
    """A recording by name; ``meta["source"]`` is ``recorded``.

    Raises:
        InvalidArgument: there is no recording of that name.
    """
    known = recordings(directory)
    if name not in known:
        allowed = f"one of {', '.join(known)}" if known else f"nothing: no recording is in {directory}"
        raise InvalidArgument("name", name, allowed)
    trace = load_chrome(directory / f"{name}.json.gz")
    return replace(trace, meta={**trace.meta, "source": "recorded"})


def whole_runs(directory: Path = RECORDINGS) -> tuple[WholeRun, ...]:
    """The whole experiments, in the order in which they ran; none if none was recorded."""
    path = directory / WHOLE_RUNS
    kept = json.loads(path.read_text()) if path.is_file() else []
    return tuple(_whole_run(run) for run in kept)


def _whole_run(kept: dict[str, Any]) -> WholeRun:
    return WholeRun(**{**kept, "contexts": tuple(kept["contexts"]), "ms_per_step": tuple(kept["ms_per_step"])})
