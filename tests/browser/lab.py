"""The server of ``make lab`` and a headless Chromium, for the tests of this folder."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
ARTIFACTS = ROOT / "artifacts"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
START_SECONDS, RUN_SECONDS = 120, 180  # of a busy machine

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on PATH: apt-get install chromium, or brew install --cask chromium"
)
needs_install = pytest.mark.skipif(
    "labkit" not in {dist.name for dist in importlib.metadata.distributions()},
    reason="labkit is not installed here, so neither JupyterLab nor its kernels know of it: pip install -e .",
)


@dataclass
class Server:
    port: int
    token: str

    def get(self, path: str, token: str | None = None) -> Any:
        headers = {} if token is None else {"Authorization": f"token {token}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    """JupyterLab as ``make lab ARGS=--no-browser`` starts it, in this environment, on copies of the notebooks."""
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(home: Path) -> dict[str, str]:
    """No Jupyter configuration of this user, and no flags of a make that runs these tests."""
    places = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "JUPYTER"))} | places


def stripped_notebooks(home: Path) -> Path:
    """Copies without outputs, so that what is drawn was drawn by this run."""
    folder = home / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder)
    for path in HERE.glob("*.ipynb"):
        shutil.copy(path, folder)
    for path in folder.rglob("*.ipynb"):
        notebook = json.loads(path.read_text())
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell |= {"outputs": [], "execution_count": None}
        path.write_text(json.dumps(notebook))
    return folder


def wait_for_token(process: subprocess.Popen[bytes], home: Path, port: int) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for info in (home / "runtime").glob("jpserver-*.json"):
            facts = json.loads(info.read_text() or "{}")
            if facts.get("port") == port and accepts("127.0.0.1", port):
                return facts["token"]
        time.sleep(0.2)
    raise AssertionError(f"make lab did not start a server:\n{(home / 'log').read_text()}")


def accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask make and the server to stop; the server ends its kernels, which are in groups of their own."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    except ProcessLookupError:
        pass


@dataclass
class Seen:
    """What the page did that a learner should not have to see."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


@contextmanager
def chromium(height: int = 6000, width: int = 1400) -> Iterator[tuple[Any, Seen]]:
    """A page, and what it does. Tall enough for a whole notebook: JupyterLab builds only the cells in view."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install 'labkit[test]'")
    # Chromium's sandbox does not run as root; it opens nothing but this server.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": width, "height": height})
        try:
            yield page, watch(page)
        finally:
            browser.close()


def watch(page: Any) -> Seen:
    seen = Seen()
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: seen.hosts.add(host_of(request.url)))
    return seen


def host_of(url: str) -> str:
    """The host that a request leaves for; data and blob stay in the page."""
    parts = urlsplit(url)
    return "127.0.0.1" if parts.scheme in ("data", "blob") else parts.hostname or url


def run_all(page: Any, server: Server, notebook: str) -> None:
    page.goto(f"http://127.0.0.1:{server.port}/lab/tree/{notebook}?token={server.token}")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=START_SECONDS * 1000)
    # The status bar is the last to know that the kernel is connected; before that, Run asks which kernel to take.
    page.get_by_text("| Idle").wait_for(timeout=START_SECONDS * 1000)
    assert page.locator(".main-svg").count() == 0
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function(ALL_CELLS_DONE, timeout=RUN_SECONDS * 1000)


# An error that no tag announces stops the run: the cells behind it go back to an empty prompt.
ALL_CELLS_DONE = r"""() => {
    const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(node => node.textContent);
    return prompts.some(text => /\d/.test(text)) && !prompts.some(text => text.includes('*'));
}"""


def keep(shown: Any, name: str) -> None:
    """A picture of a page or of a part of it, to be looked at: ``artifacts/NAME.png``."""
    ARTIFACTS.mkdir(exist_ok=True)
    shown.screenshot(path=ARTIFACTS / f"{name}.png")


# Texts of a plot that leave it, and texts over each other; a letter is a little smaller than its box.
CLASHES = """plot => {
    const frame = plot.getBoundingClientRect(), found = [];
    const boxes = [...plot.querySelectorAll('text')]
        .filter(node => node.textContent.trim() && !node.closest('.hoverlayer'))
        .map(node => [node.textContent, node.getBoundingClientRect()]).filter(([, box]) => box.width && box.height);
    boxes.forEach(([text, box], place) => {
        const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1;
        if (!inside || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) found.push(`cut: ${text}`);
        for (const [other, next] of boxes.slice(place + 1)) {
            const wide = Math.min(box.right, next.right) - Math.max(box.left, next.left);
            const high = Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top);
            if (wide > 2 && high > 4) found.push(`over each other: ${text} / ${other}`);
        }
    });
    return found;
}"""


def check_no_share_button(page: Any) -> None:
    buttons = page.locator(".modebar-btn").evaluate_all("nodes => nodes.map(node => node.dataset.title || '')")
    assert buttons
    assert [title for title in buttons if "share" in title.lower()] == []
