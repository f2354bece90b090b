"""`rtmms bench realtime` in a tiny setting: what it says, not how fast."""

from __future__ import annotations

import json

import pytest

from benchmarks import realtime


@pytest.mark.slow
def test_shape_of_the_result(capsys):
    effort = realtime.Effort(blocks=1, block_s=1.0, long_s=1.0)
    assert realtime.main(as_json=True, effort=effort) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"commit", "machine", "load", "blocks", "long"} <= set(result)
    long = result["long"]
    assert long["steps"] == 1000 == long["commands_applied"] + long["misses"]
    yardstick = result["blocks"][0]["cyclictest"]
    if yardstick is None:
        pytest.skip("cyclictest is not installed (Debian: rt-tests)")
    assert yardstick.get("wakeups", 0) > 900 or "failed" in yardstick
    realtime.tell(result)
    assert "1 s at 1 kHz: ended duration" in capsys.readouterr().out
