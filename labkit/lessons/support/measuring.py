"""The judges of lesson 09: a way to measure is right if it gives back what a known machine costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from labkit.bench.models import open_rig
from labkit.bench.table import BenchRow
from labkit.lessons.result import Result, right, wrong
from labkit.lessons.support.judging import judged
from labkit.lessons.support.machines import (
    LAUNCH_MACHINES,
    LINKS,
    STEP_MACHINES,
    Bench,
    LaunchMachine,
    StepMachine,
    link_copies,
)

FEWEST = 20  # launches: one says little where the clock has noise
CLOSE, CLOSE_STEP = 0.02, 0.05  # relative


def number(value: Any) -> float | None:
    """A plain number, or None."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def near(value: float, wanted: float, share: float = CLOSE) -> bool:
    return abs(value - wanted) <= share * abs(wanted)


# -- what a launch costs ---------------------------------------------------------------------------------------------


def judge_launch(answer: Callable[[Bench], Any], device: str) -> Result:
    """Exact on machines that are known; on a real GPU the value is told."""
    for machine in LAUNCH_MACHINES:
        complaint = _launch(answer, machine)
        if complaint is not None:
            return complaint
    bench = Bench(open_rig(device))
    return right(f"Right on three machines whose costs are known. On {bench.about}: {answer(bench) / 1000:.1f} us.")


def _launch(answer: Callable[[Bench], Any], machine: LaunchMachine) -> Result | None:
    bench = machine.bench()
    given, wanted = answer(bench), machine.launch_ns
    value = number(given)
    about = f"{wanted:,} ns on a virtual machine whose kernel takes {machine.kernel_ns:,} ns"
    if value is None:
        return wrong("A cost is a number of ns. Is there a `return`?", yours=repr(given), expected=about)
    if near(value, wanted) and bench.launches >= FEWEST:
        return None
    return wrong(_launch_slip(value, machine, bench.launches), yours=f"{value:,.0f} ns", expected=about)


def _launch_slip(value: float, machine: LaunchMachine, launches: int) -> str:
    wanted = machine.launch_ns
    if near(value, wanted):
        return f"Right here, where the clock has no noise. Launch at least {FEWEST} times and take the mean."
    if launches == 0:
        return "Nothing was launched: `bench.launch()` enqueues the kernel."
    if near(value * 1000, wanted):
        return "That is in microseconds; the clock counts ns."
    if launches > 1 and near(value, launches * wanted):
        return "That is the time of all launches together."
    if value > wanted:
        return (
            "Something else is in it. Between the two readings of the clock, the host must do nothing but launch: "
            "waiting for the kernels belongs after the second reading."
        )
    return "Less than a launch costs: is the difference of the two readings divided by the number of launches?"


# -- what a link costs -----------------------------------------------------------------------------------------------


def judge_link(answer: Callable[..., Any], device: str) -> Result:
    """Latency and bandwidth of links that are known, from sizes and times of copies."""
    for link in LINKS:
        given = answer(*link_copies(link))
        about = f"({link.latency_ns:,.0f}, {link.pinned:g}): ns, bytes per ns"
        if not isinstance(given, tuple | list) or len(given) != 2 or None in (pair := [number(it) for it in given]):
            return wrong("Two numbers are asked for: latency and bandwidth.", yours=repr(given), expected=about)
        latency, rate = (float(value or 0) for value in pair)
        if not (near(latency, link.latency_ns) and near(rate, link.pinned)):
            yours = f"({latency:,.4g}, {rate:.4g})"
            return wrong(_link_slip(latency, rate, link.latency_ns, link.pinned), yours=yours, expected=about)
    return right("A copy's time is a straight line over its size: where it starts is the latency, 1 / slope the rate.")


def _link_slip(latency: float, rate: float, wanted_ns: float, wanted_rate: float) -> str:
    if near(latency, wanted_rate) and near(rate, wanted_ns):
        return "The two are the wrong way round: latency first."
    if rate and near(1 / rate, wanted_rate):
        return "That is ns per byte, the slope; the bandwidth is bytes per ns."
    if not near(rate, wanted_rate):
        return (
            "The bandwidth is off. The size of a copy divided by its time is too little, since the latency is in the "
            "time; the difference of two sizes, divided by the difference of their times, has no latency in it."
        )
    return "The bandwidth is right. The latency is what a copy of no bytes would take: time minus size / bandwidth."


# -- what asynchrony will bring --------------------------------------------------------------------------------------


def judge_step(answer: Callable[[BenchRow], Any], device: str) -> Result:
    """The asynchronous step from the synchronous one, on machines with hosts that are fast and slow."""
    return judged(
        (_step(answer, machine) for machine in STEP_MACHINES),
        "The slower of the two sets the pace: whichever of host and GPU needs longer for a step.",
    )


def _step(answer: Callable[[BenchRow], Any], machine: StepMachine) -> Result | None:
    sync, ahead = machine.rows()
    given, host = answer(sync), sum(sync.host_ns.values())
    value = number(given)
    about = f"{ahead.ns / 1e6:.2f} ms (host {host / 1e6:.2f} ms, kernels {sync.busy_ns / 1e6:.2f} ms)"
    if value is None:
        return wrong("A step's time is a number of ns. Is there a `return`?", yours=repr(given), expected=about)
    if near(value, ahead.ns, CLOSE_STEP):
        return None
    says = next(_step_slips(value, sync, host), "That is not what this machine measures.")
    return wrong(says, yours=f"{value / 1e6:.2f} ms", expected=about)


def _step_slips(value: float, sync: BenchRow, host: float) -> Iterator[str]:
    if near(value * 1e6, max(host, sync.busy_ns), CLOSE_STEP):
        yield "That is in ms; the row's times are in ns."
    if near(value, sync.ns, CLOSE_STEP):
        yield "That is the synchronous step: host and kernels one after the other."
    if near(value, sync.busy_ns, CLOSE_STEP):
        yield "On this machine the host needs longer for a step than the kernels do, so the GPU waits for it."
    if near(value, host, CLOSE_STEP):
        yield "On this machine the kernels take longer than the host's work, which disappears behind them."
    if value > sync.ns:
        yield "Longer than the synchronous step: nothing gets slower by being done at the same time."
