"""rtmms bench bridges: short runs tell what they should; how long anything took is not judged here."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

from rtmms.errors import ModelError, UnknownNameError
from rtmms_benchmarks import autopilot_peers, bridge_fates, bridge_peers, bridge_stampers, bridges

pytestmark = pytest.mark.full


def test_there_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    status = bridges.main(True, seconds=1.0, what="udp, packed;template", rates="50", blocks=0)
    result = json.loads(capsys.readouterr().out)
    assert status == 0
    assert result["fates"] is None
    for name in ("udp, packed", "template"):
        found = result["bridges"][name]["50"]
        assert found["states"] == 50
        assert found["lost"] < 50
        assert 0 < found["out_us"]["p50"] <= found["out_us"]["p99"] <= found["out_us"]["max"]
        assert found["there_and_back_us"]["p50"] >= found["out_us"]["p50"] * 0.5
    bridges.tell(result)
    assert "udp, packed" in capsys.readouterr().out


def test_a_can_bus_that_carries_clocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert bridges.main(True, seconds=1.0, what="can, multicast", rates="50", blocks=0) == 0
    found = json.loads(capsys.readouterr().out)["bridges"]["can, multicast"]
    if "skipped" in found:
        pytest.skip(found["skipped"]["skipped"])
    assert found["50"]["states"] == 50
    assert found["50"]["lost"] < 50
    assert 0 < found["50"]["out_us"]["p50"] <= found["50"]["out_us"]["max"] < 60e6


@contextmanager
def broken(rate: float):  # type: ignore[no-untyped-def]
    yield "template:nonsense=1"


@contextmanager
def absent(rate: float):  # type: ignore[no-untyped-def]
    raise bridge_peers.NotHere("that program")
    yield ""


def test_one_that_does_not_come_to_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bridges, "ROWS", {"broken": broken, "absent": absent})
    assert bridges.main(True, seconds=0.1, rates="50", blocks=0) == 1
    found = json.loads(capsys.readouterr().out)["bridges"]
    assert "unknown parameter of bridge 'template' 'nonsense'" in found["broken"]["50"]["failed"]
    assert found["absent"] == {"skipped": {"skipped": "no that program here"}}


def test_rows_whose_protocol_has_no_room_for_a_clock(capsys: pytest.CaptureFixture[str]) -> None:
    names = list(autopilot_peers.ROWS)
    assert bridges.main(True, seconds=1.0, what=";".join(names), rates="50", blocks=0) == 0
    result = json.loads(capsys.readouterr().out)["bridges"]
    for name in names:
        found = result[name]["50"]
        assert found["states"] == 50
        assert found["lost"] < 50
        assert 0 < found["out_us"]["p50"] <= found["out_us"]["max"] < 60e6


def test_a_clock_in_four_whole_numbers() -> None:
    plant = bridge_stampers.Swimmer(0.01)
    assert plant.read(np.zeros(4)) == (0.0, 0.0)
    made = [plant.observe() and plant._made[-1] for _ in range(40000)]
    told = bridge_stampers.words(33000, 123456.789012)
    assert all(0 <= number < bridge_stampers.WORD for number in told)
    assert plant.read(np.array(told, float)) == (made[33000], pytest.approx(123456.789012, abs=1e-6))


def test_wrong_words() -> None:
    with pytest.raises(UnknownNameError, match="did you mean mqtt"):
        bridges.main(what="mqt")
    with pytest.raises(ModelError, match="expected numbers parted by commas, got 'quick'"):
        bridges.main(what="mqtt", rates="quick")


@pytest.mark.parametrize(
    ("fate", "states"), [("killed", None), ("stopped", True), ("driving, killed", None), ("driving, stopped", True)]
)
def test_a_bridge_that_goes(fate: str, states: bool | None) -> None:
    found = bridge_fates.beside(fate, 1.5)
    assert (found["ended"], found["steps"]) == ("duration", 1500)
    assert found["signal_s"] >= 0.5
    assert (found["bridge"] is None) == (states is None)
    if fate.startswith("driving"):
        unlisted = found["blame"]["unknown"]  # what came faster than it could be judged is among these
        assert found["overruns"] - unlisted <= found["bad"] <= found["overruns"]
        assert found["misses"] > 100, "what the bridge owes is missed; the run goes on"
    else:
        assert max(found["misses"], found["overruns"]) <= found["bad"] <= found["misses"] + found["overruns"]
    assert found["after_unexplained"] <= min(found["after"], found["unexplained"]) <= found["bad"]


def test_bad_steps_are_counted_by_when_and_why() -> None:
    bad = [
        {"step": 990, "miss": "peer_late", "overrun": None}, {"step": 1000, "miss": "machine", "overrun": "machine"},
        {"step": 1010, "miss": None, "overrun": "involuntary_switch"},
        {"step": 1100, "miss": "machine", "overrun": None},
    ]  # fmt: skip
    both = ("miss", "overrun")
    assert bridge_fates._counts(bad, [1.0], both) == {"bad": 4, "unexplained": 2, "after": 2, "after_unexplained": 1}
    assert bridge_fates._counts(bad, [], both)["after"] == 0
    assert bridge_fates._counts(bad, [1.0], ("overrun",)) == {
        "bad": 2, "unexplained": 1, "after": 2, "after_unexplained": 1,
    }  # fmt: skip
