"""Questions that no document answers, asked of the GPU here (docs/semantics.md, section 4). Under a minute.

    python benchmarks/open_points.py

    (a) the size at which a pageable upload starts to wait for its stream   (e) device-to-device copies: engine or SMs
    (b) whether cudaMalloc and cudaFree wait for the device                 (f) calls of another thread during a capture
    (c) how many streams run at once before hardware queues are shared     (g) copy engines
    (d) priority among blocks of pending kernels

A point that fails says so and the others go on. (f) runs in other processes: a spoiled capture spoils torch's state.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def cudart() -> ctypes.CDLL:
    """CUDA's runtime library, the one that torch has loaded."""
    with open("/proc/self/maps") as maps:
        return ctypes.CDLL(sorted({line.split()[-1] for line in maps if "libcudart" in line})[0])


def cycles(ms: float) -> int:
    """Cycles that ``torch.cuda._sleep`` takes for so many milliseconds, measured now."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(2_000_000)
    start.record()
    torch.cuda._sleep(4_000_000)
    end.record()
    end.synchronize()
    return round(4_000_000 / start.elapsed_time(end) * ms)


def host_ms(call: Callable[[], Any]) -> float:
    """Host time of a call."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def behind_a_kernel(ms: float, call: Callable[[], Any], stream: Any = None) -> float:
    """Host time of a call behind a sleeping kernel; waits for everything afterwards."""
    n = cycles(ms)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(n)
        took = host_ms(call)
    torch.cuda.synchronize()
    return took


def pageable_threshold() -> Iterator[str]:
    """(a) Return times of a pageable upload behind a 5 ms kernel, and the threshold by bisection to 1 KiB."""

    def took(nbytes: int) -> float:
        h, x = torch.ones(nbytes, dtype=torch.uint8), torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        x.copy_(h)
        return min(behind_a_kernel(5, lambda: x.copy_(h, non_blocking=True)) for _ in range(2))

    sizes = [1 << n for n in range(10, 27)]
    times = {size: took(size) for size in sizes}
    yield "  ".join(f"{size >> 10} KiB {ms:.2f}" for size, ms in times.items()) + "  (ms)"
    waiting = [size for size in sizes if times[size] > 4]
    if not waiting:
        yield "no size waits"
        return
    high = waiting[0]
    low = high // 2
    while high - low > 1024 and low >= 1024:
        middle = (low + high) // 2
        low, high = (low, middle) if took(middle) > 4 else (middle, high)
    yield f"an upload of {low} bytes does not wait, one of {high} does"


def malloc_and_free() -> Iterator[str]:
    """(b) Host time of cudaMalloc and cudaFree behind a 20 ms kernel."""
    library, pointer = cudart(), ctypes.c_void_p()
    for size in (1 << 20, 1 << 30):
        malloc = behind_a_kernel(20, lambda size=size: library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
        free = behind_a_kernel(20, lambda: library.cudaFree(pointer))
        yield f"{size >> 20} MiB: cudaMalloc {malloc:.2f} ms, cudaFree {free:.2f} ms behind 20 ms"


def hardware_queues() -> Iterator[str]:
    """(c) n kernels of one block, of 5 ms, on n streams: together they take 5 ms while each has a queue of its own."""
    library, n = cudart(), cycles(5)
    streams = []
    for _ in range(160):
        handle = ctypes.c_void_p()
        library.cudaStreamCreateWithFlags(ctypes.byref(handle), 1)
        streams.append(torch.cuda.ExternalStream(handle.value))
    found = {}
    for count in (1, 2, 4, 8, 16, 32, 33, 64, 65, 96, 128, 129, 160):
        torch.cuda.synchronize()

        def launch(count: int = count) -> None:
            for stream in streams[:count]:
                with torch.cuda.stream(stream):
                    torch.cuda._sleep(n)
            torch.cuda.synchronize()

        found[count] = host_ms(launch)
    yield "  ".join(f"{count}: {ms:.1f}" for count, ms in found.items()) + "  (ms for so many streams)"
    both = [torch.cuda.Stream() for _ in range(64)]
    yield f"torch.cuda.Stream: {len({stream.cuda_stream for stream in both})} different of 64"


def priority() -> Iterator[str]:
    """(d) A long matrix product of low priority runs; a small one of high priority is launched. When does it end?"""
    low, high = torch.cuda.Stream(priority=0), torch.cuda.Stream(priority=-1)
    big, small = torch.randn(16384, 16384, device="cuda"), torch.randn(1024, 1024, device="cuda")
    for stream in (low, high, low):
        ends = {}
        torch.cuda.synchronize()
        start = torch.cuda.Event(enable_timing=True)
        marks = {name: torch.cuda.Event(enable_timing=True) for name in ("big", "small")}
        start.record(low)
        with torch.cuda.stream(low):
            out = big @ big
            marks["big"].record(low)
        time.sleep(0.001)
        with torch.cuda.stream(torch.cuda.Stream() if stream is low else high):
            tiny = small @ small
            marks["small"].record()
        torch.cuda.synchronize()
        ends = {name: start.elapsed_time(mark) for name, mark in marks.items()}
        which = "the same priority" if stream is low else "a higher priority"
        yield f"small kernel of {which}: ends at {ends['small']:.2f} ms, the big one at {ends['big']:.2f} ms"
        del out, tiny


def device_to_device() -> Iterator[str]:
    """(e) A large copy beside a kernel that fills every SM: the copy is slowed down if it needs SMs."""
    x, y = torch.ones(1 << 28, device="cuda"), torch.empty(1 << 28, device="cuda")
    square, s, t = torch.randn(8192, 8192, device="cuda"), torch.cuda.Stream(), torch.cuda.Stream()

    def copy() -> None:
        with torch.cuda.stream(s):
            y.copy_(x)

    def compute() -> None:
        with torch.cuda.stream(t):
            for _ in range(8):
                square @ square

    def timed(*calls: Callable[[], None]) -> float:
        def run() -> None:
            for call in calls:
                call()
            torch.cuda.synchronize()

        run()
        return min(host_ms(run) for _ in range(3))

    alone = timed(copy), timed(compute)
    together = timed(compute, copy)
    yield f"copy alone {alone[0]:.2f} ms, products alone {alone[1]:.2f} ms, together {together:.2f} ms"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        copy()
        torch.cuda.synchronize()
    yield "the profiler calls it: " + ", ".join(sorted({event.key for event in profile.key_averages() if event.key}))


def other_thread_in_capture() -> Iterator[str]:
    """(f) What a call in another thread does to a capture, per mode."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    calls = ("event query", "pinned allocation", "cudaMalloc", "stream synchronize", "device synchronize")
    asked = [(mode, what) for mode in MODES for what in calls]

    def ask(question: tuple[str, str]) -> str:
        try:
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                return pool.submit(capture_and_call, *question).result(timeout=40)
        except Exception as error:
            return f"no answer: {type(error).__name__}"

    with ThreadPoolExecutor(6) as threads:
        for (mode, what), answer in zip(asked, threads.map(ask, asked), strict=True):
            yield f"{mode:13}{what:20}{answer}"


def capture_and_call(mode: str, what: str) -> str:
    """In a fresh process: capture in this thread, call in another."""
    x, other, event, pointer = torch.ones(4, device="cuda"), torch.cuda.Stream(), torch.cuda.Event(), ctypes.c_void_p()
    x.add_(1)
    event.record(other)
    library = cudart()
    torch.cuda.synchronize()
    calls: dict[str, Callable[[], Any]] = {
        "event query": event.query,
        "pinned allocation": lambda: torch.empty(1 << 20, pin_memory=True),
        "cudaMalloc": lambda: _checked(library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20))),
        "stream synchronize": other.synchronize,
        "device synchronize": torch.cuda.synchronize,
    }
    graph, results = torch.cuda.CUDAGraph(), []
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(capture_error_mode=mode)
        x.add_(1)
        thread = threading.Thread(target=lambda: results.append(_said(calls[what])))
        thread.start()
        thread.join()
        ending = _said(graph.capture_end)
    return f"call: {results[0]}; capture_end: {ending}"


def _checked(code: int) -> None:
    if code:
        raise RuntimeError(f"CUDA error {code}")


def _said(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return str(error).splitlines()[0]
    return "ok"


def copy_engines() -> Iterator[str]:
    """(g) asyncEngineCount."""
    library, value = cudart(), ctypes.c_int()
    _checked(library.cudaDeviceGetAttribute(ctypes.byref(value), 40, 0))  # cudaDevAttrAsyncEngineCount
    yield f"asyncEngineCount {value.value}, {torch.cuda.get_device_properties(0).multi_processor_count} SMs"


POINTS = {
    "(a) pageable threshold": pageable_threshold,
    "(b) cudaMalloc, cudaFree": malloc_and_free,
    "(c) hardware queues": hardware_queues,
    "(d) priority": priority,
    "(e) device to device": device_to_device,
    "(f) other thread, capture": other_thread_in_capture,
    "(g) copy engines": copy_engines,
}


def main() -> int:
    if not torch.cuda.is_available():
        print("torch sees no CUDA GPU here: these questions are for a real one")
        return 1
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    torch.ones(1024, device="cuda").add_(1)
    torch.randn(64, 64, device="cuda") @ torch.randn(64, 64, device="cuda")
    for name, point in POINTS.items():
        start = time.perf_counter()
        try:
            for line in point():
                print(f"{name:28}{line}", flush=True)
        except Exception as error:
            print(f"{name:28}FAILED: {type(error).__name__}: {error}")
        print(f"{'':28}({time.perf_counter() - start:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
