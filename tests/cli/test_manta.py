"""The whole of it: the manta in the loop, driven by the gait in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import rtmms

pytest.importorskip("rtmms.robots.manta.face")


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Once, here: the runs below are then warm."""
    import rtmms as package

    package.load("manta")


def test_the_first_command_swims(tmp_path: Path) -> None:
    report = rtmms(tmp_path, "run", "manta", "--duration", "4", "--json", "--quiet").report
    assert (report["ended"], report["steps"]) == ("duration", 4000)
    assert [peer["name"] for peer in report["exchange"]["peers"]] == ["gait"]
    exchange = report["exchange"]
    assert exchange["commands_applied"] + exchange["misses"] + exchange["unclaimed"] == 4000
    assert report["final"]["position"][0] > 0.2
    assert report["summary"]["mean_speed_m_s"] > 0.1
    # taken again with the commands that were applied; on a busy machine they jump, and their work is less exact
    assert 0.0 < report["accuracy"]["path_error"] < 0.02
    assert {"mean_thrust_n", "mean_power_w", "cost_of_transport", "strouhal"} <= set(report["summary"])


def test_a_realtime_run_s_commands_give_the_same_bits_in_a_replay(tmp_path: Path) -> None:
    rtmms(tmp_path, "run", "manta", "--duration", "1.5", "--trace", "run.npz", "--quiet")
    said = rtmms(tmp_path, "replay", "run.npz", "--check", "--json")
    assert said.status == 0, said.err
    assert said.report["steps"] == 1500


def test_lockstep_gives_the_same_run_each_time(tmp_path: Path) -> None:
    words = ("run", "manta", "--mode", "lockstep", "--duration", "0.5", "--json", "--quiet")
    one, two = rtmms(tmp_path, *words).report, rtmms(tmp_path, *words).report
    assert one["exchange"]["commands_applied"] == 500
    assert one["final"] == two["final"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--set", "chain=3"), "did you mean chains"),
        (("--preset", "papr"), "did you mean paper"),
        (("--set", "body_mass_kg=-1"), "body_mass_kg"),
        (("--controller", "gait:amplitud_deg=3"), "did you mean amplitude_deg"),
    ],
)
def test_wrong_words(tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    said = rtmms(tmp_path, "run", "manta", *words)
    assert said.status == 2
    assert text in said.err
    assert "Traceback" not in said.err
