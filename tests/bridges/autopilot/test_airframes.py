"""What the bridges of autopilots make of a plant by themselves: channels of an airframe, and errors of a receiver."""

from __future__ import annotations

from math import exp, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Channel
from rtmms.robots.quadrotor import ROTORS
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms_bridges.ardupilot import ArduPilot
from rtmms_bridges.autopilot.airframes import AIRFRAMES
from rtmms_bridges.autopilot.hil import CORRELATION_S, GaussMarkovError
from rtmms_bridges.px4 import Px4
from tests.bridges.harness import ROOT


def info_of(plant: Any, airframe: str) -> PlantInfo:
    return PlantInfo("toy", 1e-3, "lockstep", None, None, plant.actuators, plant.outputs, airframe=airframe)


@pytest.fixture(scope="module")
def quadrotor() -> Any:
    return rtmms.load("quadrotor", dt=1e-3)


@pytest.mark.parametrize(("bridge", "stop", "full"), [(ArduPilot(), 1000.0, 2000.0), (Px4(), 0.0, 1.0)])
def test_the_quadrotor_needs_no_table_of_channels(quadrotor: Any, bridge: Any, stop: float, full: float) -> None:
    """All motors over their whole range, and each where the autopilot's mixer takes it to be."""
    built = bridge._channel_map(info_of(quadrotor, describe_plant(quadrotor).airframe))
    channels = [entry.channel for entry in built.entries]
    assert channels == ["1", "2", "3", "4"]
    assert set(built.to_actuators(dict.fromkeys(channels, stop)).values()) == {0.0}
    assert set(built.to_actuators(dict.fromkeys(channels, full)).values()) == {800.0}


# front, right, and which way a motor turns (1: counter-clockwise from above), as each mixer has its motors 1 to 4
MIXERS = {
    "ardupilot": ((0, 1, 1), (0, -1, 1), (1, 0, -1), (-1, 0, -1)),
    "px4": ((1, 0, -1), (0, -1, 1), (-1, 0, -1), (0, 1, 1)),
}


@pytest.mark.parametrize("autopilot", sorted(MIXERS))
@pytest.mark.parametrize("motor", [0, 1, 2, 3])
def test_each_motor_turns_the_quadrotor_as_the_mixer_expects(quadrotor: Any, autopilot: Any, motor: int) -> None:
    """More of one motor: away from its side, and against the way it turns."""
    names = [channel.name for channel in quadrotor.actuators]
    hover = quadrotor.parameters.hover_rad_s
    command = np.full(4, hover)
    command[names.index(AIRFRAMES["quad_plus"][autopilot][motor])] = 1.05 * hover
    quadrotor.reset()
    for _ in range(20):
        quadrotor.step(command)
    roll, pitch, yaw = quadrotor.observe()["angular_velocity"] * (
        1.0,
        -1.0,
        -1.0,
    )  # FRD
    front, right, turn = MIXERS[autopilot][motor]
    assert np.sign([roll * (abs(roll) > 1e-3), pitch * (abs(pitch) > 1e-3)]).tolist() == [-right, front]
    assert np.sign(yaw) == turn


def test_the_parameter_files_are_of_the_quadrotor(quadrotor: Any) -> None:
    """Copter's and PX4's: places and moments of the rotors, in the bridge's order, and the thrust at hover."""
    p = quadrotor.parameters
    hover = (p.hover_rad_s / p.max_speed_rad_s) ** 2
    copter = dict(line.split() for line in lines_of("ardupilot_copter.parm"))
    assert (copter["FRAME_CLASS"], copter["FRAME_TYPE"], copter["MOT_THST_EXPO"]) == ("1", "0", "1")
    assert float(copter["MOT_THST_HOVER"]) == pytest.approx(hover, abs=1e-3)
    px4 = px4_parameters()
    assert px4["MPC_THR_HOVER"] == pytest.approx(hover, abs=1e-3)
    assert px4["CA_ROTOR_COUNT"] == len(ROTORS)
    for k, actuator in enumerate(AIRFRAMES["quad_plus"]["px4"]):
        x, y, turn = ROTORS[actuator.removesuffix(".speed")]
        place = px4[f"CA_ROTOR{k}_PX"], px4[f"CA_ROTOR{k}_PY"]
        assert place == pytest.approx((x * p.arm_m, -y * p.arm_m), abs=2e-4)
        assert px4[f"CA_ROTOR{k}_KM"] == pytest.approx(turn * p.drag_n_m_s2 / p.thrust_n_s2)
        assert px4[f"PWM_MAIN_FUNC{k + 1}"] == 101 + k


def test_px4s_parameters_hold_against_its_airframe() -> None:
    """PX4 passes over a PX4_PARAM_ that equals its own default: then the default of airframe 10016 counts."""
    current = {"CA_ROTOR_COUNT": 0.0, "THR_MDL_FAC": 0.0, "MPC_THR_HOVER": 0.5} | {
        "MC_YAW_P": 2.8, "MC_YAWRATE_P": 0.2, "MC_YAWRATE_I": 0.1, "MC_YAW_TQ_CUTOFF": 2.0,
    }  # fmt: skip
    for k in range(4):
        current |= {
            f"CA_ROTOR{k}_PX": 0.0,
            f"CA_ROTOR{k}_PY": 0.0,
            f"CA_ROTOR{k}_KM": 0.05,
            f"PWM_MAIN_FUNC{k + 1}": 0.0,
        }
    airframe = {"CA_AIRFRAME": 0.0}  # as the file has it
    px4 = px4_parameters()
    assert set(px4) == set(current) | set(airframe)
    assert [name for name, default in current.items() if abs(px4[name] - default) < 1e-6] == []


YAW_GAINS = {
    "ardupilot": ("ATC_ANG_YAW_P", "ATC_RAT_YAW_P", "ATC_RAT_YAW_I", "ATC_RAT_YAW_FLTE"),
    "px4": ("MC_YAW_P", "MC_YAWRATE_P", "MC_YAWRATE_I", "MC_YAW_TQ_CUTOFF"),
}
OTHER_GAINS = {"ardupilot": (4.5, 0.3, 0.02, 2.5), "px4": (2.8, 0.2, 0.1, 2.0)}
"""Those of sim_vehicle.py and of PX4, with which the genuine programs swung."""
YAW_SHARES = {"ardupilot": 0.5, "px4": 1.0}
"""What each motor of a quadrotor gets of the yaw command, as a part of the largest thrust."""
FRAMES_HZ = {"ardupilot": 400.0, "px4": 250.0}


@pytest.mark.parametrize("autopilot", sorted(YAW_GAINS))
def test_the_yaw_settles_with_the_parameter_file(quadrotor: Any, autopilot: str) -> None:
    """Phase margin of the yaw loop with the motors' lag."""
    p = quadrotor.parameters
    unit = 4 * YAW_SHARES[autopilot] * p.drag_n_m_s2 * p.max_speed_rad_s**2 / p.izz_kg_m2
    w = np.geomspace(0.1, 100.0, 20_001)
    s = 1j * w

    def margin_deg(angle_p: float, rate_p: float, rate_i: float, filter_hz: float) -> float:
        lag = (1.0 + p.motor_s * s) * np.exp(s / FRAMES_HZ[autopilot])
        if filter_hz:
            lag *= 1.0 + s / (2.0 * np.pi * filter_hz)
        loop = unit * (rate_p + rate_i / s) * (s + angle_p) / s**2 / lag
        crossing = np.flatnonzero(np.abs(loop) >= 1.0)[-1]
        return float(np.degrees(np.unwrap(np.angle(loop))[crossing])) % 360.0 - 180.0

    copter = {name: float(value) for name, value in map(str.split, lines_of("ardupilot_copter.parm"))}
    values = {"ardupilot": copter, "px4": px4_parameters()}[autopilot]
    assert margin_deg(*(values[name] for name in YAW_GAINS[autopilot])) > 40.0
    assert abs(margin_deg(*OTHER_GAINS[autopilot])) < 10.0


def px4_parameters() -> dict[str, float]:
    return {name: float(value) for _, _, name, value, _ in map(str.split, lines_of("px4_quadrotor.params"))}


def lines_of(name: str) -> list[str]:
    text = (ROOT / "bridges" / "examples" / name).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_an_airframe_that_is_not_known_is_a_list_of_actuators(quadrotor: Any) -> None:
    for airframe in ("", "of tomorrow"):
        built = ArduPilot()._channel_map(info_of(quadrotor, airframe))
        assert built.actuators == tuple(channel.name for channel in quadrotor.actuators)


@pytest.mark.parametrize(("lower", "control", "value"), [
    (0.0, 0.0, 0.0), (0.0, 1.0, 800.0), (0.0, 0.25, 200.0), (-800.0, 0.0, 0.0), (-800.0, -1.0, -800.0),
    (-800.0, 0.5, 400.0), (-200.0, -1.0, -200.0), (-200.0, 1.0, 800.0),
])  # fmt: skip
def test_limits_from_0_are_of_0_to_1_and_signed_ones_of_both(lower: float, control: float, value: float) -> None:
    info = PlantInfo("toy", 1e-3, "lockstep", None, None, (Channel("a", "rad/s", lower=lower, upper=800.0),), ())
    assert Px4()._channel_map(info).to_actuators({"1": control}) == pytest.approx({"a": value})


def test_a_receivers_error_lasts_for_seconds() -> None:
    """Its spread is the same at any time, and how fast it fades is that of a Gauss-Markov process."""
    deviation, gap_s, runs = 0.4, 20.0, 4000
    random = Random(7)
    wanders = [GaussMarkovError(deviation, random) for _ in range(runs)]
    first = np.array([wander(1_000_000) for wander in wanders])
    second = np.array([wander(1_000_000 + round(gap_s * 1e6)) for wander in wanders])
    spread = 3.0 * deviation / sqrt(2.0 * 3 * runs)  # three standard deviations of a standard deviation
    assert first.std() == pytest.approx(deviation, abs=spread)
    assert second.std() == pytest.approx(deviation, abs=spread)
    share = float(np.mean(first * second)) / deviation**2
    assert share == pytest.approx(exp(-gap_s / CORRELATION_S), abs=3.0 / sqrt(3 * runs))
    assert GaussMarkovError(0.0, random)(5) == (0.0, 0.0, 0.0)
