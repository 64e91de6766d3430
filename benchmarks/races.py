"""How long the race checker takes: per operation it must not grow with the trace.

    python benchmarks/races.py [OPERATIONS ...]        default: 10000 100000 1000000

A trace of the loop's shape, with invented operations: two slots, three streams, the three waits. ``clean`` is the check
of that trace, ``racy`` of the same without its waits, fixes included. Ratios compare the time per operation with that
of the smallest trace; a linear check stays near 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from labkit.analysis.races import check
from labkit.analysis.redundant import wait_name
from labkit.trace.events import Span, Touch, Trace

OPERATIONS_PER_STEP = 5


def spans(steps: int) -> Iterator[Span]:
    """Two steps in flight, settled one step late."""
    number = 0

    def span(kind: str, name: str, **more: object) -> Span:
        nonlocal number
        number += 1
        return Span(number, kind, name, "CPU", number, number + 1, **more)  # type: ignore[arg-type]

    buffers = {
        name + slot: (Touch(name + slot, 0, 4096, "device", number),)
        for number, (name, slot) in enumerate(((n, s) for n in ("in_host", "in", "out", "out_host") for s in "AB"), 1)
    }
    kv = (Touch("kv", 0, 1 << 20, "device", 99),)
    for step in range(steps + 1):
        slot, done = "AB"[step % 2], "AB"[(step + 1) % 2]
        if step < steps:
            yield span("host_write", "write in_host", writes=buffers["in_host" + slot], step=step)
            yield span(
                "copy", "upload", stream="h2d", reads=buffers["in_host" + slot], writes=buffers["in" + slot], step=step
            )
            yield span("record", "record", stream="h2d", event=f"h2d_done[{slot}]", record=step // 2 + 1)
            yield span("wait", "wait", stream="compute", event=f"h2d_done[{slot}]", record=step // 2 + 1)
            for name in ("carry_over", "forward"):
                yield span("kernel", name, stream="compute", reads=buffers["in" + slot] + kv, writes=kv, step=step)
            yield span("kernel", "sample", stream="compute", reads=kv, writes=buffers["out" + slot], step=step)
            yield span("record", "record", stream="compute", event=f"compute_done[{slot}]", record=step // 2 + 1)
            yield span("wait", "wait", stream="d2h", event=f"compute_done[{slot}]", record=step // 2 + 1)
            yield span(
                "copy",
                "download",
                stream="d2h",
                reads=buffers["out" + slot],
                writes=buffers["out_host" + slot],
                step=step,
            )
            yield span("record", "record", stream="d2h", event=f"d2h_done[{slot}]", record=step // 2 + 1)
        if step:
            yield span("synchronize", "wait", event=f"d2h_done[{done}]", record=(step - 1) // 2 + 1)
            yield span("host_read", "read out_host", reads=buffers["out_host" + done], step=step - 1)


def seconds(trace: Trace, races: bool) -> float:
    """Processor time of one check, whose verdict must be as announced."""
    start = time.process_time()
    report = check(trace)
    taken = time.process_time() - start
    if bool(report.races) != races or report.notices:
        raise SystemExit(f"expected races: {races}; the report says: {report}")
    return taken


def main(sizes: list[int]) -> None:
    print(f"{'operations':>12}{'spans':>12}{'clean s':>10}{'ratio':>8}{'racy s':>10}{'ratio':>8}")
    first: tuple[float, float] | None = None
    for operations in sizes:
        trace = Trace(tuple(spans(operations // OPERATIONS_PER_STEP)))
        without = Trace(tuple(span for span in trace.spans if wait_name(span) is None))
        clean, racy = seconds(trace, races=False), seconds(without, races=True)
        first = first or (clean / operations, racy / operations)
        ratios = clean / operations / first[0], racy / operations / first[1]
        print(
            f"{operations:>12}{len(trace):>12}{clean:>10.2f}{ratios[0]:>8.2f}{racy:>10.2f}{ratios[1]:>8.2f}", flush=True
        )


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [10_000, 100_000, 1_000_000])
