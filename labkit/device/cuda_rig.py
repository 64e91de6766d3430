"""A real GPU on the calibration bench (``calibrate/rig.py``)."""

from __future__ import annotations

import ctypes
import platform
import statistics
from collections.abc import Callable

import torch

from labkit.device.api import Event, Work
from labkit.device.calibrate.rig import Launch
from labkit.device.cuda import CudaDevice, CudaOp

_COPIED = 2 << 30  # bytes


class CudaRig:
    """The current CUDA device on the bench.

    Raises:
        DeviceError: torch sees no GPU.
    """

    def __init__(self) -> None:
        self.device = CudaDevice(timing=True)
        self.device.timing = False
        self.about = f"{self.device.name}, torch {torch.__version__}, Python {platform.python_version()}"
        self._one = torch.zeros(1, device="cuda")
        self._cycles_per_ns = self._clock()

    def tiny(self) -> Launch:
        return self._increment, Work("fixed")

    def _increment(self) -> None:
        self._one.add_(1)

    def busy(self, ns: int) -> Launch:
        cycles = max(1, round(ns * self._cycles_per_ns))
        return lambda: torch.cuda._sleep(cycles), Work("fixed", fixed_ns=ns)

    def timing(self, on: bool) -> None:
        self.device.timing = on

    def duration(self, op: CudaOp) -> tuple[int, int]:
        ns = round(op.start.elapsed_time(op.end) * 1e6)
        return ns, ns

    def blocking_event(self) -> Event:
        return Event("asleep", self.device, torch.cuda.Event(blocking=True))

    def malloc(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, device="cuda")

    def pinned_malloc(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def release(self) -> int:
        before = torch.cuda.memory_stats().get("num_device_free", 0)
        torch.cuda.empty_cache()
        freed: int = torch.cuda.memory_stats().get("num_device_free", before + 1) - before
        return freed

    def launches(self, kernel: str, fn: Callable[[], None]) -> int:
        """Nodes of a graph of it."""
        side = torch.cuda.Stream()
        with torch.cuda.stream(side), torch.inference_mode():
            fn()  # warm
        torch.cuda.synchronize()
        try:
            graph = torch.cuda.CUDAGraph(keep_graph=True)
            with torch.inference_mode(), torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
                fn()
            count = ctypes.c_size_t()
            failed = _cudart().cudaGraphGetNodes(ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count))
        except (TypeError, RuntimeError, OSError, AttributeError, IndexError):  # another version of torch or CUDA
            return 0
        return 0 if failed else count.value

    def read_bandwidth(self) -> float:
        """Of a large copy within the device: bytes read plus bytes written."""
        source = torch.empty(_COPIED, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        times = []
        for _ in range(12):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            target.copy_(source)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e6)
        return 2 * _COPIED / statistics.median(times)

    def _clock(self) -> float:
        """Cycles per ns of ``torch.cuda._sleep``, measured."""
        torch.cuda._sleep(20_000_000)  # the clock rises under load
        rates = []
        for _ in range(5):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(1_000_000)
            start.record()
            torch.cuda._sleep(4_000_000)
            end.record()
            end.synchronize()
            rates.append(4_000_000 / (start.elapsed_time(end) * 1e6))
        return statistics.median(rates)


def _cudart() -> ctypes.CDLL:
    """CUDA's runtime library, the one that torch has loaded."""
    with open("/proc/self/maps") as maps:
        return ctypes.CDLL(sorted({line.split()[-1] for line in maps if "libcudart" in line})[0])
