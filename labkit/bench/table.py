"""The benchmark table: steady states of a model, form by form and mode by mode, beside the floor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from labkit.bench.decode import Decode, Prefilled
from labkit.bench.models import floor_ns
from labkit.bench.predict import Case, Measured, measure
from labkit.bench.probe import ProbeDevice
from labkit.device.calibrate.rig import Rig
from labkit.errors import InvalidArgument
from labkit.model.api import Model
from labkit.switches import Switches, ladder
from labkit.trace.events import PHASES

MODES: dict[str, Switches] = {
    "sync": ladder("events"),
    "async": ladder("carry_over"),
    "sync-graphs": ladder("events").with_(cuda_graphs=True),
    "async-graphs": ladder("cuda_graphs"),
}


@dataclass(frozen=True)
class BenchRow:
    """One steady state.

    ns            median step; ``p95_ns`` its 95th percentile
    busy_ns       what the step's kernels take back to back; 0 for a peer, of which it is not known
    host_ns       host time per phase without waiting, calls included
    floor_ns      what reading the step's bytes takes at the device's bandwidth; 0 without weights
    """

    model: str
    form: str
    mode: str
    batch: int
    context: int
    ns: float
    p95_ns: float = 0.0
    busy_ns: float = 0.0
    host_ns: dict[str, float] = field(default_factory=dict)
    floor_ns: float = 0.0

    @property
    def tokens_per_s(self) -> float:
        return self.batch / self.ns * 1e9

    @property
    def gpu_active(self) -> float:
        """Share of the step in which the GPU works."""
        return min(1.0, self.busy_ns / self.ns)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, times in ms."""
        numbers = {
            "ms": self.ns / 1e6,
            "p95_ms": self.p95_ns / 1e6,
            "busy_ms": self.busy_ns / 1e6,
            "floor_ms": self.floor_ns / 1e6,
            "tokens_per_s": self.tokens_per_s,
            "gpu_active": self.gpu_active,
            "host_ms": {name: ns / 1e6 for name, ns in self.host_ns.items()},
        }
        places = {name: getattr(self, name) for name in ("model", "form", "mode", "batch", "context")}
        return places | numbers


HEADER = (
    f"{'form':<10}{'mode':<14}{'batch':>5}{'context':>8}{'tokens/s':>10}{'ms/step':>9}{'p95':>8}{'active':>8}"
    f"{'floor':>8}{'ratio':>7}{'host':>7}  " + " ".join(f"{name[:6]:>6}" for name in PHASES)
)
LEGEND = (
    "ms/step: median of the quietest stretch; active: kernels back to back over ms/step; floor: ms to read weights, K\n"
    "and V once at the bandwidth above; host: ms of all six phases without waiting, then each of them"
)


def line_of(row: BenchRow) -> str:
    """A line of the table."""
    floor = f"{row.floor_ns / 1e6:>8.2f}{row.ns / row.floor_ns:>7.2f}" if row.floor_ns else f"{'-':>8}{'-':>7}"
    active = f"{row.gpu_active:>8.1%}" if row.busy_ns else f"{'-':>8}"
    host = "".join(f"{row.host_ns.get(name, 0) / 1e6:>7.3f}" for name in PHASES) if row.host_ns else ""
    total = f"{sum(row.host_ns.values()) / 1e6:>7.2f} " if row.host_ns else f"{'-':>7} "
    p95 = f"{row.p95_ns / 1e6:>8.2f}" if row.p95_ns else f"{'-':>8}"
    return (
        f"{row.form:<10}{row.mode:<14}{row.batch:>5}{row.context:>8}{row.tokens_per_s:>10.0f}{row.ns / 1e6:>9.2f}{p95}"
        f"{active}{floor}{total}{host}"
    )


def bench(
    rig: Rig,
    model: Model,
    form: str,
    modes: Iterable[str],
    batches: Iterable[int],
    contexts: Iterable[int],
    *,
    bandwidth: float,
    steps: int = 15,
    blocks: int = 3,
) -> Iterator[BenchRow]:
    """Measure one form of a model: an engine for each mode and batch, all contexts on it.

    Raises:
        InvalidArgument: an unknown mode.
    """
    contexts = tuple(contexts)
    longest, size = max(contexts) + 3 * steps * blocks, model.preferred_block_size
    prefilled, busy = Prefilled(model, size), {}  # type: Prefilled, dict[tuple[int, int, bool], float]
    for mode in modes:
        switches = _mode(mode)
        for batch in batches:
            probe = ProbeDevice(rig)
            with Decode(prefilled, switches, probe, batch=batch, longest=longest, block_size=size) as decode:
                for context in contexts:
                    key = (batch, context, switches.cuda_graphs)
                    case = Case(batch, context, switches)
                    found = measure(decode, probe, case, steps, blocks, busy_ns=busy.get(key, 0.0))
                    busy[key] = found.busy_ns  # the loops differ in the carry-over alone
                    yield _row(model, form, mode, case, found, floor_ns(model, batch, context, bandwidth))
            rig.release()


def _mode(name: str) -> Switches:
    if name not in MODES:
        raise InvalidArgument("mode", name, f"one of {', '.join(MODES)}")
    return MODES[name]


def _row(model: Model, form: str, mode: str, case: Case, found: Measured, floor: float) -> BenchRow:
    return BenchRow(
        model=model.name,
        form=form,
        mode=mode,
        batch=case.batch,
        context=case.context,
        ns=found.ns,
        p95_ns=found.steady.p95,
        busy_ns=found.busy_ns,
        host_ns=found.host_ns,
        floor_ns=floor,
    )
