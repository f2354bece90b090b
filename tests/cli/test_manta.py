"""The whole of it: the manta in the loop, driven by the gait in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import rtmms


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Once, here: the runs below are then warm."""
    import rtmms as package

    package.load("manta")


@pytest.mark.processes
def test_in_real_time_each_step_has_an_outcome_and_a_replay_gives_the_same_bits(tmp_path: Path) -> None:
    """On a machine so busy that most commands are late, too."""
    arguments = ("run", "manta", "--duration", "1.5", "--trace", "run.npz", "--json", "--quiet")
    report = rtmms(tmp_path, *arguments).report
    assert (report["mode"], report["ended"], report["steps"]) == ("realtime", "duration", 1500)
    assert [peer["name"] for peer in report["exchange"]["peers"]] == ["gait"]
    exchange = report["exchange"]
    assert exchange["commands_applied"] + exchange["misses"] + exchange["unclaimed"] == 1500
    assert exchange["commands_applied"] > 0
    result = rtmms(tmp_path, "replay", "run.npz", "--check", "--json")
    assert result.status == 0, result.err
    assert (result.report["steps"], result.report["final"]) == (1500, report["final"])


@pytest.mark.processes
def test_in_lockstep_it_swims_and_each_run_is_the_same(tmp_path: Path) -> None:
    arguments = ("run", "manta", "--mode", "lockstep", "--duration", "4", "--json", "--quiet")
    item, two = rtmms(tmp_path, *arguments).report, rtmms(tmp_path, *arguments).report
    assert item["exchange"]["commands_applied"] == 4000
    assert item["final"] == two["final"]
    assert item["final"]["position"][0] > 0.2
    assert item["summary"]["mean_speed_m_s"] > 0.1
    assert 0.0 < item["accuracy"]["path_error"] < 0.02
    assert {"mean_thrust_n", "mean_power_w", "cost_of_transport", "strouhal"} <= set(item["summary"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--set", "chain=3"), "did you mean chains"),
        (("--preset", "papr"), "did you mean paper"),
        (("--set", "body_mass_kg=-1"), "body_mass_kg"),
        (("--controller", "gait:amplitud_deg=3"), "did you mean amplitude_deg"),
    ],
)
def test_wrong_words(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    result = rtmms(tmp_path, "run", "manta", *arguments)
    assert result.status == 2
    assert text in result.err
    assert "Traceback" not in result.err
