"""A real browser: Chromium, without a window."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.view.silhouette import dark_blue

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt install chromium)")
PATIENCE_S = 40.0
SHOT_S = 120.0
"""A picture of a page that plays, drawn without a graphics card on a busy machine."""
HARMLESS = ("THREE.Clock", "KHR_parallel_shader_compile", "GPU stall", "GL Driver Message", "software")


class Page:
    """A page, with what it complained of and what it asked others for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.faults: list[str] = []
        self.asked: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    def _console(self, message: Any) -> None:
        if message.type == "error" and not any(word in message.text for word in HARMLESS):
            self.faults.append(message.text)

    def picture(self) -> np.ndarray:
        """(height, width, 3), grey to colour."""
        import imageio.v3 as imageio

        return np.asarray(imageio.imread(self.page.screenshot(timeout=1000.0 * SHOT_S), extension=".png"))[
            ..., :3
        ].astype(int)

    def moving(self, wide: int, high: int) -> None:
        """Wait until the robot is to be seen within the left upper part of the page, and moves."""
        end, before = time.monotonic() + PATIENCE_S, None
        while time.monotonic() < end:
            now = self.picture()[:high, :wide]
            if coloured(now) > 20:
                if before is not None and (np.abs(now - before).max(axis=2) > 30).sum() > 20:
                    return
                before = now
            self.page.wait_for_timeout(300)
        raise AssertionError("no manta is seen" if before is None else "it does not move")

    def until(self, holds: Callable[[], bool], message: str) -> None:
        """Wait for what a click leads to, as long as a busy machine may take."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, message
            self.page.wait_for_timeout(100)

    @property
    def strangers(self) -> list[str]:
        """What it asked for that is not on this machine."""
        current = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:", "file:")
        return [url for url in self.asked if not url.startswith(current)]


@contextmanager
def browsed(address: str) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        )
        page = Page(browser.new_page(viewport={"width": 1280, "height": 720}))
        try:
            page.page.goto(address)
            yield page
        finally:
            browser.close()


def coloured(picture: np.ndarray) -> int:
    """Points of the manta's back: nothing else in the scene is as dark and blue."""
    return int(dark_blue(picture).sum())
