"""The small API that the contract tests are written in: the same program on the virtual GPU and on a real one.

Both have torch.cuda's names (``Stream``, ``Event``, ``stream``, ``graph``). What differs is here: kernels of a given
duration, buffers whose copy takes a given time, the clock, and how exactly a time can be compared. Times are in units:
a virtual microsecond, or ``UNIT_US`` microseconds of a real GPU, so that a real host's calls (5 to 10 us) are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from labkit import VirtualGPU
from labkit.analysis.races import RaceReport, check
from labkit.device.costs import Costs, Link, Profile, load_profile
from labkit.device.virtual.hardware import Hardware
from labkit.virtual_gpu.tensor import Tensor

UNIT_BYTES = 1000  # of a virtual copy that takes one unit


def contract_profile(**changes: Any) -> Profile:
    """Profile Z with 1 byte per ns both ways, and a staging eight times as fast: H2Dp 5 + 40."""
    link = Link(pinned=1.0, pageable=1.0, stage=8.0)
    return replace(load_profile("zero"), h2d=link, d2h=link, **changes)


class Virtual:
    """A program on the virtual GPU. Names that are not here are ``VirtualGPU``'s, so torch.cuda's."""

    real = False
    unit_ms = 0.001

    def __init__(
        self,
        profile: str | Profile | Costs | None = None,
        *,
        launch_blocking: bool = False,
        **hardware: Any,
    ) -> None:
        self.gpu = VirtualGPU(
            profile or contract_profile(), launch_blocking=launch_blocking, hardware=Hardware(**hardware)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.gpu, name)

    def with_(self, profile: str | Profile | Costs | None = None, **options: Any) -> Virtual:
        """A fresh machine with these settings. A real one has its own: the test is skipped there."""
        return Virtual(profile, **options)

    def costing(self, **costs: int) -> Virtual:
        """A fresh machine whose API calls cost something. A real one has its own costs and stays."""
        return Virtual(contract_profile(**costs))

    def not_on_a_real_gpu(self, why: str) -> None:
        """Skip the test on a real GPU, and say why."""

    def settle_on_hardware(self, question: str, holds: bool, seen: object) -> None:
        """An open question or a choice of the model: the virtual GPU must do as the rule says. Where a real one does
        otherwise, the test is skipped with what was seen, for ``docs/semantics.md``."""
        assert holds, f"{question}: {seen}"

    def isolated(self, program: Callable[..., Any], **options: Any) -> Any:
        """What ``program(device)`` returns, on a machine of its own. On a real GPU that is a process of its own, since
        a capture that went wrong can leave torch's state broken."""
        return program(Virtual(**options))

    # -- streams -----------------------------------------------------------------------------------------------------

    def foreign_stream(self, *, blocking: bool) -> Any:
        """A stream made by plain CUDA calls, in torch's wrapper."""
        cudart = self.gpu.cudart()
        flags = 0 if blocking else cudart.cudaStreamNonBlocking
        return self.gpu.ExternalStream(cudart.cudaStreamCreateWithFlags(flags))

    # -- memory ------------------------------------------------------------------------------------------------------

    def tensor_of(self, units: float, place: str, value: float | None = None) -> Any:
        """A tensor of float32 whose copy takes so many units; full of ``value``, complete and visible."""
        n = max(1, round(units * UNIT_BYTES) // 4)
        where = "cuda" if place == "device" else "cpu"
        tensor = self.gpu.empty(n, device=where, pin_memory=place == "pinned")
        if value is not None:
            tensor.data.fill_(value)
        return tensor

    def peek(self, tensor: Tensor) -> float:
        """The first element as it is now, read by nobody."""
        return float(tensor.data.flatten()[0])

    def host_read(self, tensor: Tensor) -> float:
        """The first element of a host tensor, read by the host."""
        return float(tensor.fetch("read").flatten()[0])

    def host_fill(self, tensor: Tensor, value: float) -> None:
        """The host writes a host tensor."""
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
        """A kernel that takes so many units, and does ``fn(*reads, *writes)`` at its end."""
        item = self.gpu.kernel(name, units, reads=reads, writes=writes, fn=fn, fraction=fraction, stream=stream)
        return Work(lambda: self._times(item))

    def fill(self, tensor: Any, value: float, units: float, stream: Any = None, **options: Any) -> Work:
        """A kernel that writes ``value`` everywhere."""
        return self.kernel(units, stream, writes=[tensor], fn=lambda x: x.fill_(value), **options)

    def read(self, tensor: Any, units: float, stream: Any = None, **options: Any) -> tuple[Any, Work]:
        """A kernel that reads a tensor; what it read is in the tensor returned."""
        out = self.tensor_of(tensor.nbytes / UNIT_BYTES, "device")
        return out, self.kernel(units, stream, reads=[tensor], writes=[out], fn=lambda x, y: y.copy_(x), **options)

    def copy(self, dst: Any, src: Any, stream: Any = None, *, non_blocking: bool = True) -> Work:
        """``dst.copy_(src)`` in a stream."""
        with self.gpu.stream(stream):
            item = self.gpu.copies.copy(dst, src, non_blocking)
        return Work(lambda: self._times(item))

    def replay(self, graph: Any, stream: Any = None) -> Work:
        """Replay a graph in a stream."""
        with self.gpu.stream(stream):
            item = graph.replay()
        return Work(lambda: self._times(item))

    def _times(self, item: Any) -> tuple[float, float]:
        start, end, _ = self.gpu.machine.op_times(item)
        assert end >= 0, "the work is not done yet"
        return start / 1000, end / 1000

    # -- time --------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The host's clock, units."""
        return self.gpu.now_us

    def host_until(self, units: float) -> None:
        """The host works until then."""
        self.gpu.host(units - self.now)

    def about(self, units: float, tolerance: float = 0) -> Any:
        """What an expected time is compared with: exactly this."""
        return units

    # -- verdicts ----------------------------------------------------------------------------------------------------

    def report(self) -> RaceReport:
        """The race checker's report on everything so far; waits for the device."""
        return check(self.gpu.trace())

    def expect_races(self, number: int) -> None:
        """So many races. A real GPU's program declares nothing, so it is not asked there."""
        report = self.report()
        assert len(report.races) == number, str(report)


class Work:
    """Something enqueued; ``start`` and ``end`` in units, once it is done."""

    def __init__(self, times: Callable[[], tuple[float, float]]) -> None:
        self._times = times

    @property
    def start(self) -> float:
        return self._times()[0]

    @property
    def end(self) -> float:
        return self._times()[1]


def code_of(error: BaseException) -> int | None:
    """CUDA's error number of an exception of either device."""
    for attribute in ("code", "error_code"):
        code = getattr(error, attribute, None)
        if isinstance(code, int):
            return code
    return next((code for code, text in _MESSAGES.items() if text in str(error)), None)


_MESSAGES = {
    900: "operation not permitted when stream is capturing",
    901: "operation failed due to a previous error during capture",
    902: "would result in a merge of separate capture sequences",
    903: "the capture was not ended in the same stream",
    904: "capturing stream has unjoined work",
    905: "dependency created on uncaptured work in another stream",
    906: "would make the legacy stream depend on a capturing blocking stream",
    907: "operation not permitted on an event last recorded in a capturing stream",
    908: "attempt to terminate a thread-local capture sequence from another thread",
    1: "invalid argument",
}


def raises(kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], Any]) -> BaseException:
    """The exception that a call raises."""
    with pytest.raises(kind) as caught:
        call()
    return caught.value
