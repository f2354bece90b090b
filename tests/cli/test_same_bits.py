"""The same command line gives the same bits in each process, whatever Python's sets and dictionaries begin from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import process


@pytest.mark.full
@pytest.mark.parametrize(
    "word", ["autopilot:depth_m=0.3", "predictive:depth_m=0.3,samples=4"], ids=["autopilot", "predictive"]
)
def test_what_controllers_make_of_sensors_does_not_depend_on_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """The estimator takes measurements of one moment in an order, and the order counts."""
    results = []
    for seed in ("1", "2", "3"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        result = process(
            tmp_path, "run", "manta", "--controller", word, "--sensors", "typical", "--mode", "lockstep", "--duration",
            "0.4", "--json", "--quiet", "--priority", "off",
        )  # fmt: skip
        assert result.status == 0, result.err
        results.append(result.report["final"])
    assert results[0] == results[1] == results[2]
