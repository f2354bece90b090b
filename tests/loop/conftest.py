"""Loops that do not look at the whole heap of the test process before each run."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest

import rtmms.loop.loop


@pytest.fixture(autouse=True)
def quick_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the collection before a run: with all libraries loaded it takes longer than the run itself."""
    without = {"collect": lambda: 0, "freeze": lambda: None, "unfreeze": lambda: None}
    others = {name: getattr(gc, name) for name in ("enable", "disable", "get_stats")}
    monkeypatch.setattr(rtmms.loop.loop, "gc", SimpleNamespace(**without, **others))
