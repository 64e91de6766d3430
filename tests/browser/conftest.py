from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.lab import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for each test module: JupyterLab opens again what was open before, and a panel left running takes a core."""
    with serving(tmp_path_factory.mktemp("jupyter")) as server:
        yield server
