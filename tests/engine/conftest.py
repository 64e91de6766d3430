"""Shared by the engine cases: both block sizes, the right rungs, and a real GPU where there is one."""

from __future__ import annotations

import pytest
import torch

from tests.engine.harness import BLOCK_SIZES, RIGHT

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")


@pytest.fixture(params=["virtual", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])])
def device(request: pytest.FixtureRequest) -> str:
    """For the cases that are asked of a real GPU too: ``pytest tests/engine -k cuda`` runs them there alone."""
    return request.param


@pytest.fixture(params=BLOCK_SIZES, ids=lambda size: f"block{size}")
def block_size(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(params=RIGHT, ids=lambda rung: f"rung{rung}")
def right_rung(request: pytest.FixtureRequest) -> int:
    return request.param
