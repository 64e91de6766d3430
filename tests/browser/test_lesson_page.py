"""An exported lesson in a real browser: from its file, without network, every plot drawn. Needs a Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.cli import main
from tests.browser.lab import check_no_share_button, chromium, needs_browser

pytestmark = [pytest.mark.browser, needs_browser]

ALL_DRAWN = "() => [...document.querySelectorAll('.figure')].every(place => place.querySelector('.main-svg'))"


def test_a_lesson_is_drawn_from_its_file_without_network(tmp_path: Path) -> None:
    path = tmp_path / "lesson.html"
    assert main(["export", "02_synchronous", "--out", str(path)]) == 0
    with chromium(height=1000) as (page, seen):
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.context.set_offline(True)
        page.goto(path.as_uri())
        page.wait_for_function(ALL_DRAWN, timeout=60_000)
        assert page.locator(".figure").count() >= 3
        assert page.locator(".figure .bars path").count() > 20, "figures without bars"
        check_no_share_button(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
        page.screenshot(path=tmp_path / "lesson.png")
    assert seen.errors == []
    assert asked == [path.as_uri()]
