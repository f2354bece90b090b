"""rtmms bench bridges: short runs report what they should; how long anything took is not judged here."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms_benchmarks import bridge_peers, bridge_plants, bridges

pytestmark = pytest.mark.full


def test_there_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    status = bridges.main(True, seconds=1.0, what="udp, packed;template", rates="50")
    result = json.loads(capsys.readouterr().out)
    assert status == 0
    for name in ("udp, packed", "template"):
        results = result["bridges"][name]["50"]
        assert results["states"] == 50
        assert results["lost"] < 50
        assert 0 < results["out_us"]["p50"] <= results["out_us"]["p99"] <= results["out_us"]["max"]
        assert 0 < results["there_and_back_us"]["p50"] <= results["there_and_back_us"]["max"]
    print(bridges.text(result))
    assert "udp, packed" in capsys.readouterr().out


def test_a_can_bus_that_carries_clocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert bridges.main(True, seconds=1.0, what="can, multicast", rates="50") == 0
    result = json.loads(capsys.readouterr().out)["bridges"]["can, multicast"]
    if "skipped" in result:
        pytest.skip(result["skipped"]["skipped"])
    assert result["50"]["states"] == 50
    assert result["50"]["lost"] < 50
    assert 0 < result["50"]["out_us"]["p50"] <= result["50"]["out_us"]["max"] < 60e6


@contextmanager
def broken(rate: float):  # type: ignore[no-untyped-def]
    yield "template:nonsense=1"


@contextmanager
def absent(rate: float):  # type: ignore[no-untyped-def]
    raise bridge_peers.NotHere("that program")
    yield ""


def test_one_that_does_not_come_to_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bridges, "ROWS", {"broken": broken, "absent": absent})
    assert bridges.main(True, seconds=0.1, rates="50") == 1
    result = json.loads(capsys.readouterr().out)["bridges"]
    assert "unknown parameter of bridge 'template' 'nonsense'" in result["broken"]["50"]["failed"]
    assert result["absent"] == {"skipped": {"skipped": "no that program here"}}


def test_rows_whose_protocol_has_no_room_for_a_clock(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["ardupilot", "px4", "mavlink", "serial, 3 MBd"]
    assert bridges.main(True, seconds=1.0, what=";".join(names), rates="50") == 0
    result = json.loads(capsys.readouterr().out)["bridges"]
    for name in names:
        results = result[name]["50"]
        assert results["states"] == 50
        assert results["lost"] < 50
        assert 0 < results["out_us"]["p50"] <= results["out_us"]["max"] < 60e6


@pytest.mark.parametrize("behind", [0, 1, 5, bridge_plants.HEIGHTS - 1])
def test_an_answer_is_to_the_newest_state_of_its_height(behind: int) -> None:
    """Whatever an autopilot's time stamps leave out: a pause at the start shifted them, and all delays with them."""
    plant = bridge_plants.Swimmer(0.01)
    assert plant.read(np.zeros(4)) == (0.0, 0.0)
    heights = [float(plant.observe()["position"][2]) for _ in range(40000)]
    for noise_m in (-3.0, 0.0, 3.0):
        message = bridge_plants.encode_answer(
            bridge_plants.height_number(heights[-1 - behind] + noise_m), 123456.789012
        )
        assert all(0 <= number < bridge_plants.WORD for number in message)
        result = plant.read(np.array(message, float))
        assert result == (plant._state_times[-1 - behind], pytest.approx(123456.789012, abs=1e-6))


def test_wrong_words() -> None:
    with pytest.raises(UnknownNameError, match="did you mean mqtt"):
        bridges.main(what="mqt")
    with pytest.raises(ModelError, match="expected numbers separated by commas, got 'quick'"):
        bridges.main(what="mqtt", rates="quick")


@pytest.mark.parametrize("name", ["foxglove", "dds", "zenoh", "lcm"])
def test_there_and_back_by_a_library(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = bridges.main(True, seconds=1.0, what=name, rates="50")
    result = json.loads(capsys.readouterr().out)["bridges"][name]
    if "skipped" in result:
        pytest.skip(result["skipped"]["skipped"])
    assert status == 0
    assert result["50"]["states"] == 50
    assert result["50"]["lost"] < 50
    assert result["50"]["out_us"]["p50"] > 0
