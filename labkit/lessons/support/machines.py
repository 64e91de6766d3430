"""Machines whose costs are known, to be measured: what lesson 09 tries an answer on.

A measurement can be wrong and look fine. On a virtual GPU the right answer is known to the ns, so that is where a way
to measure is tried, before it is believed on a real one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from labkit.bench.models import bench_model, open_rig
from labkit.bench.table import BenchRow, bench
from labkit.device.api import Work
from labkit.device.calibrate.calls import behind
from labkit.device.calibrate.rig import Rig
from labkit.device.costs import Linear, Link, Profile, load_profile, scaled_host

SIZES = tuple(1 << power for power in (12, 14, 16, 18, 20, 22))  # bytes


class Bench:
    """A device on the bench, with one stream and one small kernel.

    launches  how many kernels have been launched so far
    """

    def __init__(self, rig: Rig, kernel_ns: int = 0) -> None:
        self.about, self.launches = rig.about, 0
        self._device, self._stream = rig.device, rig.device.stream("bench")
        self._fn, self._work = rig.busy(kernel_ns) if kernel_ns else rig.tiny()
        rig.timing(False)
        self.launch()  # the first launch of a kernel costs more
        self.wait()
        self.launches = 0

    def launch(self) -> None:
        """Enqueue the kernel. Returns before it has run."""
        self.launches += 1
        work: Work = self._work
        self._device.launch(self._fn, self._stream, reads=(), writes=(), work=work, label="small")

    def wait(self) -> None:
        """The host waits until everything that was launched has run."""
        self._device.synchronize(self._stream)

    def now_ns(self) -> int:
        """The host's clock."""
        return self._device.now_ns()


@dataclass(frozen=True)
class LaunchMachine:
    """A virtual machine: what a launch costs the host, and how long the kernel runs."""

    launch_ns: int
    kernel_ns: int

    def bench(self) -> Bench:
        """It, on the bench."""
        return Bench(open_rig("virtual", replace(load_profile("toy-u"), launch_ns=self.launch_ns)), self.kernel_ns)


LAUNCH_MACHINES = (LaunchMachine(9_700, 1_000), LaunchMachine(3_100, 1_000), LaunchMachine(4_000, 25_000))
LINKS = (Link(4_000, 55.0), Link(1_500, 24.0), Link(12_000, 300.0))


def copies(rig: Rig, upload: bool = True) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes in bytes and times in ns of pinned copies, as the device sees them."""
    stream, times = rig.device.stream("copies"), []
    for nbytes in SIZES:
        host = rig.device.buffer("host", (nbytes,), torch.uint8, "pinned", 1)
        device = rig.device.buffer("device", (nbytes,), torch.uint8, "device", 1)
        dst, src = (device, host) if upload else (host, device)
        times.append(_copy_ns(rig, stream, dst, src))
    return SIZES, tuple(times)


def _copy_ns(rig: Rig, stream: object, dst: object, src: object) -> int:
    def copy() -> object:
        return rig.device.copy(dst, src, stream, non_blocking=True, label="copy")  # type: ignore[arg-type]

    copy()
    return behind(rig, stream, copy, repeats=3)[0]  # type: ignore[arg-type]


def link_copies(link: Link) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """``copies`` on a virtual machine with that link to the device."""
    return copies(open_rig("virtual", replace(load_profile("toy-u"), h2d=link)))


@dataclass(frozen=True)
class StepMachine:
    """A virtual machine and model: a host so many times as slow as the profile's, and how many requests it serves."""

    profile: str
    host: float
    batch: int

    @property
    def costs(self) -> Profile:
        return scaled_host(load_profile(self.profile), self.host)

    def rows(self) -> tuple[BenchRow, BenchRow]:
        """``labkit bench`` of the synchronous and of the asynchronous loop, with graphs."""
        rig, model = open_rig("virtual", self.costs), bench_model("toy", "hf", "virtual")
        modes = ("sync-graphs", "async-graphs")
        sync, ahead = bench(rig, model, "toy", modes, (self.batch,), (512,), bandwidth=4000, steps=6, blocks=2)
        return sync, ahead


STEP_MACHINES = (StepMachine("article-8b", 1, 32), StepMachine("h200-8b", 1, 8), StepMachine("article-8b", 6, 8))


def small_model(host: float = 1.0) -> Profile:
    """A model so small that its step takes less than the host needs for one."""
    kernels = {"forward": Linear(50_000), "sample": Linear(6_000), "carry_over": Linear(2_000)}
    return replace(scaled_host(load_profile("h200-8b"), host), name="small", kernels=kernels, graph_kernels={})
