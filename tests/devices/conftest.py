"""``dev``: each contract test runs on the virtual GPU, and on a real one where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.devices.program import Virtual


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-programs", type=int, default=200, help="random stream programs per fuzz test (nightly: 10000)"
    )


KINDS = ["virtual", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(scope="session")
def real_gpu() -> None:
    from tests.devices.real import warm_up

    warm_up()


@pytest.fixture(params=KINDS)
def dev(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device to write a program for, its clock at 0."""
    if request.param == "virtual":
        yield Virtual()
        return
    request.getfixturevalue("real_gpu")
    from tests.devices.real import Real

    yield Real()
    torch.cuda.synchronize()
