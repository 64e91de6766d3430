"""How long things take on the virtual GPU: constants from a profile, or a seeded adversary that bends them.

A profile is data: a JSON file in ``device/profiles`` (or one of your own) with the fields of ``Profile``, its source
among them. Costs never change what a program computes, only when; a race-free program gives the same values under any.
All times are ns, sizes bytes, bandwidths bytes per ns (= GB/s).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from labkit.device.api import Place, Work
from labkit.device.profile_values import check_values
from labkit.errors import InvalidArgument

PROFILES = Path(__file__).parent / "profiles"


Point = tuple[int, float, float]


@dataclass(frozen=True)
class Linear:
    """base + per_row * rows + per_token * max(0, tokens - free_tokens) + per_context * context, in ns.

    ``free_tokens`` models a memory-bound batch: up to that many tokens the weights' bytes hide their arithmetic.
    ``points`` are measurements ``(rows, context of each row, ns)``: where there are any, straight lines between them,
    over the context and then over the rows, take the place of ``base_ns``, ``per_row_ns`` and ``per_context_ns``.

    An eager launch enqueues a series of kernels. Its device time counts from ``head_ns`` after the first launch, since
    the first kernels are small and wait for one another's launches, and ends ``tail_ns`` after the last at the
    earliest, since the last ones are not.
    """

    base_ns: float = 0.0
    per_row_ns: float = 0.0
    per_token_ns: float = 0.0
    per_context_ns: float = 0.0
    free_tokens: int = 0
    launches: int = 1  # kernels that an eager launch of this work enqueues
    launch_ns: float = 0.0  # host time of each of them after the first, the model's own Python included; 0: profile's
    head_ns: float = 0.0
    tail_ns: float = 0.0  # 0: an average kernel
    points: tuple[Point, ...] = ()

    def __call__(self, rows: int, tokens: int, context: int) -> int:
        more = self.per_token_ns * max(0, tokens - self.free_tokens)
        if self.points:
            return max(0, round(_between(self.points, rows, context / max(1, rows)) + more))
        return max(0, round(self.base_ns + self.per_row_ns * rows + more + self.per_context_ns * context))


def _between(points: tuple[Point, ...], rows: int, context: float) -> float:
    """ns at a row count and a context of each row."""
    lines = _lines(points)
    if len(lines) == 1:
        return _on(lines[0][1], context)
    return _on([(lines[at][0], _on(lines[at][1], context)) for at in _piece(lines, rows)], rows)


@cache
def _lines(points: tuple[Point, ...]) -> tuple[tuple[int, tuple[tuple[float, float], ...]], ...]:
    """Per row count, ascending, the times over the context."""
    counts = sorted({rows for rows, _, _ in points})
    lines = ({context: ns for rows, context, ns in points if rows == count} for count in counts)
    return tuple((count, tuple(sorted(line.items()))) for count, line in zip(counts, lines, strict=True))


def _on(line: Sequence[tuple[float, float]], x: float) -> float:
    """The value at ``x`` of straight pieces, ascending."""
    if len(line) == 1:
        return line[0][1]
    (low, first), (high, second) = (line[at] for at in _piece(line, x))
    return first + (second - first) * (x - low) / (high - low)


def _piece(line: Sequence[tuple[float, Any]], x: float) -> tuple[int, int]:
    """The ends of the straight piece that ``x`` is on. Beyond the last point the line goes on as from its middle on:
    two neighbours alone would tell its direction badly."""
    last = len(line) - 1
    if x > line[last][0]:
        return last // 2, last
    at = next((i for i in range(1, last) if line[i][0] >= x), last)
    return at - 1, at


@dataclass(frozen=True)
class Link:
    """A copy direction: DMA latency and bandwidth, and the host's staging of pageable memory."""

    latency_ns: float = 0.0
    pinned: float = 55.0  # bytes per ns
    pageable: float = 12.0  # bytes per ns
    stage: float = 12.0  # bytes per ns, host copy into the driver's staging buffer


@dataclass(frozen=True)
class Profile:
    """A cost profile. ``source`` says where its numbers come from."""

    name: str
    source: str = ""
    # host side of an API call
    launch_ns: int = 0
    copy_ns: int = 0
    record_ns: int = 0
    wait_ns: int = 0
    query_ns: int = 0
    sync_return_ns: int = 0
    sync_blocking_return_ns: int = 0  # the same for an event made with blocking=True: the thread sleeps and is woken
    malloc_ns: int = 0  # cudaMalloc, on a miss of the caching allocator
    free_ns: int = 0  # cudaFree, after the wait for the device
    pinned_malloc_ns: int = 0  # cudaHostAlloc, on a miss of the caching host allocator
    graph_launch_ns: int = 0
    graph_launch_per_node_ns: float = 0.0
    # device side
    latency_ns: int = 0  # from the end of the launch call to the earliest start
    node_gap_ns: int = 0  # between dependent graph nodes
    kernel_gap_ns: int = 0  # between eager kernels of one launch series; part of the series' duration, not busy
    stage_only_bytes: int = 131072  # a pageable upload up to this size does not wait for its stream (semantics, 29)
    h2d: Link = field(default_factory=Link)
    d2h: Link = field(default_factory=Link)
    # what the host and the kernels of one step cost, by phase or kernel name
    phases: Mapping[str, Linear] = field(default_factory=dict)
    kernels: Mapping[str, Linear] = field(default_factory=dict)
    graph_kernels: Mapping[str, Linear] = field(default_factory=dict)  # as nodes of a graph, where that is not the same

    def to_json(self) -> str:
        """The profile as the JSON text that ``load_profile`` reads."""
        return json.dumps(asdict(self), indent=2) + "\n"


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that ship with the lab."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.json")))


def load_profile(name: str | Path | Profile) -> Profile:
    """A shipped profile by name, or one of your own by path to its JSON file.

    Raises:
        InvalidArgument: no such profile, a field it does not know, or a value that the field does not take.
    """
    if isinstance(name, Profile):
        return name
    if not isinstance(name, str | Path):
        raise InvalidArgument("profile", name, "a Profile, its name, or a path to a .json file")
    path = PROFILES / f"{name}.json" if str(name) in profile_names() else Path(name)
    if path.suffix != ".json" or not path.is_file():
        raise InvalidArgument("profile", str(name), f"a path to a .json file, or one of {', '.join(profile_names())}")
    try:
        return _parse(json.loads(path.read_text()), str(path))
    except ValueError as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("profile", str(path), f"is not JSON: {error}") from error


def _parse(data: Any, where: str) -> Profile:
    if not isinstance(data, dict):
        raise InvalidArgument("profile", where, "a file with one JSON object")
    data = dict(data)
    for name in ("h2d", "d2h"):
        data[name] = _build(Link, data.get(name, {}), f"{where}: {name}")
    for name in ("phases", "kernels", "graph_kernels"):
        entries = data.get(name, {})
        if not isinstance(entries, dict):
            raise InvalidArgument(f"{where}: {name}", entries, "an object with costs by name")
        data[name] = {key: _linear(value, f"{where}: {name}.{key}") for key, value in entries.items()}
    profile: Profile = _build(Profile, data, where)
    return profile


def _linear(values: Any, where: str) -> Linear:
    linear: Linear = _build(Linear, values, where)
    return replace(linear, points=tuple((int(rows), float(each), float(ns)) for rows, each, ns in linear.points))


def _build(cls: type, values: Any, where: str) -> Any:
    known = {f.name for f in fields(cls)}
    if not isinstance(values, dict) or not set(values) <= known:
        unknown = sorted(set(values) - known) if isinstance(values, dict) else values
        raise InvalidArgument(where, unknown, f"an object with fields among {', '.join(sorted(known))}")
    check_values(cls, values, where)
    return cls(**values)


class Costs:
    """Prices from a profile. Every method returns integer ns."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def kernel(self, work: Work, *, in_graph: bool = False) -> tuple[int, int]:
        """(busy ns on the device, kernels an eager launch enqueues)."""
        if work.kind == "fixed":
            return work.fixed_ns, 1
        cost = self.profile.kernels.get(work.kind, _FREE)
        if in_graph:
            cost = self.profile.graph_kernels.get(work.kind, cost)
        return cost(work.rows, work.tokens, work.context), cost.launches

    def launch_ns(self, work: Work) -> float:
        """Host time of each launch of a series after the first."""
        return self.profile.kernels.get(work.kind, _FREE).launch_ns or self.profile.launch_ns

    def head_ns(self, work: Work) -> int:
        """How long after its first launch a series begins in earnest."""
        return round(self.profile.kernels.get(work.kind, _FREE).head_ns)

    def tail_ns(self, work: Work, busy: int, launches: int) -> int:
        """How long before its end the last launch of a series must have arrived."""
        tail = self.profile.kernels.get(work.kind, _FREE).tail_ns
        return min(busy, round(tail)) if tail else busy // launches

    def phase(self, name: str, rows: int, tokens: int) -> int:
        """Host time of a phase's own Python work, without the API calls in it."""
        return self.profile.phases.get(name, _FREE)(rows, tokens, 0)

    def copy(self, nbytes: int, upload: bool, host_place: Place) -> int:
        """Device time of a copy."""
        link = self.profile.h2d if upload else self.profile.d2h
        bandwidth = link.pinned if upload or host_place == "pinned" else link.pageable
        return round(link.latency_ns + nbytes / bandwidth)

    def stage(self, nbytes: int) -> int:
        """Host time to stage a pageable upload."""
        return round(nbytes / self.profile.h2d.stage)


_FREE = Linear()


class Adversary(Costs):
    """The same profile, each duration scaled by a factor in [low, high] drawn from a seed and a call counter.

    The draw is a hash, not a random stream: the n-th call gets the same factor on every run and machine.
    """

    def __init__(self, profile: Profile, seed: int, low: float = 0.0, high: float = 8.0) -> None:
        super().__init__(profile)
        self.seed, self.low, self.high, self._calls = seed, low, high, 0

    def kernel(self, work: Work, *, in_graph: bool = False) -> tuple[int, int]:
        busy, launches = super().kernel(work, in_graph=in_graph)
        return self._bend(busy), launches

    def phase(self, name: str, rows: int, tokens: int) -> int:
        return self._bend(super().phase(name, rows, tokens))

    def copy(self, nbytes: int, upload: bool, host_place: Place) -> int:
        return self._bend(super().copy(nbytes, upload, host_place))

    def _bend(self, ns: int) -> int:
        self._calls += 1
        x = (self.seed * 0x9E3779B97F4A7C15 + self._calls * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        x = ((x ^ (x >> 30)) * 0x94D049BB133111EB) & (2**64 - 1)
        return round(ns * (self.low + (self.high - self.low) * ((x ^ (x >> 31)) / 2**64)))


def scaled_host(profile: Profile, factor: float) -> Profile:
    """The same GPU with a host ``factor`` times slower: phases and API calls scaled."""
    phases = {
        name: replace(
            p, base_ns=p.base_ns * factor, per_row_ns=p.per_row_ns * factor, per_token_ns=p.per_token_ns * factor
        )
        for name, p in profile.phases.items()
    }
    kernels = {
        name: replace(k, launch_ns=k.launch_ns * factor, head_ns=k.head_ns * factor)
        for name, k in profile.kernels.items()
    }
    calls = ("launch_ns", "copy_ns", "record_ns", "wait_ns", "query_ns", "sync_return_ns", "graph_launch_ns")
    slowed = {name: round(getattr(profile, name) * factor) for name in calls}
    return replace(profile, phases=phases, kernels=kernels, **slowed)


def scaled_gpu(profile: Profile, factor: float, kernel: str = "forward") -> Profile:
    """The same host with a forward pass that takes ``factor`` times as long: another model, or another GPU."""
    tables: dict[str, Any] = {}
    for table in ("kernels", "graph_kernels"):
        costs = getattr(profile, table)
        tables[table] = {name: _times(cost, factor) if name == kernel else cost for name, cost in costs.items()}
    return replace(profile, name=f"{profile.name}, GPU x {factor:g}", **tables)


def _times(cost: Linear, factor: float) -> Linear:
    """Every device time of a kernel, scaled; its launches stay as they are."""
    names = ("base_ns", "per_row_ns", "per_token_ns", "per_context_ns", "head_ns", "tail_ns")
    points = tuple((rows, context, ns * factor) for rows, context, ns in cost.points)
    return replace(cost, points=points, **{name: getattr(cost, name) * factor for name in names})
