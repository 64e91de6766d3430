"""The same programs on a real GPU, through torch.cuda.

A kernel of a given duration is ``torch.cuda._sleep``: one thread block that spins. So kernels of two streams always
overlap where nothing orders them, and ``fraction`` has no meaning here. Its cycles are measured again for each test,
because the clock of the GPU changes.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
import torch

from tests.devices.program import Work

UNIT_US = 200.0  # microseconds of a unit
_SHARE, _FLOOR = 0.15, 5.0  # tolerance of a time: 15 %, and at least 5 units (1 ms)


class Real:
    """A program on the current CUDA device. Names that are not here are torch.cuda's."""

    real = True
    unit_ms = UNIT_US / 1000

    def __init__(self) -> None:
        self._cycles = cycles_per_unit()
        self._bandwidth = bytes_per_unit()
        self._anchor = torch.cuda.Event(enable_timing=True)
        self._zero: float | None = None

    def _begin(self) -> float:
        """Time 0: the first enqueued work or the first look at the clock. Making streams and memory takes ms before."""
        if self._zero is None:
            torch.cuda.synchronize()
            self._anchor.record()
            self._anchor.synchronize()
            self._zero = time.perf_counter()
        return self._zero

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cuda, name)

    def with_(self, *_: Any, **__: Any) -> Any:
        pytest.skip("not testable on a real GPU: it has its own costs and policies, the test needs others")

    def costing(self, **_: int) -> Real:
        return self

    def not_on_a_real_gpu(self, why: str) -> None:
        pytest.skip(f"not testable on a real GPU: {why}")

    def settle_on_hardware(self, question: str, holds: bool, seen: object) -> None:
        if not holds:
            pytest.skip(f"DIVERGES: {question}: {seen}")

    def isolated(self, program: Callable[..., Any], **options: Any) -> Any:
        result = in_a_child(program, options) if options else all_in_children(program.__module__)[program.__name__]
        if isinstance(result, BaseException):
            raise result
        return result

    # -- streams -----------------------------------------------------------------------------------------------------

    def foreign_stream(self, *, blocking: bool) -> Any:
        handle = ctypes.c_void_p()
        error = cudart().cudaStreamCreateWithFlags(ctypes.byref(handle), 0 if blocking else 1)
        assert error == 0
        stream = torch.cuda.ExternalStream(handle.value)
        first_use(stream)
        return stream

    # -- memory ------------------------------------------------------------------------------------------------------

    def tensor_of(self, units: float, place: str, value: float | None = None) -> torch.Tensor:
        n = max(1, round(units * self._bandwidth) // 4)
        where = "cuda" if place == "device" else "cpu"
        tensor = torch.empty(n, device=where, pin_memory=place == "pinned")
        if value is not None:
            tensor.fill_(value)
        torch.cuda.synchronize()
        return tensor

    def empty(self, *shape: int, **options: Any) -> torch.Tensor:
        return torch.empty(*shape, **options)

    def tensor(self, values: Any, **options: Any) -> torch.Tensor:
        return torch.tensor(values, **options)

    def as_tensor(self, values: Any, **options: Any) -> torch.Tensor:
        return torch.as_tensor(values, **options)

    def peek(self, tensor: torch.Tensor) -> float:
        if tensor.is_cuda:
            torch.cuda.synchronize()
        return float(tensor.flatten()[0])

    def host_read(self, tensor: torch.Tensor) -> float:
        return float(tensor.flatten()[0])

    def host_fill(self, tensor: torch.Tensor, value: float) -> None:
        tensor.fill_(value)

    # -- work --------------------------------------------------------------------------------------------------------

    def kernel(
        self,
        units: float,
        stream: Any = None,
        *,
        fraction: float = 1.0,
        reads: Sequence[Any] = (),
        writes: Sequence[Any] = (),
        fn: Callable[..., Any] | None = None,
        name: str = "kernel",
    ) -> Work:
        def enqueue() -> None:
            torch.cuda._sleep(round(units * self._cycles))
            if fn is not None:
                fn(*reads, *writes)

        return self._timed(enqueue, stream)

    def fill(self, tensor: Any, value: float, units: float, stream: Any = None, **options: Any) -> Work:
        return self.kernel(units, stream, writes=[tensor], fn=lambda x: x.fill_(value), **options)

    def read(self, tensor: Any, units: float, stream: Any = None, **options: Any) -> tuple[Any, Work]:
        with torch.cuda.stream(stream):
            out = torch.empty_like(tensor)
        return out, self.kernel(units, stream, reads=[tensor], writes=[out], fn=lambda x, y: y.copy_(x), **options)

    def copy(self, dst: Any, src: Any, stream: Any = None, *, non_blocking: bool = True) -> Work:
        return self._timed(lambda: dst.copy_(src, non_blocking=non_blocking), stream)

    def replay(self, graph: Any, stream: Any = None) -> Work:
        return self._timed(graph.replay, stream)

    def _timed(self, enqueue: Callable[[], Any], stream: Any) -> Work:
        with torch.cuda.stream(stream):
            if torch.cuda.is_current_stream_capturing():
                enqueue()
                return Work(lambda: (float("nan"), float("nan")))
            self._begin()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            enqueue()
            end.record()
        return Work(lambda: (self._unit_of(start), self._unit_of(end)))

    def _unit_of(self, event: Any) -> float:
        return float(self._anchor.elapsed_time(event)) * 1000 / UNIT_US

    # -- time --------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        zero = self._begin()
        return (time.perf_counter() - zero) * 1e6 / UNIT_US

    def host_until(self, units: float) -> None:
        while self.now < units:
            pass

    def about(self, units: float, tolerance: float = 0) -> Any:
        return pytest.approx(units, rel=_SHARE, abs=max(_FLOOR, tolerance))

    # -- verdicts ----------------------------------------------------------------------------------------------------

    def expect_races(self, number: int) -> None:
        """A real GPU tells nothing about order; the virtual run of the same test does."""


def cycles_per_unit() -> float:
    """Cycles that ``torch.cuda._sleep`` needs for one unit at the present clock."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    cycles = 2_000_000
    torch.cuda._sleep(cycles)
    start.record()
    torch.cuda._sleep(cycles)
    end.record()
    end.synchronize()
    return float(cycles / (start.elapsed_time(end) * 1000) * UNIT_US)


@cache
def bytes_per_unit() -> float:
    """What a pinned upload moves in one unit."""
    pinned, device = torch.ones(1 << 24).pin_memory(), torch.ones(1 << 24, device="cuda")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(3):
        start.record()
        device.copy_(pinned, non_blocking=True)
        end.record()
        end.synchronize()
    return float(pinned.nbytes / (start.elapsed_time(end) * 1000) * UNIT_US)


def warm_up() -> None:
    """Load every kernel that the tests use: a first launch loads its module, and that can wait for the device."""
    x = torch.ones(1 << 20, device="cuda")
    pinned, pageable = torch.ones(1 << 20).pin_memory(), torch.ones(1 << 20)
    for n in range(20):
        y = (x @ x).clone() + x.sum()
        x.fill_(n).mul_(2).add_(1).sub_(1)
        x.copy_(pinned, non_blocking=True)
        pinned.copy_(x, non_blocking=True)
        x.copy_(pageable)
        y.add_(x[0])
        x.normal_()
    for priority in (0, -1):
        for _ in range(32):
            first_use(torch.cuda.Stream(priority=priority))
    square = torch.randn(4096, 4096, device="cuda")
    for _ in range(30):
        square = square @ square
    torch.cuda.synchronize()


def first_use(stream: Any) -> None:
    """The first work of a stream can take the host milliseconds."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1000)
        torch.ones(1, device="cuda").add_(1)
    stream.synchronize()


def cudart() -> ctypes.CDLL:
    """CUDA's runtime library, the one that torch has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libcudart" in line}
    return ctypes.CDLL(sorted(paths)[0])


@cache
def all_in_children(module: str) -> dict[str, Any]:
    """The results of all programs of a module, from a process each, several at a time; an exception is a result too.

    Starting CUDA takes seconds, and these programs do not look at times: all are run when the first is asked for.
    """
    functions = vars(importlib.import_module(module))
    programs = {name: f for name, f in functions.items() if inspect.isfunction(f) and is_program(f)}
    with ThreadPoolExecutor(6) as threads:
        return dict(zip(programs, threads.map(lambda program: in_a_child(program, {}), programs.values()), strict=True))


def is_program(function: Callable[..., Any]) -> bool:
    """Programs take a device and nothing else."""
    return list(inspect.signature(function).parameters) == ["dev"]


def in_a_child(program: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Run a program in a fresh process: forked from a server that has imported torch and not touched CUDA."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "tests.devices.real"])
    try:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(_child, program, options).result(timeout=60)
    except Exception as error:
        return error


def _child(program: Callable[..., Any], options: dict[str, Any]) -> Any:
    if options.get("launch_blocking"):
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # read when CUDA starts, so not before here
    x = torch.ones(4, device="cuda")
    x.fill_(2).add_(1)
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    device = Real()
    device._begin()  # it waits for the device, which these programs must not do inside a capture
    return program(device)
