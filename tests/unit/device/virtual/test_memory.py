"""Torn reads and poison."""

from __future__ import annotations

import math

import pytest
import torch

from labkit.device.api import Access, Buffer
from labkit.device.virtual import memory
from labkit.device.virtual.queue import Item


def buffer(values: list[int], place: memory.Place | None = None) -> Buffer:
    return Buffer("x", "device", torch.tensor(values), place or memory.Place(memory.Memory()))


def reader(of: Buffer, start: int = 0, stop: int | None = None) -> tuple[Item, list[list[int]]]:
    """A running kernel that reads a buffer, and what its payload sees."""
    seen: list[list[int]] = []
    access = Access(of, start, of.nbytes if stop is None else stop)
    item = Item("reader", 0, payload=lambda: seen.append(of.tensor.flatten().tolist()), reads=(access,))
    memory.begin_read(item)
    return item, seen


def overwrite(target: Buffer, value: int, start: int = 0, stop: int | None = None) -> None:
    memory.before_write(target, start, target.nbytes if stop is None else stop)
    target.tensor.flatten()[start // 8 : (stop or target.nbytes) // 8] = value


def test_a_kernel_whose_input_changes_sees_a_mixture() -> None:
    x = buffer([1, 1, 1, 1])
    item, seen = reader(x)
    overwrite(x, 9)
    memory.run_payload(item)
    assert seen == [[9, 1, 9, 1]]
    assert x.tensor.tolist() == [9, 9, 9, 9], "only the reader saw it"


def test_only_the_bytes_that_overlap_are_torn() -> None:
    x = buffer([1, 2, 3, 4])
    item, seen = reader(x)
    overwrite(x, 9, 16, 32)
    memory.run_payload(item)
    assert seen == [[1, 2, 9, 4]]
    other, unhurt = reader(x, 0, 16)
    overwrite(x, 7, 16, 32)
    memory.run_payload(other)
    assert unhurt == [[1, 2, 7, 7]]
    assert not other.torn


def test_after_its_end_a_kernel_is_safe() -> None:
    x = buffer([1, 1])
    item, seen = reader(x)
    memory.end_read(item)
    overwrite(x, 9)
    memory.run_payload(item)
    assert seen == [[9, 9]]


def test_two_buffers_of_one_memory_tear_each_other() -> None:
    shared = memory.Memory()
    whole = buffer([1, 1, 1, 1], memory.Place(shared))
    half = Buffer("half", "device", whole.tensor[2:], memory.Place(shared, offset=16))
    item, seen = reader(whole)
    overwrite(half, 9)
    memory.run_payload(item)
    assert seen == [[1, 1, 9, 1]]


def test_a_view_that_is_not_contiguous_is_torn_in_its_own_order() -> None:
    x = buffer([1, 1, 1, 1])
    x.tensor = x.tensor.view(2, 2).t()
    item, seen = reader(x)
    memory.before_write(x, 0, 32)
    x.tensor.fill_(9)
    memory.run_payload(item)
    assert seen == [[9, 1, 9, 1]]
    assert x.tensor.flatten().tolist() == [9, 9, 9, 9]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_are_poisoned_with_cd(dtype: torch.dtype) -> None:
    tensor = torch.zeros(3, dtype=dtype)
    memory.poison(tensor)
    assert set(tensor.view(torch.uint8).tolist()) == {0xCD}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_floats_are_poisoned_with_nan(dtype: torch.dtype) -> None:
    tensor = torch.zeros(3, dtype=dtype)
    memory.poison(tensor)
    assert all(math.isnan(value) for value in tensor.tolist())


def test_a_copy_can_take_its_source_early() -> None:
    src, dst = torch.tensor([1]), torch.tensor([0])
    late, early = memory.Copy(dst, src), memory.Copy(dst, src).read_now()
    src.fill_(2)
    early()
    assert dst.item() == 1
    late()
    assert dst.item() == 2
