"""Settings of the machine are checked."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.device.virtual.hardware import Hardware
from labkit.errors import InvalidArgument


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpus", 0),
        ("gpus", None),
        ("gpus", True),
        ("connections", 0),
        ("memory_bytes", 1.5),
        ("dma_reads", "never"),
        ("staging", "sometimes"),
        ("pinned_alloc_in_capture", "yes"),
    ],
)
def test_a_bad_value_is_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=name):
        Hardware(**{name: value})


def test_good_values() -> None:
    machine = Hardware(gpus=2, connections=1, dma_reads="start", staging="stage_only", memory_bytes=1)
    assert (machine.gpus, machine.connections) == (2, 1)
