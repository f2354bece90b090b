"""Faults of sensors and actuators: what each does, from when to when, and what cannot be one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.sensing import Sensed
from rtmms.sensing.data_sheets import Depth, Encoders
from rtmms.sensing.faults import Faulty
from tests.sensing.mover import Mover


def sinking(time: float) -> tuple[Any, Any, Any, Any]:
    from scipy.spatial.transform import Rotation

    return np.array([0.0, 0.0, -time]), Rotation.identity(), np.zeros(3), np.zeros(3)


def depths(fault: str, steps: int = 400) -> np.ndarray:
    """With the fault from step 100 to 300."""
    plant = Sensed(Mover(sinking), {"depth": Depth(rate_hz=1000.0)})
    result = []
    for k in range(steps):
        if k in (100, 300):
            plant.set(**{"fault.depth": fault if k == 100 else ""})
        plant.step(np.zeros(1))
        result.append(float(plant.observe()["depth.value"]))
    return np.array(result)


TRUE = np.arange(1, 401) * 1e-3


def test_faults_of_a_sensor() -> None:
    for fault in ("silent", "stuck", "bias=0.5", "spikes=2.0"):
        result = depths(fault)
        np.testing.assert_allclose(result[:100], TRUE[:100], atol=1e-12)
        np.testing.assert_allclose(result[300:], TRUE[300:], atol=1e-12)
        wrong = result[100:300] - TRUE[100:300]
        if fault in ("silent", "stuck"):
            np.testing.assert_allclose(result[100:300], TRUE[99])
        elif fault == "bias=0.5":
            np.testing.assert_allclose(wrong, 0.5, atol=1e-12)
        else:
            hit = np.abs(wrong) > 1e-9
            np.testing.assert_allclose(np.abs(wrong[hit]), 2.0)
            assert 2 <= hit.sum() <= 25
            assert {1.0, -1.0} == set(np.sign(wrong[hit]))


def commands(fault: str, wanted: np.ndarray) -> np.ndarray:
    """What the plant got, with the fault from step 100 to 300."""
    plant, got = Faulty(Mover()), []
    for k, value in enumerate(wanted):
        if k in (100, 300):
            plant.set(**{"fault.rod": fault if k == 100 else ""})
        plant.step(np.array([value]))
        got.append(plant.sound.command)  # type: ignore[attr-defined]
    return np.array(got)


def test_faults_of_an_actuator() -> None:
    wanted = np.linspace(0.0, 0.4, 401)
    stuck = commands("stuck", wanted)
    np.testing.assert_array_equal(stuck[100:300], wanted[99])
    np.testing.assert_array_equal(np.delete(stuck, np.s_[100:300]), np.delete(wanted, np.s_[100:300]))
    np.testing.assert_array_equal(commands("stuck=0.7", wanted)[100:300], 0.7)
    slow = commands("slow=0.5", np.where(np.arange(401) < 150, 0.0, 1.0))
    np.testing.assert_allclose(np.diff(slow[149:300]), 5e-4)
    assert slow[300] == 1.0


def test_play_dead_band_and_delay_of_an_actuator() -> None:
    there_and_back = np.concatenate([np.linspace(0.0, 0.4, 200), np.linspace(0.4, 0.0, 201)])
    play = commands("backlash=0.05", there_and_back)[100:300]
    wanted = there_and_back[100:300]
    np.testing.assert_allclose(play[30:99], wanted[30:99] - 0.025, atol=1e-12)
    np.testing.assert_allclose(play[150:], wanted[150:] + 0.025, atol=1e-12)
    assert np.abs(play - wanted).max() <= 0.025 + 1e-12
    band = commands("dead_band=0.03", there_and_back)[100:300]
    assert np.abs(band - wanted).max() <= 0.03 + 1e-12
    assert len(set(band)) < 20, "it stays, and then jumps"
    late = commands("delay=0.02", there_and_back)[100:300]
    np.testing.assert_array_equal(late, there_and_back[80:280])


def test_a_free_rod_goes_where_its_load_takes_it() -> None:
    class Loaded(Mover):
        """Of one rod, that must hold 0.5 N m."""

        def __init__(self) -> None:
            super().__init__()
            self.outputs = (*self.outputs, rtmms.Channel("rod_torque", "N m", (1,)))

        def observe(self) -> dict[str, Any]:
            return super().observe() | {"rod_torque": np.array([0.5])}

    plant = Faulty(Loaded())
    plant.set(**{"fault.rod": "free=4"})
    for _ in range(100):
        plant.step(np.array([0.3]))
    assert plant.sound.command == pytest.approx(-0.1 * 0.5 / 4.0)  # type: ignore[attr-defined]


def test_snapshots_hold_faults_and_resets_end_them() -> None:
    plant = Sensed(Faulty(Mover(sinking)), {"depth": Depth(rate_hz=1000.0), "encoder": Encoders(rate_hz=1000.0)})
    assert isinstance(plant, rtmms.Plant)
    plant.step(np.array([0.3]))
    plant.set(**{"fault.rod": "stuck", "fault.depth": "bias=1.0"})
    blob = plant.snapshot()

    def on() -> tuple[float, float]:
        for _ in range(3):
            plant.step(np.array([0.9]))
        outputs = plant.observe()
        return float(outputs["encoder.angle"][1]), float(outputs["depth.value"])

    first = on()
    assert first == pytest.approx((0.3, 1.004))
    plant.set(**{"fault.rod": "", "fault.depth": ""})
    assert on()[0] == 0.9
    plant.restore(blob)
    assert on() == first
    plant.reset()
    assert on() == pytest.approx((0.9, 0.003))
    assert plant.settable == ("fault.depth", "fault.encoder", "fault.rod")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"fault.depth": "silnt"}, "unknown fault of depth 'silnt'; did you mean silent"),
        ({"fault.depth": "bias"}, "fault.depth: bias: expected bias=NUMBER"),
        ({"fault.depth": "bias=x"}, "fault.depth: expected bias=NUMBER, got 'bias=x'"),
        ({"fault.depth": "silent=3"}, "fault.depth: expected silent, got 'silent=3'"),
        ({"fault.depth": 3.0}, "fault.depth: expected a word"),
        ({"fault.dpth": "silent"}, "unknown actuator or sensor 'dpth'"),
        ({"fault.rod": "slow=-1"}, "fault.rod: slow: expected a rate >= 0, got -1"),
        ({"fault.rod": "backlash=-0.1"}, "fault.rod: backlash: expected a width >= 0, got -0.1"),
        ({"fault.rod": "delay=9"}, "fault.rod: delay: expected < 0.512 s, got 9"),
        ({"fault.rod": "free=0"}, "fault.rod: free: expected a resistance > 0, got 0"),
        ({"fault.rod": "free"}, "fault.rod: free: expected a plant with the output"),
        ({"gain": 3.0}, "this plant has no parameter 'gain' that can change while it runs"),
    ],
)
def test_what_is_no_fault(arguments: dict[str, Any], text: str) -> None:
    plant = Sensed(Faulty(Mover()), {"depth": Depth(rate_hz=1000.0)})
    before = plant.snapshot()
    with pytest.raises(ModelError) as fault:
        plant.set(**arguments)
    assert text in str(fault.value)
    assert plant.snapshot() == before
