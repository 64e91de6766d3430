"""Switches + sizes + device + model -> engine. The only file that reads switches: each becomes an object here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from labkit.device.api import Buffer, Device
from labkit.engine.carry_over import CarryOver, HostFeed
from labkit.engine.core import EngineCore
from labkit.engine.launch import EagerLauncher, GraphLauncher, StepKernels
from labkit.engine.loop import run_async, run_sync
from labkit.engine.ordering import Events, NoEvents, Streams
from labkit.engine.slots import SlotSet
from labkit.errors import InvalidArgument, UnsafeSwitches
from labkit.model.api import Model
from labkit.model.kv_cache import cache_shape
from labkit.sizes import Sizes
from labkit.switches import Switches, explain


def assemble(
    switches: Switches,
    sizes: Sizes,
    device: Device,
    model: Model,
    *,
    unsafe: bool = False,
    dropped_waits: Collection[str] = (),
    observers: Iterable[Any] = (),
) -> EngineCore:
    """Build an engine.

    Args:
        unsafe: build a combination that cannot be right too; it runs, and its tokens are wrong.
        dropped_waits: waits of ``engine/ordering.py`` to leave out.
        observers: objects that are told what happens (``engine/hooks.py``).

    Raises:
        UnsafeSwitches: a combination that cannot be right, without ``unsafe``.
        InvalidArgument: sizes that the model cannot serve, or a shape that has no compiled form.
    """
    explanation = explain(switches)
    if not explanation.right and not unsafe:
        raise UnsafeSwitches("switches", switches.on, f"{explanation.why} Pass unsafe=True to run it all the same")
    if sizes.max_model_len > model.max_model_len:
        raise InvalidArgument("max_model_len", sizes.max_model_len, f"at most {model.max_model_len} for {model.name}")
    model = (model.compiled() if switches.compiled else model).for_block_size(sizes.block_size)
    streams = _streams(switches, device)
    slots = SlotSet(
        device,
        sizes,
        count=2 if switches.double_buffering else 1,
        host_place="pinned" if switches.streams else "pageable",
    )
    kv = _kv_cache(device, model, sizes)
    kernels = StepKernels(model, kv, CarryOver() if switches.carry_over else HostFeed())
    return EngineCore(
        model=model,
        device=device,
        sizes=sizes,
        loop=run_async if switches.lookahead else run_sync,
        streams=streams,
        order=Events(streams, frozenset(dropped_waits)) if switches.events else NoEvents(),
        slots=slots,
        launcher=GraphLauncher(device, streams.compute, kernels, sizes)
        if switches.cuda_graphs
        else EagerLauncher(device, streams.compute, kernels),
        kv=kv,
        non_blocking=switches.streams,
        observers=observers,
    )


def _streams(switches: Switches, device: Device) -> Streams:
    if switches.streams:
        return Streams(device.stream("h2d"), device.stream("compute"), device.stream("d2h"))
    return Streams(device.default_stream, device.default_stream, device.default_stream)


def _kv_cache(device: Device, model: Model, sizes: Sizes) -> tuple[Buffer, ...]:
    """The model's cache tensors, one more block than the pool has: the trash block."""
    return tuple(
        device.buffer(spec.name, cache_shape(spec, sizes.num_blocks, sizes.block_size), spec.dtype, "device")
        for spec in model.kv_specs()
    )
