"""rtmms bench bridges with foxglove, dds, zenoh and lcm: their peers answer. How long that took is not judged here."""

from __future__ import annotations

import json

import pytest

from rtmms_benchmarks import bridge_views, bridges

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", bridge_views.ROWS)
def test_there_and_back(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = bridges.main(True, seconds=1.0, what=name, rates="50", blocks=0)
    found = json.loads(capsys.readouterr().out)["bridges"][name]
    if "skipped" in found:
        pytest.skip(found["skipped"]["skipped"])
    assert status == 0
    assert found["50"]["states"] == 50
    assert found["50"]["lost"] < 50
    assert found["50"]["out_us"]["p50"] > 0
