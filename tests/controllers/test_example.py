"""The example drives a plant with the manta's rods."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.bench import Host
from tests.wire.looping import Looping

EXAMPLE = Path(__file__).parents[2] / "examples" / "20_controller.py"


def test_the_example_drives_the_rods(make_host: Callable[..., Host], capsys: pytest.CaptureFixture[str]) -> None:
    with Looping(make_host(token=None)) as running:
        done = runpy.run_path(str(EXAMPLE))["main"](running.host.exchange, seconds=0.1)
        assert done["states"] > 0
        assert running.host.command.any()
        assert running.host.rejected == {}
    assert "driving left.front, left.back, right.front, right.back of toy" in capsys.readouterr().out
