"""PyTorch profiler traces: as a Trace of their own, and as the kernels inside the operations of a labkit trace.

``torch.profiler`` writes Chrome JSON (``export_chrome_trace``); of its events these are read:

    kernel, gpu_memset      a kernel; a labkit operation (a launch, a graph replay) is made of many
    gpu_memcpy              a copy, on the lane of its direction
    cuda_runtime, _driver   a host call; the device events that it issued carry its ``correlation``

``analysis/kernels.py`` puts the kernels into the operations of a labkit trace of the same steps.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labkit.errors import InvalidArgument
from labkit.trace.events import Edge, Span, Trace

_DEVICE = ("kernel", "gpu_memset", "gpu_memcpy")
_HOST = ("cuda_runtime", "cuda_driver")
_CALLS = (  # part of a call's name, and what kind of span it is; the first that fits
    ("EventRecord", "record"),
    ("WaitEvent", "wait"),
    ("Synchronize", "synchronize"),
    ("Query", "query"),
    ("Launch", "launch"),
    ("Memcpy", "launch"),
    ("Memset", "launch"),
)


def load_profile_trace(path: str | Path) -> Trace:
    """The device events and the CUDA calls of a file that ``torch.profiler`` exported, ``.json`` or ``.json.gz``.

    Times are ns from the first of them. Streams are named by their number; an edge of kind ``issue`` leads from a call
    to each device event that it issued, so a graph replay is one call with many kernels.

    Raises:
        InvalidArgument: the file is not such a trace, or no CUDA event is in it.
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        content = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        events = [e for e in content["traceEvents"] if e.get("ph") == "X" and e.get("cat") in (*_DEVICE, *_HOST)]
        return _trace(events, content, str(path))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zlib.error) as error:
        if isinstance(error, InvalidArgument):
            raise
        allowed = "a Chrome trace that torch.profiler exported"
        raise InvalidArgument("path", str(path), f"{allowed} ({type(error).__name__}: {error})") from error


def _trace(events: list[dict[str, Any]], content: dict[str, Any], path: str) -> Trace:
    if not any(event["cat"] in _DEVICE for event in events):
        raise InvalidArgument("path", path, "a profiler trace with CUDA events: profile with ProfilerActivity.CUDA")
    events.sort(key=lambda event: (event["ts"], event["cat"] in _DEVICE))
    zero = _ns(events[0])
    edges = tuple(_issued(events))
    calls = {edge.after: _ns(events[edge.before]) - zero for edge in edges}
    spans = tuple(_span(number, event, zero, calls.get(number)) for number, event in enumerate(events))
    gpus = [one.get("name", "") for one in content.get("deviceProperties", ())]
    meta = {"source": "profiler", "device": gpus[0] if gpus else "", "path": Path(path).name}
    return Trace(spans, edges, meta)


def _ns(event: dict[str, Any]) -> int:
    """Start of an event on the profiler's clock."""
    return round(event["ts"] * 1000)


def _span(number: int, event: dict[str, Any], zero: int, issued: int | None) -> Span:
    """``issued``: when the host's call began; of a device event whose call is not known, its own start."""
    start = _ns(event) - zero
    length, name, args = round(event.get("dur", 0) * 1000), event["name"], event.get("args", {})
    if event["cat"] in _HOST:
        kind = next((kind for part, kind in _CALLS if part in name), "call")
        return Span(number, kind, name, "CPU", start, start + length, issued_ns=start)
    kind, lane = _device_kind(event["cat"], name)
    stream = f"stream {args.get('stream', '?')}"
    size, issued_ns = int(args.get("bytes", 0)), start if issued is None else min(issued, start)
    return Span(
        number, kind, name, lane, start, start + length, stream=stream, issued_ns=issued_ns, busy_ns=length, bytes=size
    )


def _device_kind(category: str, name: str) -> tuple[str, str]:
    """Kind and lane of a device event. A copy within the device stands on the compute lane."""
    if category != "gpu_memcpy":
        return "kernel", "compute"
    return "copy", "H2D" if "HtoD" in name else "D2H" if "DtoH" in name else "compute"


def _issued(events: list[dict[str, Any]]) -> Iterator[Edge]:
    """From each call to the device events that carry its correlation."""
    numbers = [event.get("args", {}).get("correlation") for event in events]
    calls = {numbers[n]: n for n, event in enumerate(events) if event["cat"] in _HOST and numbers[n] is not None}
    for number, event in enumerate(events):
        if event["cat"] in _DEVICE and numbers[number] in calls:
            yield Edge(calls[numbers[number]], number, "issue")
