"""`rtmms reproduce qu2024`, shortened: its numbers against those derived independently of this code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.studies import qu2024
from rtmms.studies.qu2024 import CLAIMS, rows
from rtmms.studies.qu2024_runs import Settings
from rtmms.view.tables import page
from rtmms.view.verdict import DIFFERS
from tests.cli.shell import rtmms
from tests.report.agreement import disagreements

SHORT = Settings(
    frequencies_hz=(0.4, 0.51),
    amplitudes_deg=(20.0, 40.0),
    phases_deg=(-30.0, 0.0, 30.0),
    swim_amplitudes_deg=(20.0, 40.0),
    held_periods=3,
    coupling_steps_s=(10e-3, 5e-3),
    coupling_s=2.0,
    balance_steps_s=(2e-3, 1e-3),
    reference_step_s=1e-3,
    rk4_step_s=None,
    readings=("default", "support without roll (9)", "body drag by components", "body moment by the norm"),
)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return qu2024.compute(SHORT)


@pytest.mark.full
def test_waves_and_thrust(results: dict[str, Any]) -> None:
    wave, sweep = results["fig7"], results["fig8"]
    np.testing.assert_allclose(wave["rear_amplitude_deg"], [8.48, 8.92, 3.23], rtol=0, atol=0.02)
    np.testing.assert_allclose(wave["rear_lag_deg"], [27.6, 30.2], rtol=0, atol=0.2)
    assert np.all(wave["chord_lag_deg"] > 20.0)
    assert wave["mean_thrust_n"] == pytest.approx(3.36, abs=0.03)
    assert wave["peak_thrust_n"] == pytest.approx(20.0, abs=0.5)
    assert np.all(np.diff(sweep["thrust_by_amplitude_n"], axis=1) > 0.0)
    assert np.all(np.diff(sweep["thrust_by_phase_n"], axis=1) > 0.0)
    assert np.all(np.abs(sweep["thrust_by_phase_n"][:, 1]) < 0.05 * sweep["thrust_by_phase_n"][:, 2])
    assert 1.7 < sweep["frequency_exponent"] < 2.0


@pytest.mark.full
def test_swimming(results: dict[str, Any]) -> None:
    slow, fast = results["fig9"]["settled"]
    assert fast["speed_m_s"] == pytest.approx(0.765, abs=0.01)
    assert fast["reaches_95_percent_s"] == pytest.approx(12.5, abs=0.5)
    assert slow["reaches_95_percent_s"] == pytest.approx(29.0, abs=1.0)
    assert fast["power_w"] == pytest.approx(5.90, abs=0.02)
    assert fast["cost_of_transport"] == pytest.approx(0.037, abs=0.0005)
    assert max(slow["greatest_yaw_rad"], fast["greatest_yaw_rad"]) < 1e-9


@pytest.mark.full
def test_turning(results: dict[str, Any]) -> None:
    for name, rate, radius in (("phase", 22.4, 1.63), ("amplitude", 13.6, 3.05)):
        item = results["fig10_11"][name]
        assert -item["turn_rate_deg_s"]["10_to_20"] == pytest.approx(rate, rel=0.01)
        assert item["turn_radius_m"]["10_to_20"] == pytest.approx(radius, rel=0.015)
        assert 1.15 < item["turn_radius_m"]["settled"] / item["turn_radius_m"]["5_to_10"] < 1.3
    first = [results["fig10_11"][name]["first_yaw_acceleration_rad_s2"] for name in ("phase", "amplitude")]
    assert first[0] > 1.5 * first[1]


@pytest.mark.full
def test_choices(results: dict[str, Any]) -> None:
    change = {row["reading"]: row["change_percent"] for row in results["readings"]}
    assert change["support without roll (9)"]["thrust_40_n"] == pytest.approx(-65.0, abs=1.0)
    assert change["body drag by components"]["speed_m_s"] == pytest.approx(5.0, abs=0.5)
    assert change["body moment by the norm"]["turn_rate_deg_s"] == pytest.approx(-12.0, abs=0.5)
    assert not any(row["failed"] for row in results["readings"])
    paper = results["paper_preset"]
    assert abs(paper["turn_rate_deg_s"]) > 100.0
    assert paper["turn_radius_m"] < 0.1
    assert "rk4 needs dt <=" in results["refusals"]["RK4 at 10 ms"]
    assert all("spectral radius" in parts for name, parts in results["refusals"].items() if "sequential" in name)


@pytest.mark.full
def test_errors_fall_with_their_order(results: dict[str, Any]) -> None:
    coupling, balance = results["coupling"], results["power_balance"]
    assert coupling["sequential"]["order"] == pytest.approx(1.0, abs=0.2)
    assert coupling["monolithic"]["order"] == pytest.approx(2.0, abs=0.2)
    assert coupling["iterated"]["order"] is None
    assert max(coupling["iterated"]["position_m"]) < 1e-9
    assert balance["order"] > 1.4
    assert balance["relative_error"][-1] < 1e-4


@pytest.mark.full
def test_tables_files_and_json(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(qu2024, "compute", lambda settings: results)
    assert qu2024.main(tmp_path, as_json=True, settings=SHORT) == 0
    data = json.loads(capsys.readouterr().out, parse_constant=lambda word: 1 / 0)
    assert data["paper"] == "qu2024"
    assert data["fig7"]["mean_thrust_n"] == pytest.approx(3.36, abs=0.03)
    assert len(data["fig10_11"]["phase"]["resultant_wrench"]) == len(data["fig10_11"]["phase"]["time_s"])
    assert {row["verdict"] for row in data["rows"]} >= {"agrees", "picture only"}
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert [name[:5] for name in pictures] == ["coupl", "fig07", "fig08", "fig09", "fig10", "fig11", "readi"]
    assert json.loads((tmp_path / "qu2024.json").read_text()) == data
    assert (tmp_path / "qu2024.md").read_text().count("\n## ") == 3

    assert qu2024.main(None, as_json=False, settings=SHORT) == 0
    text = capsys.readouterr().out
    for parts in ("picture only", "27.6, 30.3", "--preset paper", "sequential against monolithic"):
        assert parts in text


@pytest.mark.full
def test_what_differs_is_what_cannot_run(results: dict[str, Any]) -> None:
    assert [row.name for row in rows(results) if row.verdict == DIFFERS] == [
        "longest step of RK4 with table 1's damping"
    ]


@pytest.mark.full
def test_the_page_states_what_is_printed(results: dict[str, Any]) -> None:
    """What the shortened command computes as the whole one does."""
    printed = page(qu2024.tables(results, rows(results)))
    whole = [claim.name for claim in CLAIMS if claim.key in WHOLE]
    whole += [row.name for row in rows(results) if row.name.startswith(("turn by", "settled speed"))]
    assert len(whole) == len(WHOLE) + 8
    assert disagreements("manta.md", "claims", printed, whole) == []
    assert disagreements("manta.md", "readings", printed, SHORT.readings or ()) == []


WHOLE = ("amplitudes", "peak_thrust", "speed", "power", "cost_of_transport", "yaw", "first_yaw", "spread", "rk4_step")


def test_an_unknown_paper(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "reproduce", "qu2025")
    assert result.status == 2
    assert "qu2024" in result.err
