"""What makes the host wait for a GPU is seen on CPU tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from labkit.lessons.support.host_waits import HostWaits

WAITS: dict[str, Callable[[Any, Any], Any]] = {
    ".item()": lambda x, mask: x[0].item(),
    ".tolist()": lambda x, mask: x.tolist(),
    ".numpy()": lambda x, mask: x.numpy(),
    ".cpu()": lambda x, mask: x.cpu(),
    "if or bool() on a tensor": lambda x, mask: 1 if x[0] else 0,
    "int()": lambda x, mask: int(x[0]),
    "indexing with a boolean mask": lambda x, mask: x[mask],
    "torch.where with one argument": lambda x, mask: torch.where(mask),
    "nonzero": lambda x, mask: mask.nonzero(),
}


@pytest.mark.parametrize("what", WAITS)
def test_a_wait_is_noted_once_by_name(what: str) -> None:
    x = torch.tensor([1, 2, 3])
    with HostWaits() as waits:
        for _ in range(2):
            WAITS[what](x, x > 1)
    assert waits.found == [what]


def test_assigning_through_a_mask_is_noted_too() -> None:
    x = torch.tensor([1, 2, 3])
    with HostWaits() as waits:
        x[x > 1] = torch.tensor([5, 6])
    assert waits.found == ["indexing with a boolean mask"]


def test_what_stays_on_the_device_is_not_noted() -> None:
    x, at = torch.tensor([1, 2, 3]), torch.tensor([2, 0, 1])
    with HostWaits() as waits:
        torch.where(x > 1, x[at], x)
        x[:2].copy_(x[at.clamp(min=1)][1:])
    assert waits.found == []
