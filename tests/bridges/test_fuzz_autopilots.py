"""A hundred thousand frames that are almost right into each parser of the bridges to autopilots."""

from __future__ import annotations

import pytest

from benchmarks import fuzz

PARSERS = ("ardupilot", "px4")


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS)
def test_nothing_is_raised_and_nothing_grows(parser: str) -> None:
    result = fuzz.fuzz(fuzz.Task(parser, 100_000, "7"))
    assert result.findings == []
    assert result.frames == 100_000
    assert result.outcomes["read"] > 500
    assert len(result.outcomes) > 2
    assert result.grown_bytes < 4 << 20
