"""The carry-over on tensors, and which slot it takes tokens from."""

import torch

from labkit.device.virtual import VirtualDevice
from labkit.engine.carry_over import CarryOver, HostFeed, carry_over
from labkit.engine.slots import SlotSet
from labkit.sizes import Sizes

SIZES = Sizes(max_rows=4, token_budget=8, block_size=4, num_blocks=6, max_model_len=16)


def test_placeholders_are_replaced_and_known_tokens_stay():
    tokens = torch.tensor([0, 7, 0], dtype=torch.int32)
    carry_over(tokens, torch.tensor([2, -1, 0], dtype=torch.int32), torch.tensor([10, 11, 12, 13], dtype=torch.int32))
    assert tokens.tolist() == [12, 7, 10]


def test_a_known_token_stays_even_where_row_0_has_another():
    tokens = torch.tensor([5], dtype=torch.int32)
    carry_over(tokens, torch.tensor([-1], dtype=torch.int32), torch.tensor([9], dtype=torch.int32))
    assert tokens.tolist() == [5]


def filled_slots():
    slots = SlotSet(VirtualDevice(), SIZES, count=2, host_place="pinned").slots
    for number, slot in enumerate(slots):
        slot.dev.token_ids[:4] = 0
        slot.dev.carry_from[:4] = torch.tensor([1, -1, 0, 3])
        slot.outputs_dev.tensor[0] = torch.arange(4) + 10 * (number + 1)
    return slots


def test_the_kernel_reads_the_other_slots_output():
    a, b = filled_slots()
    CarryOver().kernel(a, 4)()
    CarryOver().kernel(b, 4)()
    assert a.dev.token_ids[:4].tolist() == [21, 0, 20, 23]
    assert b.dev.token_ids[:4].tolist() == [11, 0, 10, 13]


def test_prefill_tokens_behind_the_decode_rows_are_left_alone():
    a, _ = filled_slots()
    CarryOver().kernel(a, 1)()
    assert a.dev.token_ids[:4].tolist() == [21, 0, 0, 0]


def test_no_launch_without_decode_rows_or_without_the_mechanism():
    a, _ = filled_slots()
    assert CarryOver().kernel(a, 0) is None
    assert HostFeed().kernel(a, 4) is None
