"""How many operations a second the virtual GPU takes, without payload, on one core; and whether that is linear.

    python benchmarks/virtual_gpu.py [--max 1000000]

Three ways: the device as the engine uses it, VirtualGPU without a trace, and with one. CPU time, so that other programs
on the machine count less. A quarter of the operations are events: record on one stream, wait on the other.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

from labkit import VirtualDevice, VirtualGPU
from labkit.device.api import Work

WORK = Work("fixed", fixed_ns=2000, fraction=0.4)
SIZES = (10_000, 100_000, 1_000_000)


def through_the_device(n: int) -> None:
    """Kernels on two streams of the bare device."""
    device = VirtualDevice("toy-u")
    streams, event = [device.stream("s"), device.stream("t")], device.event("e")
    for number in range(n // 4):
        s, t = streams[number & 1], streams[~number & 1]
        device.launch(None, s, work=WORK, label="kernel")
        device.record(event, s)
        device.wait(t, event)
        device.launch(None, t, work=WORK, label="kernel")
    device.synchronize()


def through_the_gpu(n: int, *, trace: bool) -> None:
    """The same with torch.cuda's names."""
    gpu = VirtualGPU(trace=trace)
    streams, event = [gpu.Stream(), gpu.Stream()], gpu.Event()
    for number in range(n // 4):
        s, t = streams[number & 1], streams[~number & 1]
        gpu.kernel("kernel", 2, fraction=0.4, stream=s)
        event.record(s)
        t.wait_event(event)
        gpu.kernel("kernel", 2, fraction=0.4, stream=t)
    gpu.synchronize()


PROGRAMS: dict[str, tuple[Callable[[int], None], int]] = {
    "VirtualDevice": (through_the_device, 1_000_000),
    "VirtualGPU(trace=False)": (lambda n: through_the_gpu(n, trace=False), 1_000_000),
    "VirtualGPU()": (lambda n: through_the_gpu(n, trace=True), 100_000),
}


def seconds(program: Callable[[int], None], n: int) -> float:
    """CPU time of one run."""
    gc.collect()
    start = time.process_time()
    program(n)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max", type=int, default=SIZES[-1])
    limit = parser.parse_args().max
    print(f"{'program':26}{'operations':>12}{'seconds':>10}{'ops/s':>12}{'time per op, against the row above':>38}")
    for name, (program, largest) in PROGRAMS.items():
        before = 0.0
        for n in (size for size in SIZES if size <= min(limit, largest)):
            per_op = (took := seconds(program, n)) / n
            ratio = f"{per_op / before:38.2f}" if before else ""
            print(f"{name:26}{n:12,}{took:10.2f}{n / took:12,.0f}{ratio}", flush=True)
            before = per_op


if __name__ == "__main__":
    main()
