"""Slots: the buffers of a step, on host and device. Every tensor that crosses streams is allocated here, once.

A step's inputs are one packed int32 buffer, so that an upload is one copy; the fields are views into it. Its outputs
are one packed buffer too: the token and the bits of its log-probability per row.

Legend: T tokens, R rows, M block-table columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import torch

from labkit.device.api import Buffer, Device, Event, Place
from labkit.engine.sampling import SamplingInputs
from labkit.model.api import BatchInputs, BatchShape
from labkit.sizes import Sizes


class InputLayout:
    """Where each field lies in the packed input buffer. Every field holds in-range values at all times."""

    def __init__(self, sizes: Sizes) -> None:
        rows, columns = sizes.max_rows, sizes.blocks_per_request
        self.capacity = max(sizes.token_budget, sizes.max_rows)  # T: a padded decode batch may exceed the budget
        self.fields: dict[str, tuple[int, ...]] = {
            "token_ids": (self.capacity,),
            "positions": (self.capacity,),
            "slot_mapping": (self.capacity,),
            "carry_from": (rows,),  # row of the previous step's output, or -1
            "cu_seqlens_q": (rows + 1,),
            "seq_lens": (rows,),
            "output_index": (rows,),
            "sample_position": (rows,),
            "top_k": (rows,),
            "seed": (rows,),
            "temperature": (rows,),  # float32 bits
            "top_p": (rows,),  # float32 bits
            "block_table": (rows, columns),
        }
        self.numel = sum(torch.Size(shape).numel() for shape in self.fields.values())

    def views(self, packed: torch.Tensor) -> SimpleNamespace:
        """The fields as views of a packed buffer ``[numel]`` int32."""
        views, at = {}, 0
        for name, shape in self.fields.items():
            size = torch.Size(shape).numel()
            view = packed[at : at + size].view(shape)
            views[name] = view.view(torch.float32) if name in ("temperature", "top_p") else view
            at += size
        return SimpleNamespace(**views)


@dataclass(eq=False)
class Slot:
    """One set of buffers, and the events that guard them. ``previous`` is the slot of the step before."""

    name: str
    inputs_host: Buffer  # [numel] int32
    inputs_dev: Buffer
    outputs_host: Buffer  # [2, R] int32: tokens, bits of log-probabilities
    outputs_dev: Buffer
    h2d_done: Event
    compute_done: Event
    d2h_done: Event
    layout: InputLayout
    index: int = 0
    previous: Slot = field(init=False)

    def __post_init__(self) -> None:
        self.host = SimpleNamespace(
            **{name: view.numpy() for name, view in vars(self.layout.views(self.inputs_host.tensor)).items()}
        )
        self.dev = self.layout.views(self.inputs_dev.tensor)
        self.previous = self

    def model_inputs(self, shape: BatchShape) -> BatchInputs:
        """What the forward pass reads, cut to the batch's (padded) shape."""
        dev, rows, tokens = self.dev, shape.rows, shape.tokens
        return BatchInputs(
            token_ids=dev.token_ids[:tokens],
            positions=dev.positions[:tokens],
            slot_mapping=dev.slot_mapping[:tokens],
            cu_seqlens_q=dev.cu_seqlens_q[: rows + 1],
            seq_lens=dev.seq_lens[:rows],
            block_table=dev.block_table[:rows],
            output_index=dev.output_index[:rows],
            shape=shape,
        )

    def sampling_inputs(self, rows: int) -> SamplingInputs:
        """What the sampler reads."""
        dev = self.dev
        return SamplingInputs(
            dev.temperature[:rows], dev.top_p[:rows], dev.top_k[:rows], dev.seed[:rows], dev.sample_position[:rows]
        )


class SlotSet:
    """One slot, or two used in turn."""

    def __init__(self, device: Device, sizes: Sizes, count: int, host_place: Place) -> None:
        layout = InputLayout(sizes)
        self.slots = tuple(_slot(device, sizes, layout, index, host_place) for index in range(count))
        for index, slot in enumerate(self.slots):
            slot.previous = self.slots[index - 1]
        self._turn = 0

    def next(self) -> Slot:
        """The slot for the next step."""
        slot = self.slots[self._turn % len(self.slots)]
        self._turn += 1
        return slot

    def free(self, device: Device) -> None:
        """Give all buffers back."""
        for slot in self.slots:
            for buffer in (slot.inputs_host, slot.inputs_dev, slot.outputs_host, slot.outputs_dev):
                device.free(buffer)


def _slot(device: Device, sizes: Sizes, layout: InputLayout, index: int, host_place: Place) -> Slot:
    name = "AB"[index]

    def buffer(what: str, shape: tuple[int, ...], place: Place) -> Buffer:
        return device.buffer(f"{what}[{name}]", shape, torch.int32, place, fill=0)

    return Slot(
        name,
        buffer("inputs_host", (layout.numel,), host_place),
        buffer("inputs_dev", (layout.numel,), "device"),
        buffer("outputs_host", (2, sizes.max_rows), host_place),
        buffer("outputs_dev", (2, sizes.max_rows), "device"),
        device.event(f"h2d_done[{name}]"),
        device.event(f"compute_done[{name}]"),
        device.event(f"d2h_done[{name}]"),
        layout,
        index,
    )
