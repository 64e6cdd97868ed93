"""A browser for the tests of pages: Chromium without a network, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardy_py.explain.explore.page import Page
from shardy_py.kernels.page.stages_page import StagesPage

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60_000
"""Milliseconds until something that does not appear is a failure; machines may be busy."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium, or a reason why there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pages are opened with playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    # Chromium refuses to run as root in its sandbox.
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def expect(chromium: Any) -> Callable[..., Any]:
    """The assertions of playwright that wait until they hold."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    return expect


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that opens a page from a file, offline, and fails on any message in the console."""
    contexts, messages, requests = [], [], []

    def open_(page: Page | StagesPage, *, width: int = 1400, height: int = 900, dark: bool = False) -> Any:
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(page.html, encoding="utf-8")
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", offline=True
        )
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(PATIENCE)
        tab.on("console", lambda message: messages.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: messages.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(file.as_uri())
        tab.wait_for_selector("body[data-ready], body[data-failed]", state="attached")
        assert tab.evaluate("document.body.dataset.failed ?? ''") == ""
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert messages == []
    assert len([url for url in requests if not url.startswith("data:")]) == len(contexts)
