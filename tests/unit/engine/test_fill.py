"""What a batch looks like in a slot's host buffer, field by field."""

from types import SimpleNamespace

import numpy as np
import pytest

from labkit.device.virtual import VirtualDevice
from labkit.engine.fill import PLACEHOLDER, Filler
from labkit.engine.request import Request
from labkit.engine.sampling import SamplingParams
from labkit.engine.scheduler import Scheduler
from labkit.engine.slots import SlotSet
from labkit.sizes import Sizes

SIZES = Sizes(max_rows=8, token_budget=16, block_size=4, num_blocks=20, max_model_len=32)
TRASH = 20 * 4  # first place of the trash block


@pytest.fixture
def engine():
    scheduler = Scheduler(SIZES)
    slot = SlotSet(VirtualDevice(), SIZES, count=1, host_place="pinned").slots[0]
    return SimpleNamespace(scheduler=scheduler, filler=Filler(SIZES, scheduler), host=slot.host)


def step(engine, *requests):
    """Submit, plan and fill; returns the batch."""
    for request in requests:
        engine.scheduler.submit(request)
    batch = engine.scheduler.plan(0)
    engine.filler.fill(engine.host, batch)
    return batch


def request(number, tokens, **sampling):
    return Request(number, list(tokens), SamplingParams(max_new_tokens=9, **sampling), frozenset())


def places(engine, one, start, stop):
    return [one.blocks[at // 4] * 4 + at % 4 for at in range(start, stop)]


def test_prefill_chunks_are_packed_one_after_the_other(engine):
    first, second = request(0, range(10, 16)), request(1, range(30, 33))
    step(engine, first, second)
    host = engine.host
    assert host.token_ids[:9].tolist() == [*range(10, 16), *range(30, 33)]
    assert host.positions[:9].tolist() == [*range(6), *range(3)]
    assert host.slot_mapping[:9].tolist() == places(engine, first, 0, 6) + places(engine, second, 0, 3)
    assert host.cu_seqlens_q[:3].tolist() == [0, 6, 9]
    assert host.output_index[:2].tolist() == [5, 8]
    assert host.seq_lens[:2].tolist() == host.sample_position[:2].tolist() == [6, 3]
    assert host.block_table[0, :2].tolist() == first.blocks
    assert host.block_table[1].tolist() == [*second.blocks, *[20] * 7]


def test_decodes_come_first_and_a_pending_token_is_a_placeholder(engine):
    first, second = request(0, range(10, 16)), request(1, range(30, 33))
    step(engine, first, second)  # not settled: both tokens are pending
    batch = step(engine, request(2, range(50, 55)))
    host = engine.host
    assert batch.shape.decode_rows == 2
    assert host.token_ids[:7].tolist() == [PLACEHOLDER, PLACEHOLDER, *range(50, 55)]
    assert host.carry_from[:3].tolist() == [0, 1, -1]
    assert host.positions[:7].tolist() == [6, 3, *range(5)]
    assert host.cu_seqlens_q[:4].tolist() == [0, 1, 2, 7]
    assert host.output_index[:3].tolist() == [0, 1, 6]


def test_a_known_token_is_written_and_carried_from_nowhere(engine):
    one = request(0, range(10, 16))
    engine.scheduler.settle(step(engine, one), [77], None)
    step(engine)
    assert engine.host.token_ids[0] == 77
    assert engine.host.carry_from[0] == -1
    assert engine.host.slot_mapping[0] == places(engine, one, 6, 7)[0]


def test_decode_only_batches_are_padded_with_rows_that_touch_the_trash_block_alone(engine):
    requests = [request(i, [10 + i]) for i in range(5)]
    host = engine.host
    for name, view in vars(host).items():
        view[...] = 0 if name == "temperature" else 3  # what an earlier step might have left
    step(engine, *requests)
    assert SIZES.pad(5) == 8
    assert host.slot_mapping[5:8].tolist() == [TRASH + at % 4 for at in range(5, 8)]
    assert (host.block_table[5:8] == 20).all()
    assert host.carry_from[5:8].tolist() == [-1] * 3
    assert host.seq_lens[5:8].tolist() == [1] * 3
    assert host.positions[5:8].tolist() == [0] * 3
    assert host.cu_seqlens_q.tolist() == list(range(9))
    assert host.output_index[:8].tolist() == list(range(8))
    assert host.temperature[5:8].tolist() == [0] * 3


def test_sampling_fields_follow_the_seat_and_are_left_alone_for_greedy_batches(engine):
    step(engine, request(0, [1, 2]))
    assert engine.host.top_p[0] == 0, "an all-greedy batch has no use for them"
    hot = request(1, [3, 4], temperature=0.5, top_p=0.25, top_k=7, seed=99)
    batch = step(engine, hot)
    row, host = batch.requests.index(hot), engine.host
    assert (host.temperature[row], host.top_p[row], host.top_k[row], host.seed[row]) == (0.5, 0.25, 7, 99)
    assert host.temperature[1 - row] == 0


def test_every_place_is_in_range_after_any_fill(engine):
    step(engine, *(request(i, range(3 + i)) for i in range(3)))
    step(engine)
    host = engine.host
    assert (0 <= host.slot_mapping).all() and (host.slot_mapping < TRASH + 4).all()
    assert (0 <= host.block_table).all() and (host.block_table <= 20).all()
    assert host.block_table.dtype == np.int32
