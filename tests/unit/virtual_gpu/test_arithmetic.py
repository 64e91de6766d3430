"""Every operation gives what torch gives, on the device and on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import labkit

VALUES = [3.0, 1.0, 2.0, 1.0]
OPERATIONS: dict[str, Callable[[Any, Callable[..., Any]], Any]] = {
    "add": lambda x, make: x + make([1.0]),
    "sub": lambda x, make: x - 1,
    "mul": lambda x, make: x * x,
    "div": lambda x, make: x / 2,
    "matmul": lambda x, make: x.view(2, 2) @ x.view(2, 2),
    "gt": lambda x, make: x > 1,
    "eq": lambda x, make: x == 1,
    "sum": lambda x, make: x.sum(),
    "clone": lambda x, make: x.clone(),
    "fill_": lambda x, make: x.fill_(7),
    "zero_": lambda x, make: x.zero_(),
    "add_": lambda x, make: x.add_(make([1.0])),
    "mul_": lambda x, make: x.mul_(3),
    "nonzero": lambda x, make: (x - 1).nonzero(),
    "unique": lambda x, make: x.unique(),
    "masked_select": lambda x, make: x.masked_select(x > 1),
    "repeat_interleave": lambda x, make: x.repeat_interleave(make([2, 0, 1, 1])),
    "repeat_interleave with size": lambda x, make: x.repeat_interleave(make([2, 0, 1, 1]), output_size=4),
    "integer": lambda x, make: x[1],
    "slice": lambda x, make: x[1:3],
    "slice with tensors": lambda x, make: x[make([1])[0] : make([3])[0]],
    "list": lambda x, make: x[[0, 2]],
    "gather": lambda x, make: x[make([2, 2])],
    "mask": lambda x, make: x[x > 1],
}


@pytest.mark.parametrize("where", ["cuda", "cpu"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_gives_what_torch_gives(operation: Callable[..., Any], where: str) -> None:
    gpu = labkit.VirtualGPU()
    result = operation(gpu.tensor(VALUES, device=where), lambda values: gpu.tensor(values, device=where))
    expected = operation(torch.tensor(VALUES), torch.tensor)
    assert result.device == ("cuda:0" if where == "cuda" else "cpu")
    assert (result.tolist(), result.dtype, result.shape) == (expected.tolist(), expected.dtype, expected.shape)


@pytest.mark.parametrize("where", ["cuda", "cpu"])
def test_assignment(where: str) -> None:
    gpu = labkit.VirtualGPU()
    x = gpu.tensor(VALUES, device=where)
    x[0] = 9
    x[1:3] = gpu.tensor([4.0, 5.0], device=where)
    x[gpu.tensor([3], device=where)] = 6.0
    assert x.tolist() == [9, 4, 5, 6]


def test_one_operation_is_one_kernel() -> None:
    gpu = labkit.VirtualGPU("zero", op_us=4)
    x = gpu.ones(4, device="cuda")
    y = x + x
    y.mul_(2)
    gpu.synchronize()
    assert gpu.now_us == 12
    assert [span.name for span in gpu.trace().of_kind("kernel")] == ["fill", "add", "mul"]
