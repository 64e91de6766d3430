"""The packed buffers of a slot, their views, and which slot follows which."""

import numpy as np
import torch

from labkit.device.virtual import VirtualDevice
from labkit.engine.slots import InputLayout, SlotSet
from labkit.model.api import BatchShape
from labkit.sizes import Sizes

SIZES = Sizes(max_rows=3, token_budget=7, block_size=4, num_blocks=6, max_model_len=18)


def slots_of(count, place="pinned"):
    return SlotSet(VirtualDevice(), SIZES, count, place)


def test_views_cover_the_packed_buffer_without_overlap():
    layout = InputLayout(SIZES)
    packed = torch.zeros(layout.numel, dtype=torch.int32)
    for view in vars(layout.views(packed)).values():
        assert (view.view(torch.int32) == 0).all()
        view.view(torch.int32).add_(1)
    assert (packed == 1).all()


def test_shapes_of_the_fields():
    views = InputLayout(SIZES).views(torch.zeros(InputLayout(SIZES).numel, dtype=torch.int32))
    assert tuple(views.token_ids.shape) == tuple(views.slot_mapping.shape) == (7,)
    assert tuple(views.cu_seqlens_q.shape) == (4,)
    assert tuple(views.block_table.shape) == (3, 5)
    assert views.temperature.dtype == views.top_p.dtype == torch.float32


def test_a_budget_below_the_row_count_leaves_room_for_a_padded_batch():
    assert InputLayout(Sizes(max_rows=9, token_budget=4)).capacity == 9


def test_host_views_are_arrays_on_the_same_memory():
    slot = slots_of(1).slots[0]
    slot.host.positions[2] = 41
    slot.host.temperature[1] = 0.5
    packed = slot.layout.views(slot.inputs_host.tensor)
    assert packed.positions[2] == 41
    assert packed.temperature[1] == 0.5
    assert isinstance(slot.host.block_table, np.ndarray)


def test_slots_are_used_in_turn_and_each_knows_the_one_before():
    slots = slots_of(2)
    a, b = slots.slots
    assert [slots.next() for _ in range(5)] == [a, b, a, b, a]
    assert (a.previous, b.previous) == (b, a)
    alone = slots_of(1).slots[0]
    assert alone.previous is alone


def test_places_and_names():
    slot = slots_of(2, "pageable").slots[1]
    assert (slot.inputs_host.place, slot.outputs_host.place) == ("pageable", "pageable")
    assert (slot.inputs_dev.place, slot.outputs_dev.place) == ("device", "device")
    assert (slot.name, slot.inputs_dev.name, slot.d2h_done.name) == ("B", "inputs_dev[B]", "d2h_done[B]")
    assert tuple(slot.outputs_dev.tensor.shape) == (2, 3)


def test_every_field_is_in_range_from_the_start():
    for buffer in (slots_of(1).slots[0].inputs_dev, slots_of(1).slots[0].outputs_dev):
        assert (buffer.tensor == 0).all()


def test_model_inputs_are_views_cut_to_the_batch():
    slot = slots_of(1).slots[0]
    inputs = slot.model_inputs(BatchShape(rows=2, tokens=5, decode_rows=1, max_chunk=4, context=4))
    assert (len(inputs.token_ids), len(inputs.cu_seqlens_q), len(inputs.output_index)) == (5, 3, 2)
    assert tuple(inputs.block_table.shape) == (2, 5)
    slot.dev.token_ids[4] = 9
    assert inputs.token_ids[4] == 9
    assert len(slot.sampling_inputs(2).seed) == 2
