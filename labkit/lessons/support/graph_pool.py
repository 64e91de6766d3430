"""Two graphs in one memory pool, in which the output of one lies where the other has its temporary (semantics, 58)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.analysis.races import check
from labkit.lessons.result import Result, right, wrong
from labkit.virtual_gpu import VirtualGPU

Answer = Callable[..., Any]
ELEMENTS = 256


class TwoGraphs:
    """``first``: t = 2, out1 = t + 1, and t is freed. ``second``, captured into the same pool: out2 = 9, where t was.

    ``replay_first`` and ``replay_second`` run them, ``read(out)`` waits and returns the value of an output.
    """

    def __init__(self) -> None:
        self.gpu = VirtualGPU()
        gpu, self._first, self._second = self.gpu, self.gpu.CUDAGraph(), self.gpu.CUDAGraph()
        with gpu.graph(self._first):
            t = gpu.empty(ELEMENTS, device="cuda", name="t")
            t.fill_(2)
            self.out1 = t + 1
            self.address_of_t = t.data_ptr()
            del t
        with gpu.graph(self._second, pool=self._first.pool()):
            self.out2 = gpu.empty(ELEMENTS, device="cuda", name="out2")
            self.out2.fill_(9)
        gpu.trace()
        self.calls: list[str] = []

    def replay_first(self) -> None:
        self.calls.append("first")
        self._first.replay()

    def replay_second(self) -> None:
        self.calls.append("second")
        self._second.replay()

    def read(self, out: Any) -> float:
        """The value of ``out1`` or ``out2`` as it is now; the host waits."""
        return float(out[0].item())


def judge_both_outputs(answer: Answer, device: str) -> Result:
    """3 and 9, with the second graph replayed first. On the virtual GPU, whatever the device."""
    graphs = TwoGraphs()
    results = answer(graphs)
    report = check(graphs.gpu.trace())
    if not isinstance(results, (list, tuple)) or len(results) != 2:
        return wrong("The answer has to return the two outputs.", yours=results, expected="(3.0, 9.0)")
    if sorted(graphs.calls) != ["first", "second"] or graphs.calls[0] != "second":
        return wrong(
            "Replay each graph once, the second one first: this program needs its result before the other's.",
            yours=", ".join(graphs.calls) or "no replay",
            expected="second, first",
        )
    values = tuple(float(value) for value in results)
    if values != (3.0, 9.0):
        notice = report.notices[0].text if report.notices else "an output was read before its graph had run"
        return wrong(f"An output is not what its graph wrote: {notice}.", yours=values, expected=(3.0, 9.0))
    return right("The output was used before the other graph of the pool ran over its memory.")
