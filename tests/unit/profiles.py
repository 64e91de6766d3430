"""Files as ``torch.profiler`` writes them: its own envelope, made on the CPU, and the device events of a labkit trace.

Kineto's events of a CUDA run, as its chrome trace output has them: a runtime call in the thread of the host, and for
each thing that it issued a device event with the same ``correlation``, in microseconds with ns as fraction.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from labkit.trace.events import DEVICE_KINDS, Span, Trace

CALLS = {"graph": "cudaGraphLaunch", "kernel": "cudaLaunchKernel", "copy": "cudaMemcpyAsync"}
WAITS = {"wait": "cudaStreamWaitEvent", "synchronize": "cudaEventSynchronize", "record": "cudaEventRecordWithFlags"}
COPIES = {"H2D": "Memcpy HtoD (Pinned -> Device)", "D2H": "Memcpy DtoH (Device -> Pinned)"}


def envelope(path: Path) -> dict[str, Any]:
    """What the profiler of this PyTorch writes for a run without a GPU."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.ones(4).add_(1)
    profiler.export_chrome_trace(str(path))
    return json.loads(path.read_text())


def event(category: str, name: str, start_ns: int, length_ns: int, **args: object) -> dict[str, Any]:
    times = {"ts": start_ns / 1000, "dur": length_ns / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, **times, "args": args}


def profile_of(trace: Trace, path: Path, *, later_ns: int = 0, kernels: int = 3, gap_ns: int = 1000) -> Path:
    """The same run as a profiler would have seen it, on a clock that is ``later_ns`` ahead.

    Every compute operation becomes so many kernels with gaps of ``gap_ns`` before each.
    """
    content, spans, events = envelope(path), {span.id: span for span in trace.spans}, []
    for number, edge in enumerate(edge for edge in trace.edges if edge.kind == "issue"):
        call, operation = spans[edge.before], spans[edge.after]
        events.append(_call(CALLS[operation.kind], call, later_ns, correlation=number))
        events += _device_events(operation, number, later_ns, kernels, gap_ns)
    events += [_call(WAITS[span.kind], span, later_ns, correlation=10**6) for span in trace.of_kind(*WAITS)]
    content["traceEvents"] += events
    content["deviceProperties"] = [{"id": 0, "name": "NVIDIA Test"}]
    path.write_text(json.dumps(content))
    return path


def _call(name: str, span: Span, later_ns: int, **args: object) -> dict[str, Any]:
    """A call in the middle half of a labkit span of the host."""
    quarter = span.duration_ns // 4
    return event("cuda_runtime", name, span.start_ns + quarter + later_ns, span.duration_ns - 2 * quarter, **args)


def _device_events(operation: Span, number: int, later_ns: int, kernels: int, gap_ns: int) -> list[dict[str, Any]]:
    assert operation.kind in DEVICE_KINDS
    common, start = {"device": 0, "stream": 7, "correlation": number}, operation.start_ns + later_ns
    if operation.kind == "copy":
        size = {"bytes": operation.bytes}
        return [event("gpu_memcpy", COPIES[operation.lane], start, operation.duration_ns, **common, **size)]
    part = operation.duration_ns // kernels
    return [
        event("kernel", f"kernel {n}", start + n * part + gap_ns, part - gap_ns, **common, grid=[1, 1, 1])
        for n in range(kernels)
    ]
