"""Shared by the engine cases: both block sizes."""

from __future__ import annotations

import pytest

from tests.engine.harness import BLOCK_SIZES, RIGHT


@pytest.fixture(params=BLOCK_SIZES, ids=lambda size: f"block{size}")
def block_size(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(params=RIGHT, ids=lambda rung: f"rung{rung}")
def right_rung(request: pytest.FixtureRequest) -> int:
    return request.param
