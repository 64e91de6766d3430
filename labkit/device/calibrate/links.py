"""How fast copies are, and up to which size a pageable upload does not wait for its stream (C6, C7)."""

from __future__ import annotations

import statistics
from typing import Any

import torch

from labkit.device.api import Buffer, Place, Stream
from labkit.device.calibrate.calls import behind
from labkit.device.calibrate.fit import line
from labkit.device.calibrate.rig import Rig
from labkit.device.costs import Link, Profile

SIZES = tuple(1 << n for n in (12, 14, 16, 18, 20, 22, 24))  # bytes
LARGEST_STAGED = 1 << 25  # bytes; beyond it a threshold is not looked for
STEP = 1024  # bytes: the threshold's precision
PAUSE_NS = 3_000_000


def measure_links(rig: Rig, profile: Profile, repeats: int) -> dict[str, Any]:
    """Fields of ``Profile``; ``profile`` has the host's times already."""
    stream = rig.device.stream("links")
    stage = _stage_rate(rig, stream, profile.copy_ns, repeats)
    up, latency_up = _device_rate(rig, stream, "pinned", True, repeats)
    down, latency_down = _device_rate(rig, stream, "pinned", False, repeats)
    pageable_down, _ = _device_rate(rig, stream, "pageable", False, repeats)
    return {
        "stage_only_bytes": _stage_only_bytes(rig, stream),
        # a pageable upload is staged and then copied, so its rate is that of both in turn
        "h2d": Link(round(latency_up), up, 1 / (1 / up + 1 / stage), stage),
        "d2h": Link(round(latency_down), down, pageable_down, pageable_down),
    }


def _pair(rig: Rig, nbytes: int, host: Place) -> tuple[Buffer, Buffer]:
    """A host and a device buffer, both written to once: a page of the host's that was never touched is slow."""
    buffer = rig.device.buffer
    return buffer("host", (nbytes,), torch.uint8, host, 1), buffer("device", (nbytes,), torch.uint8, "device", 1)


def _device_rate(rig: Rig, stream: Stream, place: Place, upload: bool, repeats: int) -> tuple[float, float]:
    """Bytes per ns and latency of copies as the device sees them."""
    times = []
    for nbytes in SIZES:
        host, device = _pair(rig, nbytes, place)
        dst, src = (device, host) if upload else (host, device)

        def copy(dst: Buffer = dst, src: Buffer = src) -> Any:
            return rig.device.copy(dst, src, stream, non_blocking=place == "pinned", label="copy")

        copy()
        times.append(behind(rig, stream, copy, repeats)[0])
    latency, per_byte = line(SIZES, times)
    return _rate(per_byte), latency


def _stage_rate(rig: Rig, stream: Stream, copy_ns: int, repeats: int) -> float:
    """Bytes per ns at which the host stages a pageable upload on an idle stream."""
    sizes, times = SIZES[2:], []
    for nbytes in sizes:
        host, device = _pair(rig, nbytes, "pageable")
        samples = []
        for _ in range(repeats + 1):
            rig.device.synchronize()
            start = rig.device.now_ns()
            rig.device.copy(device, host, stream, non_blocking=True, label="copy")
            samples.append(rig.device.now_ns() - start)
        times.append(max(1, statistics.median(samples[1:]) - copy_ns))
    return _rate(line(sizes, times)[1])


def _rate(per_byte: float) -> float:
    return float(f"{1 / per_byte:.4g}") if per_byte > 0 else float("inf")


def _stage_only_bytes(rig: Rig, stream: Stream) -> int:
    """The largest pageable upload, in KiB, after which the host is back before the kernel in front of it has ended."""

    def waits(nbytes: int) -> bool:
        host, device = _pair(rig, nbytes, "pageable")
        fn, work = rig.busy(PAUSE_NS)
        times = []
        for _ in range(2):
            rig.device.synchronize()
            rig.device.launch(fn, stream, reads=(), writes=(), work=work, label="busy")
            start = rig.device.now_ns()
            rig.device.copy(device, host, stream, non_blocking=True, label="copy")
            times.append(rig.device.now_ns() - start - _staging(nbytes))
        return min(times) > PAUSE_NS * 2 / 3

    size = STEP
    while not waits(size):
        size *= 2
        if size > LARGEST_STAGED:
            return LARGEST_STAGED
    low, high = size // 2, size
    while high - low > STEP:
        middle = (low + high) // 2 // STEP * STEP
        low, high = (low, middle) if waits(middle) else (middle, high)
    return low if low >= STEP else 0


def _staging(nbytes: int) -> float:
    """ns that a slow host would need to stage so much (20 GB/s is fast): not to be taken for waiting."""
    return nbytes / 20
