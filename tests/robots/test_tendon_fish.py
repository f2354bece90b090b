"""tendon_fish: masses, cables, symmetry, steps; the recordings, harmonics, and the prediction of their speeds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.parameters import parameter_values
from rtmms.model.floor_rows import MARKER_WIDTH
from rtmms.robots import tendon_fish
from rtmms.studies import fishsim, fishsim_laws


def test_the_head_has_the_mass_of_the_authors_model() -> None:
    """1.3407 kg of solids in the head."""
    solids = tendon_fish._head(tendon_fish.TendonFish()).solids
    assert sum(solid.mass_properties()[0] for solid in solids) == pytest.approx(1.3407, rel=0.01)


def test_it_has_one_actuator_and_the_markers_of_the_recordings() -> None:
    plant = rtmms.load("tendon_fish")
    assert [channel.name for channel in plant.actuators] == ["motor.speed"]
    assert [name for name, _, _ in plant.model.markers] == list(fishsim.MARKERS)
    assert all(row.shape == (MARKER_WIDTH,) for _, _, row in plant.model.markers)
    assert plant.observe()["position"][2] == -2.0


def test_the_cables_of_the_authors_are_just_taut() -> None:
    """Their rest length, 0.280897 m, is the length with all joints at 0."""
    plant: Any = rtmms.load("tendon_fish", slack_m=0.0)
    np.testing.assert_allclose(plant.observe()["tendon_length"], 0.280897, atol=2e-6)


def test_it_stays_in_its_plane_and_swims_ahead() -> None:
    plant: Any = rtmms.load("tendon_fish")
    for _ in range(round(4.0 / plant.dt)):
        plant.step(np.array([2.0 * np.pi]))
    outputs = plant.observe()
    assert outputs["position"][2] == pytest.approx(-2.0, abs=1e-9)
    assert abs(outputs["quaternion"][1]) + abs(outputs["quaternion"][2]) < 1e-9
    assert outputs["position"][0] > 0.2
    assert outputs["tendon_tension"].min() >= 0.0


def test_the_speed_of_a_recording_is_its_slope() -> None:
    """The speeds of the page are slopes of x in the head's frame over the whole recording, some 5 % higher."""
    for name in fishsim.FITTED:
        result = fishsim.compare_swim(*fishsim.read_recording(name), fishsim.BEATS_HZ[name])
        assert result.speed == pytest.approx(fishsim.SPEED_M_S[name], rel=0.06)


def test_the_amplitude_of_a_sum_of_waves_is_that_of_the_first() -> None:
    t = np.arange(300) / 60.0
    wave = 0.3 + 0.1 * t + np.real((2.0 - 1.0j) * np.exp(2j * np.pi * 0.7 * t)) + 0.4 * np.cos(2.8 * np.pi * t)
    assert fishsim.amplitude(t, wave, 0.7) == pytest.approx(2.0 - 1.0j)


def test_a_motion_that_is_known_has_its_numbers() -> None:
    """A head that yaws while it swims along a slanted course, with a tail that waves behind it."""
    beat, t = 0.9, np.arange(400) / 60.0
    yaw = np.radians(5.0) * np.cos(2.0 * np.pi * beat * t)
    course = np.array([np.cos(2.0), np.sin(2.0)])
    along = np.stack([-np.cos(2.0 + yaw), -np.sin(2.0 + yaw)], axis=1)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    head = 0.12 * t[:, None] * course
    rows = [head, head + 0.142 * along]
    for k in range(7):
        wave = 0.01 * (k + 1) * np.cos(2.0 * np.pi * beat * t - 0.2 * k)
        rows.append(head + (0.3 + 0.03 * k) * along + wave[:, None] * across)
    result = fishsim.compare_swim(t, np.stack(rows, axis=1), beat)
    assert result.speed == pytest.approx(0.12, rel=0.01)
    np.testing.assert_allclose(np.abs(result.tail), 0.01 * np.arange(1, 8), rtol=1e-3)
    np.testing.assert_allclose(np.angle(result.tail), -0.2 * (np.arange(7) - 6), atol=1e-3)
    assert abs(result.yaw) == pytest.approx(5.0, rel=1e-3)


def test_the_preset_predicts_the_recordings() -> None:
    """The two of the fit within 6 mm/s; their tails within 7 mm and the head's yaw within 0.3 deg."""
    plant = rtmms.load("tendon_fish")
    for name in fishsim.FITTED:
        model, measured = fishsim.swim(plant, fishsim.BEATS_HZ[name]), fishsim.recorded_swim(name)
        assert model.speed == pytest.approx(measured.speed, abs=6e-3)
        assert np.sqrt(np.mean(np.abs(model.tail - measured.tail) ** 2)) < 7e-3
        assert abs(model.yaw) == pytest.approx(abs(measured.yaw), abs=0.3)


@pytest.mark.full
def test_half_the_step_gives_the_same_speed() -> None:
    item, other = (fishsim.swim(rtmms.load("tendon_fish", dt=1.0 / rate), 0.938).speed for rate in (360, 720))
    assert item == pytest.approx(other, rel=1e-3)


@pytest.mark.full
def test_reproduce_prints_what_the_contract_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert fishsim.main(as_json=True) == 0
    content = json.loads(capsys.readouterr().out)
    assert list(content["recordings"]) == list(fishsim.BEATS_HZ)
    row = content["recordings"]["f0_50"]
    assert (row["measured_m_s"], row["fitted"]) == (0.0229, False)
    off = [abs(item["model_m_s"] - item["measured_m_s"]) for item in content["recordings"].values()]
    others = [
        abs(item["model_m_s"] - item["measured_m_s"]) for item in content["recordings"].values() if not item["fitted"]
    ]
    assert content["mean_abs_error_m_s"]["all"] == pytest.approx(np.mean(off))
    assert content["mean_abs_error_m_s"]["not_fitted"] == pytest.approx(np.mean(others))
    assert content["mean_abs_error_m_s"]["all"] < 0.0102
    assert content["fit_s"] > 0.0
    preset = parameter_values(rtmms.load("tendon_fish"))
    assert {name: preset[name] for name in content["parameters"]} == pytest.approx(content["parameters"], rel=5e-3)


@pytest.mark.parametrize("arguments", [{"head": "rolling"}, {"fin_n_m": 0.5}, {"skin_area_m2": 10.0, "wake": 0.1}])
def test_other_fish_swim_too(arguments: dict[str, Any]) -> None:
    plant: Any = rtmms.load("tendon_fish", **arguments)
    for _ in range(round(2.0 / plant.dt)):
        plant.step(np.array([2.0 * np.pi * 0.8]))
    assert plant.observe()["position"][0] > 0.04


def test_the_wave_drag_of_a_strut_is_michells_integral() -> None:
    """By quadrature over the hull and over the direction of the waves, and the scaling of Froude."""
    x, weight_x = np.polynomial.legendre.leggauss(200)
    z, weight_z = np.polynomial.legendre.leggauss(60)
    length, beam, draught = 0.12, 0.03, 0.06
    x, weight_x = 0.5 * length * x, 0.5 * length * weight_x
    z, weight_z = 0.5 * draught * (z + 1.0), 0.5 * draught * weight_z
    slope = -4.0 * beam * x / length**2
    for speed in (0.4, 0.6, 1.5):
        k = 9.81 / speed**2
        theta = np.linspace(0.0, 1.54, 20_001)
        secant = 1.0 / np.cos(theta)
        along = np.exp(1j * k * np.outer(secant, x)) @ (weight_x * slope)
        down = np.exp(-k * np.outer(secant**2, z)) @ weight_z
        waves = np.trapezoid(np.abs(along * down) ** 2 * secant**3, theta)
        expected = 4.0 * 1000.0 * 9.81**2 / (np.pi * speed**2) * waves
        result = fishsim_laws.michell_wave_drag(speed, length, beam, draught)
        assert result == pytest.approx(expected, rel=1e-3)
        other = fishsim_laws.michell_wave_drag(np.sqrt(7.0) * speed, 7.0 * length, 7.0 * beam, 7.0 * draught)
        assert other == pytest.approx(7.0**3 * result, rel=1e-9)
