"""An engine of the ladder's last rung, put together from parts (``parts.py``): the real core, scheduler, filler and
launcher, with each choice that a part stands for handed to it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

from labkit.device import open_device
from labkit.device.api import Buffer, Device, Event, Graph, Place, Stream
from labkit.device.costs import Profile
from labkit.device.traced import TracedDevice
from labkit.engine.assemble import _kv_cache
from labkit.engine.batch import Batch
from labkit.engine.carry_over import CarryOver
from labkit.engine.core import EngineCore
from labkit.engine.fill import Filler
from labkit.engine.launch import GraphKey, GraphLauncher, StepKernels
from labkit.engine.loop import run_async
from labkit.engine.ordering import NoEvents, Streams
from labkit.engine.request import Request
from labkit.engine.scheduler import Scheduler
from labkit.engine.slots import InputLayout, Slot, SlotSet
from labkit.entry import Engine
from labkit.lessons.support.filled import FillLog
from labkit.lessons.support.parts import PartFailed, Parts, signature
from labkit.model.api import Model
from labkit.sizes import Sizes
from labkit.steplog import StepLog
from labkit.switches import ladder

SLOT_NAMES = ("A", "B")


class MysteryEngine(Engine):
    """``Engine``, made of parts instead of switches.

    Raises:
        PartFailed: a part raised, or answered with something that the engine cannot use.
    """

    core: MysteryCore

    def __init__(self, model: Model, parts: Parts, *, device: str, profile: Profile, sizes: Sizes) -> None:
        self.switches, self.sizes = ladder("cuda_graphs"), sizes
        self.device: Any = TracedDevice(open_device(device, profile))
        self.model, self._traced, self._log, self.filled = model, True, StepLog(), FillLog(sizes)
        self.core = MysteryCore(parts, model, self.device, sizes, (self._log, self.filled))
        self.device.take()  # what the warm-up did is not part of any run


class MysteryCore(EngineCore):
    """The real six phases; the parts decide."""

    def __init__(self, parts: Parts, model: Model, device: Device, sizes: Sizes, observers: tuple[Any, ...]) -> None:
        self.parts = parts
        streams = Streams(device.stream("h2d"), device.stream("compute"), device.stream("d2h"))
        kv = _kv_cache(device, model, sizes)
        launcher = _Launcher(parts, device, streams.compute, StepKernels(model, kv, CarryOver()), sizes)
        self.misfits = launcher.misfits  # step, graph that was replayed, graph that it needed
        super().__init__(
            model=model,
            device=device,
            sizes=sizes,
            loop=run_async,
            streams=streams,
            order=_Order(parts, streams),
            slots=_Slots(parts, device, sizes),
            launcher=launcher,
            kv=kv,
            non_blocking=True,
            observers=observers,
        )
        self.scheduler = _Scheduler(parts, sizes)
        self._filler = _Filler(parts, sizes, self.scheduler)

    def fill(self, slot: Slot, batch: Batch) -> None:
        with self._phase("fill", slot, batch):
            self.parts.ask("before_fill", self.streams, slot)
            with self.device.host_write(slot.inputs_host):
                self._filler.fill(slot.host, batch)
        for tell in self._hooks.filled:
            tell(slot, batch)


class _Order(NoEvents):
    """What orders the three streams, part by part."""

    def __init__(self, parts: Parts, streams: Streams) -> None:
        self.parts, self.streams = parts, streams

    def uploaded(self, slot: Slot) -> None:
        self.parts.ask("uploaded", self.streams, slot)

    def before_compute(self, slot: Slot) -> None:
        self.parts.ask("before_compute", self.streams, slot)

    def computed(self, slot: Slot) -> None:
        self.parts.ask("computed", self.streams, slot)

    def before_download(self, slot: Slot) -> None:
        self.parts.ask("before_download", self.streams, slot)

    def downloaded(self, slot: Slot) -> None:
        self.parts.ask("downloaded", self.streams, slot)

    def before_read(self, slot: Slot) -> None:
        self.parts.ask("before_read", self.streams, slot)


class _Slots(SlotSet):
    """Two slots; whose buffers and events each uses, and where the host's lie, is up to the parts."""

    def __init__(self, parts: Parts, device: Device, sizes: Sizes) -> None:
        self._parts, self._device, self._layout = parts, device, InputLayout(sizes)
        self._outputs = (2, sizes.max_rows)
        self._buffers: dict[str, Buffer] = {}
        self._events: dict[str, Event] = {}
        self.slots = tuple(self._slot(index, name) for index, name in enumerate(SLOT_NAMES))
        for slot in self.slots:
            source = parts.choose("carry_slot", SLOT_NAMES, "'A' or 'B'", slot.name)
            slot.previous = self.slots[SLOT_NAMES.index(source)]
        self._turn = 0

    def _slot(self, index: int, name: str) -> Slot:
        return Slot(
            name,
            self._buffer("inputs_host", name),
            self._buffer("inputs_dev", name),
            self._buffer("outputs_host", name),
            self._buffer("outputs_dev", name),
            self._event("h2d_done", name),
            self._event("compute_done", name),
            self._event("d2h_done", name),
            self._layout,
            index,
        )

    def _buffer(self, what: str, slot: str) -> Buffer:
        owner = self._parts.choose("buffer_owner", SLOT_NAMES, "'A' or 'B'", what, slot)
        name = f"{what}[{owner}]"
        if name not in self._buffers:
            shape = (self._layout.numel,) if what.startswith("inputs") else self._outputs
            place: Place = "device"
            if what.endswith("host"):
                place = self._parts.choose("host_place", ("pinned", "pageable"), "'pinned' or 'pageable'", what)
            self._buffers[name] = self._device.buffer(name, shape, torch.int32, place, fill=0)
        return self._buffers[name]

    def _event(self, what: str, slot: str) -> Event:
        owner = self._parts.choose("event_owner", SLOT_NAMES, "'A' or 'B'", what, slot)
        name = f"{what}[{owner}]"
        return self._events.setdefault(name, self._device.event(name))

    def free(self, device: Device) -> None:
        for buffer in self._buffers.values():
            device.free(buffer)


class _Launcher(GraphLauncher):
    """One graph for whatever the parts take for a key."""

    def __init__(self, parts: Parts, device: Device, stream: Stream, kernels: StepKernels, sizes: Sizes) -> None:
        super().__init__(device, stream, kernels, sizes)
        self.parts = parts
        self.by_key: dict[object, Graph] = {}
        self.misfits: list[tuple[int, str, str]] = []

    def run(self, slot: Slot, batch: Batch) -> None:
        if not batch.shape.decode_only:
            self.eager.run(slot, batch)
            return
        wanted = self._key(slot, batch)
        graph = self.by_key.get(self._part_key(slot, wanted))
        if graph is None:
            self.eager.run(slot, batch)
            self._store(slot, wanted)
            return
        if graph.name != (needed := self._name(slot, wanted)):
            self.misfits.append((batch.step, graph.name, needed))
        graph.replay(self.stream, batch.work("forward"))

    def warm_up(self, slots: SlotSet) -> None:
        """Greedy and random graphs, with and without log-probabilities, of every size, largest first."""
        for rows in reversed(self.sizes.padded_rows):
            for context in self._bounds():
                for random, logprobs in ((False, False), (True, False), (False, True), (True, True)):
                    for slot in slots.slots:
                        key = GraphKey(slot.index, rows, context, random, logprobs)
                        if self._part_key(slot, key) not in self.by_key:
                            self._run_once(slot, key)
                            self._store(slot, key)

    def _run_once(self, slot: Slot, key: GraphKey) -> None:
        """Where a capture needs that. The inputs are zeros: in range, and nothing is cached yet."""
        if self.device.warm_up_before_capture:
            self._launch(self.stream, slot, key)
            self.device.synchronize()

    def clear(self) -> None:
        super().clear()
        self.by_key.clear()

    def _part_key(self, slot: Slot, key: GraphKey) -> object:
        answer = self.parts.ask("graph_key", slot.name, key.rows, key.random, key.logprobs)
        try:
            hash(answer)
        except TypeError:
            says = "something that a dict can look up, such as a tuple"
            raise PartFailed(f"{signature('graph_key')} returned {answer!r}, and the engine needs {says}") from None
        return answer

    def _store(self, slot: Slot, key: GraphKey) -> None:
        self._capture(slot, key)
        self.by_key[self._part_key(slot, key)] = self.graphs[key]


class _Scheduler(Scheduler):
    """The real one; from which row a token is carried over is up to the parts."""

    def __init__(self, parts: Parts, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.parts = parts

    def _batch(self, decodes: list[Request], chunks: list[tuple[Request, int]]) -> Batch:
        requests = decodes + [request for request, _ in chunks]
        carries = [self._row(request, row) if request.pending else -1 for row, request in enumerate(requests)]
        batch = super()._batch(decodes, chunks)  # gives every request its row in this step
        batch.carries = carries
        return batch

    def _row(self, request: Request, row: int) -> int:
        rows = range(-1, self.sizes.max_rows)
        says = f"a row from 0 to {self.sizes.max_rows - 1}, or -1 for none"
        chosen: int = self.parts.choose("carry_row", rows, says, request, row)
        return chosen


class _Filler(Filler):
    """The real one; where padding rows write to is up to the parts."""

    def __init__(self, parts: Parts, sizes: Sizes, scheduler: Scheduler) -> None:
        super().__init__(sizes, scheduler)
        self.parts = parts

    def _pad(self, host: SimpleNamespace, rows: int, padded: int) -> None:
        stale = host.slot_mapping[rows:padded].tolist()
        super()._pad(host, rows, padded)
        host.slot_mapping[rows:padded] = list(self._places(stale, rows))

    def _places(self, stale: list[int], rows: int) -> Iterator[int]:
        places = range((self.sizes.num_blocks + 1) * self.sizes.block_size)
        says = f"a place from 0 to {places[-1]}, or None"
        for row, left in enumerate(stale, rows):
            place = self.parts.choose("padding_place", (None, *places), says, self.sizes, row)
            yield left if place is None else place
