"""What of a long run's samples counts."""

from __future__ import annotations

import pytest

from rtmms_benchmarks.soak import summary


def test_what_was_loaded_before_the_run_is_no_growth() -> None:
    loading = [(0.2 * k, 1024 * (50 + k), 10) for k in range(100)]
    running = [(20.0 + 0.2 * k, 1024 * 200 + 2 * k, 12) for k in range(100)]
    result = summary([*loading, *running], 20.0)
    assert result["first_mib"] == pytest.approx(200.0, abs=0.1)
    assert 0.0 < result["growth_mib"] < 0.2
    assert (result["handles_first"], result["handles_last"]) == (12, 12)


def test_growth_while_it_runs_is_reported() -> None:
    rows = [(0.2 * k, 1024 * (100 + k), 10) for k in range(100)]
    assert summary(rows, 20.0)["growth_mib"] > 50.0
