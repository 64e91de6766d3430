"""The server of ``make lab``, and its first notebook in a real browser. Needs make, playwright and a Chromium."""

from __future__ import annotations

import shutil
import urllib.error
from typing import Any

import pytest

from tests.browser.lab import (
    Server,
    accepts,
    check_no_share_button,
    chromium,
    keep,
    needs_browser,
    needs_install,
    run_all,
)

NOTEBOOK = "00_start_here.ipynb"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not on PATH"),
]


def test_the_server_is_reached_through_one_loopback_address(server: Server) -> None:
    assert accepts("127.0.0.1", server.port)
    assert not accepts("127.0.0.2", server.port), "it listens on every address"


def test_the_server_asks_for_its_token(server: Server) -> None:
    assert len(server.token) >= 32
    with pytest.raises(urllib.error.HTTPError, match="403"):
        server.get("api/contents")
    names = [entry["name"] for entry in server.get("api/contents", server.token)["content"]]
    assert NOTEBOOK in names


@needs_install
def test_jupyterlab_shows_no_news_and_saves_no_widgets(server: Server) -> None:
    def defaults(plugin: str) -> dict[str, Any]:
        properties = server.get(f"lab/api/settings/{plugin}", server.token)["schema"]["properties"]
        return {name: entry.get("default") for name, entry in properties.items()}

    notifications = defaults("@jupyterlab/apputils-extension:notification")
    assert (notifications["fetchNews"], notifications["checkForUpdates"]) == ("false", False)
    assert defaults("@jupyter-widgets/jupyterlab-manager:plugin")["saveState"] is False


@needs_browser
@needs_install
def test_the_first_notebook_runs_and_draws_its_timeline(server: Server) -> None:
    with chromium() as (page, seen):
        try:
            run_all(page, server, NOTEBOOK)
            check_outputs(page)
        finally:
            keep(page, "start_here")
    assert seen.errors == []
    assert seen.hosts == {"127.0.0.1"}


def check_outputs(page: Any) -> None:
    page.wait_for_selector(".js-plotly-plot .main-svg", state="visible", timeout=20_000)
    errors = "[data-mime-type='application/vnd.jupyter.error'], [data-mime-type='application/vnd.jupyter.stderr']"
    assert page.locator(errors).all_inner_texts() == []
    assert "" not in page.locator(".jp-CodeCell .jp-InputPrompt").all_inner_texts()
    assert page.locator(".js-plotly-plot .bars path").count() > 0, "a timeline without a span"
    check_no_share_button(page)
