"""Bytes of slots, KV cache and graphs, against the sizes they follow from."""

from dataclasses import replace
from math import prod

import pytest

from labkit import memory as memory_module
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine
from labkit.errors import InvalidArgument
from labkit.memory import memory_of
from labkit.model.toy import ToyModel
from labkit.sizes import Sizes

SIZES = Sizes(max_rows=4, token_budget=16, block_size=4, num_blocks=8, max_model_len=16)


def memory(rung):
    with Engine(ToyModel(), switches=rung, sizes=SIZES, unsafe=True) as engine:
        return memory_of(engine.core)


def parts(uses):
    sums = {}
    for use in uses:
        sums[use.part] = sums.get(use.part, 0) + use.bytes
    return sums


def test_a_second_slot_costs_what_the_first_one_does():
    one, two = parts(memory(3)), parts(memory(4))
    assert set(one) == {"slot A", "KV cache"}
    assert set(two) == {"slot A", "slot B", "KV cache"}
    assert two["slot B"] == two["slot A"] == one["slot A"]
    assert two["KV cache"] == one["KV cache"]


def test_host_and_device_buffers_of_a_slot_have_the_same_size():
    sizes = {use.what: use.bytes for use in memory(0) if use.part == "slot A"}
    assert sizes["inputs_host"] == sizes["inputs_dev"]
    assert sizes["outputs_host"] == sizes["outputs_dev"] == 2 * SIZES.max_rows * 4  # tokens and log-probabilities


def test_host_memory_is_pinned_once_there_are_streams():
    assert {use.place for use in memory(0)} == {"pageable", "device"}
    assert {use.place for use in memory(1)} == {"pinned", "device"}


def test_the_kv_cache_has_one_block_more_than_the_pool():
    per_token = sum(spec.dtype.itemsize * prod(spec.per_token) for spec in ToyModel().kv_specs())
    per_block = per_token * SIZES.block_size
    assert parts(memory(0))["KV cache"] == per_block * (SIZES.num_blocks + 1)


def test_graphs_count_once_in_a_shared_pool():
    graphs = next(use for use in memory(6) if use.part == "CUDA graphs")
    per_row = ToyModel().vocab_size * 4
    assert graphs.bytes == 4 * per_row
    assert f"{(1 + 2 + 4) * 2 * per_row} B in pools of their own" in graphs.what
    assert "CUDA graphs" not in parts(memory(5))


def test_a_run_carries_it_along():
    with Engine(ToyModel(), switches=5, sizes=SIZES) as engine:
        run = engine.generate([[1, 2]], SamplingParams(max_new_tokens=2))
        assert run.memory == memory_of(engine.core)


@pytest.mark.parametrize("change", [{"max_rows": 10**8}, {"num_blocks": 10**12}, {"token_budget": 10**13}])
def test_sizes_beyond_this_machines_memory_are_refused_before_anything_is_allocated(change):
    with pytest.raises(InvalidArgument, match="what fits into"):
        Engine(ToyModel(), sizes=replace(SIZES, **change, max_model_len=4096))


def test_sizes_that_just_fit_are_taken(monkeypatch):
    wanted = memory(0)
    bytes_of = {use.what if use.part != "KV cache" else "cache": use.bytes for use in wanted}
    needed = bytes_of["cache"] + bytes_of["inputs_host"] + bytes_of["inputs_dev"]
    for rung, more in (("events", 0), ("carry_over", bytes_of["inputs_host"] + bytes_of["inputs_dev"])):
        machine = -(-4 * (needed + more) // 3)
        monkeypatch.setattr(memory_module, "_host_memory", lambda size=machine: size)
        Engine(ToyModel(), switches=rung, sizes=SIZES).close()
        monkeypatch.setattr(memory_module, "_host_memory", lambda size=machine - 2: size)
        with pytest.raises(InvalidArgument, match="GiB"):
            Engine(ToyModel(), switches=rung, sizes=SIZES)
