from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.browser.lab import ROOT, Server, environment, free_port, stop, stripped_notebooks, wait_for_token


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab as ``make lab ARGS=--no-browser`` starts it, in this environment, on copies of the notebooks.

    One for each test module: JupyterLab opens again what was open before, and a panel left running takes a core.
    """
    home = tmp_path_factory.mktemp("jupyter")
    port = free_port()
    command = [
        *("make", "lab", f"VENV={sys.prefix}", f"NOTEBOOKS={stripped_notebooks(home)}"),
        f"ARGS=--no-browser --ServerApp.port={port} --ServerApp.port_retries=0",
        f"--assume-old={sys.prefix}/.weights",  # what is tested is the server; the installation has been done
    ]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(home), stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield Server(port, wait_for_token(process, home, port))
    finally:
        stop(process)
