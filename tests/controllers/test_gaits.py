"""Gait, template and heading on states as a plant would send them: angles, signs, soft starts, limits."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import asin, atan2, cos, degrees, pi, radians, sin, tanh
from typing import Any

import pytest

import rtmms
from rtmms.base.attitude import wrap_angle
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.gait import Gait
from rtmms_controllers.heading import Heading, yaw
from rtmms_controllers.rods import SoftStart
from rtmms_controllers.template import Template

RODS = ("left.front", "left.back", "right.front", "right.back")
MANTA = PlantInfo(
    robot="manta", dt=1e-3, mode="lockstep", period_s=None, deadline_s=None,
    actuators=tuple(rtmms.Channel(name, "rad", lower=-1.2, upper=1.2) for name in RODS),
    outputs=(rtmms.Channel("quaternion", "", (4,)), rtmms.Channel("angular_velocity", "rad/s", (3,))),
)  # fmt: skip


def state(time: float, **outputs: Any) -> State:
    return State({"step": round(time * 1e3), "timestamp": time, "outputs": outputs}, MANTA)


def test_the_rods_are_sines_with_the_front_one_ahead() -> None:
    gait = Gait(amplitude_deg=30.0, frequency_hz=0.5, phase_deg=20.0, ramp_s=0.0)
    gait.start(MANTA)
    for time in (0.0, 0.3, 1.7):
        command = gait.update(state(time))
        front = asin(0.185 / 0.215 * sin(radians(30.0))) * sin(pi * time + radians(20.0))
        assert command["left.front"] == command["right.front"] == pytest.approx(front, abs=1e-15)
        assert command["left.back"] == command["right.back"] == pytest.approx(radians(30) * sin(pi * time), abs=1e-15)
    assert set(gait.update(state(2.0))) == set(RODS)


def test_both_rods_reach_the_same_height_of_the_plants_own_lengths() -> None:
    gait = Gait(phase_deg=0.0, frequency_hz=0.25, ramp_s=0.0)
    gait.start(replace(MANTA, parameters={"front_rod_m": 0.24, "back_rod_m": 0.2}))
    command = gait.update(state(1.0))
    assert 0.24 * sin(command["left.front"]) == pytest.approx(0.2 * sin(command["left.back"]), rel=1e-12)
    assert command["left.back"] == pytest.approx(radians(40.0))


def test_each_side_can_be_its_own() -> None:
    gait = Gait(ramp_s=0.0, right_amplitude_deg=20.0, left_phase_deg=0.0, right_bias_deg=5.0, left_frequency_hz=1.25)
    command = gait.update(state(0.2))
    assert command["left.back"] == pytest.approx(radians(40.0))
    assert command["left.front"] == pytest.approx(asin(0.185 / 0.215 * sin(radians(40.0))))
    assert command["right.back"] == pytest.approx(radians(20.0) * sin(0.24 * pi) + radians(5.0))


def test_a_soft_start_begins_at_rest_wherever_it_joins() -> None:
    gait = Gait(bias_deg=10.0, ramp_s=2.0)
    assert set(gait.update(state(7.0)).values()) == {0.0}
    assert abs(gait.update(state(7.001))["left.front"]) < 1e-8
    full = Gait(bias_deg=10.0, ramp_s=0.0).update(state(9.0))
    assert gait.update(state(9.0)) == full
    assert set(gait.update(state(0.0)).values()) == {0.0}  # the plant was reset


def test_the_soft_start_is_smooth() -> None:
    rise, h = SoftStart(1.0), 1e-3
    values = [rise(i * h) for i in range(1001)]
    rates = [(b - a) / h for a, b in itertools.pairwise(values)]
    assert (values[0], values[-1]) == (0.0, 1.0)
    assert min(rates) >= 0.0
    assert max(rates) < 1.9
    assert max(abs(b - a) / h for a, b in itertools.pairwise(rates)) < 6.0


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"amplitude_deg": -1.0}, "amplitude_deg: expected a number from 0 to 90, got -1.0"),
        ({"amplitude_deg": float("nan")}, "amplitude_deg"),
        ({"left_frequency_hz": -0.5}, "left_frequency_hz"),
        ({"phase_deg": 200.0}, "phase_deg"),
        ({"ramp_s": float("inf")}, "ramp_s"),
        ({"right_bias_deg": "much"}, "right_bias_deg"),
        ({"amplitude_deg": True}, "amplitude_deg"),
    ],
)
def test_a_bad_parameter_is_named(parameters: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Gait(**parameters)


def test_a_gait_beyond_the_rods_limits_is_refused_at_the_start() -> None:
    with pytest.raises(rtmms.ModelError, match=r"left.back would move to 70 deg, beyond its limit of 68.8 deg"):
        Gait(amplitude_deg=60.0, bias_deg=-10.0).start(MANTA)
    with pytest.raises(rtmms.UnknownNameError):
        Gait().start(replace(MANTA, actuators=()))
    with pytest.raises(rtmms.ModelError, match="front rod is too short"):
        Gait(amplitude_deg=60.0).start(replace(MANTA, parameters={"front_rod_m": 0.1, "back_rod_m": 0.2}))


def test_the_template_leads_with_the_front_rods() -> None:
    template = Template(amplitude_deg=20.0, frequency_hz=0.5)
    template.start(MANTA)
    command = template.update(state(0.0))
    assert command["left.back"] == 0.0
    assert command["left.front"] == command["right.front"] > 0.0
    assert set(command) == set(RODS)


def quaternion(angle: float) -> list[float]:
    return [cos(angle / 2), 0.0, 0.0, sin(angle / 2)]


@pytest.mark.parametrize("angle", [-3.0, -1.2, 0.0, 0.4, 3.1])
def test_yaw_is_counted_to_the_left_from_world_x(angle: float) -> None:
    assert yaw(quaternion(angle)) == pytest.approx(angle)
    w, z = cos(angle / 2), sin(angle / 2)  # rolled and pitched by a little, the nose still points there
    rolled = [w * cos(0.2), w * sin(0.2), z * sin(0.2), z * cos(0.2)]
    assert yaw(rolled) == pytest.approx(angle)


def test_angles_wrap() -> None:
    assert wrap_angle(3 * pi / 2) == pytest.approx(-pi / 2)
    assert wrap_angle(-pi) == wrap_angle(pi) == pytest.approx(pi)


def settled(controller: Heading, angle: float, rate: float = 0.0) -> dict[str, tuple[float, float]]:
    """Amplitude and phase of each fin, rad, after long at one heading: read from the commands themselves."""
    at = {"quaternion": quaternion(angle), "angular_velocity": [0.0, 0.0, rate]}
    controller.update(state(0.0, **at))
    controller.update(state(100.0, **at))
    period = 1.0 / controller.frequency_hz
    quarter, start = (controller.update(state(100.0 + part * period, **at)) for part in (0.25, 1.0))
    result = {}
    for side in ("left", "right"):
        phase = atan2(start[f"{side}.front"], quarter[f"{side}.front"])
        result[side] = (quarter[f"{side}.back"], phase)
    return result


def test_on_course_both_fins_beat_alike() -> None:
    heading = Heading(heading_deg=30.0, frequency_hz=0.5)
    heading.start(MANTA)
    fins = settled(heading, radians(30.0))
    assert fins["left"] == fins["right"] == pytest.approx((radians(40.0), radians(40.0)))


@pytest.mark.parametrize(("wanted", "stronger", "weaker"), [(90.0, "right", "left"), (-90.0, "left", "right")])
def test_the_outer_fin_is_the_stronger(wanted: float, stronger: str, weaker: str) -> None:
    heading = Heading(heading_deg=wanted, frequency_hz=0.5)
    fins = settled(heading, 0.0)
    assert fins[stronger][0] > fins[weaker][0]
    assert fins[stronger][1] > fins[weaker][1]
    assert fins[stronger][0] + fins[weaker][0] == pytest.approx(2 * radians(40.0))


def test_it_takes_the_short_way_round() -> None:
    fins = settled(Heading(heading_deg=170.0, frequency_hz=0.5), radians(-170.0))
    assert fins["left"][0] > fins["right"][0]


def test_no_rod_jumps_when_the_course_is_far_off() -> None:
    heading, before = Heading(heading_deg=180.0), None
    for step in range(4000):
        command = heading.update(state(step * 1e-3, quaternion=quaternion(0.0), angular_velocity=[0.0, 0.0, 0.0]))
        if before is not None:
            assert max(abs(command[rod] - before[rod]) for rod in RODS) < 8e-3  # 8 rad/s at 1 kHz: the servo's limit
        before = command


def fin_thrust(amplitude: float, phase: float) -> float:
    """About how a fin's mean thrust grows with its amplitude and phase: enough for a turning test."""
    return 3.4 * amplitude / radians(40.0) * tanh(phase / radians(25.0))


@pytest.mark.parametrize("wanted", [90.0, -60.0, 175.0])
def test_it_turns_to_the_heading_and_holds_it(wanted: float) -> None:
    """A point model in yaw: J W' = arm (right - left thrust) - drag |W| W, with the fins' thrusts averaged."""
    controller = Heading(heading_deg=wanted)
    controller.start(MANTA)
    angle = rate = 0.0
    held = []
    for step in range(60_000):
        time = step * 1e-3
        turn = controller._turn
        controller.update(state(time, quaternion=quaternion(angle), angular_velocity=[0.0, 0.0, rate]))
        strength = {side: 1.0 + sign * 0.25 * turn for side, sign in (("left", -1.0), ("right", 1.0))}
        phase = {side: 1.0 + min(0.0, sign * turn) for side, sign in (("left", -1.0), ("right", 1.0))}
        thrust = {side: fin_thrust(radians(40.0) * strength[side], radians(40.0) * phase[side]) for side in strength}
        moment = 0.45 * (thrust["right"] - thrust["left"]) - 10.0 * abs(rate) * rate
        rate += 1e-3 * moment / 4.0
        angle += 1e-3 * rate
        if time > 45.0:
            held.append(abs(degrees(wrap_angle(angle - radians(wanted)))))
    assert max(held) < 2.0
