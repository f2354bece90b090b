"""The wire's fixtures serve here too, and a controller that takes every word."""

from __future__ import annotations

from typing import Any

import pytest

from rtmms_bridges.autopilot.parameter_channels import ParameterChannels
from tests.wire.conftest import make_host, runtime_directory  # noqa: F401


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What words asked for last, by name; each is taken."""
    result: dict[str, float] = {}
    opened = ParameterChannels.open

    def ask(op: str, done: Any, **values: float) -> None:
        assert op == "set"
        result.update(values)
        done(True, None)

    monkeypatch.setattr(ParameterChannels, "open", lambda self, _, refused: opened(self, ask, refused))
    return result
