"""How a step's kernels reach the compute stream: one launch after the other, or one graph.

A graph freezes addresses and host scalars. So there is one graph per slot (addresses) and per key: padded row count,
context bound, and whether rows are random or want log-probabilities (host scalars). All share one memory pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from labkit.device.api import Accesses, Buffer, Device, Graph, Stream, Work
from labkit.engine.batch import Batch
from labkit.engine.carry_over import CarryOver, HostFeed
from labkit.engine.sampling import logprobs_of, sample
from labkit.engine.slots import Slot, SlotSet
from labkit.model.api import BatchShape, Model
from labkit.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch of a step. ``name`` is also its entry in a cost profile."""

    name: str
    fn: Callable[[], None]
    reads: Accesses
    writes: Accesses


@dataclass(frozen=True)
class StepKernels:
    """Builds the launches of a step: carry-over, forward pass, sampling."""

    model: Model
    kv: tuple[Buffer, ...]
    carry: CarryOver | HostFeed

    def build(self, slot: Slot, shape: BatchShape, random: bool, logprobs: bool) -> Iterator[Kernel]:
        """The launches for a slot and a (padded) shape, in order."""
        inputs, scratch = slot.inputs_dev, {}
        carry = self.carry.kernel(slot, shape.decode_rows)
        if carry is not None:
            yield Kernel("carry_over", carry, (inputs, slot.previous.outputs_dev), (inputs,))
        model_inputs, tensors = slot.model_inputs(shape), [buffer.tensor for buffer in self.kv]

        def forward() -> None:
            scratch["logits"] = self.model.forward(model_inputs, tensors)  # [R, V]

        yield Kernel("forward", forward, (inputs, *self.kv), self.kv)
        sampling, output = slot.sampling_inputs(shape.rows) if random else None, slot.outputs_dev.tensor

        def sampler() -> None:
            logits = scratch.pop("logits")
            tokens = sample(logits, sampling)
            output[0, : shape.rows].copy_(tokens)
            if logprobs:
                output[1, : shape.rows].view(torch.float32).copy_(logprobs_of(logits, tokens))

        yield Kernel("sample", sampler, (inputs,), (slot.outputs_dev,))


@dataclass(frozen=True)
class EagerLauncher:
    """The mechanism off: every kernel is launched by the host, every step."""

    device: Device
    stream: Stream
    kernels: StepKernels

    def run(self, slot: Slot, batch: Batch) -> None:
        """Enqueue a step."""
        for kernel in self.kernels.build(slot, batch.shape, batch.random, batch.logprobs):
            self.device.launch(
                kernel.fn,
                self.stream,
                reads=kernel.reads,
                writes=kernel.writes,
                work=batch.work(kernel.name),
                label=kernel.name,
            )

    def warm_up(self, slots: SlotSet) -> None:
        """Nothing to capture."""

    def clear(self) -> None:
        """Nothing captured."""


@dataclass(frozen=True, slots=True)
class GraphKey:
    """Everything that a capture bakes in."""

    slot: int
    rows: int  # padded
    context: int  # bound
    random: bool
    logprobs: bool


class GraphLauncher:
    """The mechanism on: a decode-only step is one replay. Steps with prefill chunks are launched eagerly."""

    def __init__(self, device: Device, stream: Stream, kernels: StepKernels, sizes: Sizes) -> None:
        self.device, self.stream, self.kernels, self.sizes = device, stream, kernels, sizes
        self.eager = EagerLauncher(device, stream, kernels)
        self.graphs: dict[GraphKey, Graph] = {}
        self._pool = device.graph_pool()
        self._side = device.stream("capture")  # a capture cannot begin on the default stream

    def run(self, slot: Slot, batch: Batch) -> None:
        """Enqueue a step."""
        if not batch.shape.decode_only:
            self.eager.run(slot, batch)
            return
        key = self._key(slot, batch)
        graph = self.graphs.get(key)
        if graph is not None:
            graph.replay(self.stream, batch.work("forward"))
            return
        self.eager.run(slot, batch)  # a key seen for the first time: this step is the warm-up that a capture needs
        self._capture(slot, key)

    def warm_up(self, slots: SlotSet) -> None:
        """Capture the greedy graphs of every size and context bound, largest first, so that no step has to."""
        for rows in reversed(self.sizes.padded_rows):
            for context in reversed(self._bounds()):
                self._warm_up(slots, rows, context)
                for slot in slots.slots:
                    self._capture(slot, GraphKey(slot.index, rows, context, random=False, logprobs=False))

    def _warm_up(self, slots: SlotSet, rows: int, context: int) -> None:
        """Run a size once where a capture needs that; the inputs are zeros: in range, and nothing is cached yet."""
        if self.device.warm_up_before_capture:
            self._launch(self.stream, slots.slots[0], GraphKey(0, rows, context, random=False, logprobs=False))
            self.device.synchronize()

    def clear(self) -> None:
        """Drop every graph."""
        self.graphs.clear()

    def _bounds(self) -> list[int]:
        """All context bounds the model distinguishes, ascending."""
        limit, bounds = self.sizes.max_model_len, [0]
        while bounds[-1] < limit:
            bounds.append(self.kernels.model.context_bucket(bounds[-1] + 1, limit))
        return bounds[1:]

    def _key(self, slot: Slot, batch: Batch) -> GraphKey:
        rows = self.sizes.pad(batch.rows)
        context = self.kernels.model.context_bucket(batch.shape.context, self.sizes.max_model_len)
        return GraphKey(slot.index, rows, context, batch.random, batch.logprobs)

    def _capture(self, slot: Slot, key: GraphKey) -> None:
        with self.device.capture(self._name(slot, key), self._side, self._pool) as graph:
            self._launch(self._side, slot, key)
        self.graphs[key] = graph

    def _name(self, slot: Slot, key: GraphKey) -> str:
        """A name of its own for every graph: slot and padded rows, then what sets it apart from the plain one."""
        parts = [slot.name, str(key.rows)]
        if key.context != self.sizes.max_model_len:
            parts.append(f"context {key.context}")
        parts += [name for name, on in (("random", key.random), ("logprobs", key.logprobs)) if on]
        return f"graph[{','.join(parts)}]"

    def _launch(self, stream: Stream, slot: Slot, key: GraphKey) -> None:
        """Enqueue the padded step that ``key`` stands for."""
        shape = BatchShape(key.rows, key.rows, key.rows, 1, key.context)
        for kernel in self.kernels.build(slot, shape, key.random, key.logprobs):
            work = Work(kernel.name, key.rows, key.rows)
            self.device.launch(
                kernel.fn, stream, reads=kernel.reads, writes=kernel.writes, work=work, label=kernel.name
            )
