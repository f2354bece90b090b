"""The autopilot: what it does with errors of each kind, what it falls back to, what it refuses."""

from __future__ import annotations

from dataclasses import replace
from math import radians
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.attitude import euler, rotate, rotate_back
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.autopilot import Autopilot
from rtmms_controllers.guiding import Guide
from rtmms_controllers.loops import Loop
from rtmms_controllers.path import Path
from rtmms_controllers.pilot import FALLBACK, STROKE_LIMITS, Aim, Gains, Pilot
from rtmms_controllers.senses import Motion
from rtmms_controllers.watch import Watch

RODS = ("left.front", "left.back", "right.front", "right.back")
ACTUATORS = tuple(Channel(name, "rad", lower=-1.2, upper=1.2) for name in RODS)
TRUTH = tuple(
    Channel(name, "", shape)
    for name, shape in (("position", (3,)), ("quaternion", (4,)), ("velocity", (3,)), ("angular_velocity", (3,)))
)
PLANT = PlantInfo("manta", 1e-3, "lockstep", None, None, ACTUATORS, TRUTH)


def motion(time: float, **more: Any) -> Motion:
    return replace(Motion(time, velocity=(0.4, 0.0, 0.0), position=(0.0, 0.0, -1.0)), **more)


def strokes(aim: Aim, **more: Any) -> Any:
    pilot = Pilot(Gains(), STROKE_LIMITS)
    pilot(aim, motion(0.0))
    return pilot(aim, motion(0.005, **more))


def test_each_error_moves_the_fins_the_right_way() -> None:
    aim = Aim(depth=1.0, speed=0.4)
    left, right = strokes(aim)
    assert left == right
    left, right = strokes(aim, position=(0.0, 0.0, -1.2))
    assert left.incidence == right.incidence > 0.0, "too deep: the fins lift"
    left, right = strokes(aim, yaw=-0.2)
    assert right.lead > left.lead, "too far right: the right fin is the stronger one"
    left, right = strokes(aim, roll=-0.1)
    assert left.incidence > 0.0 > right.incidence, "left side too low: the left fin lifts"
    slow, _ = strokes(aim, velocity=(0.2, 0.0, 0.0))
    assert slow.amplitude > left.amplitude
    left, right = strokes(aim, pitch=-0.1)
    assert left.bias > 0.0, "nose too high: rods up"


def test_an_integrator_does_not_wind_up() -> None:
    loop = Loop(1.0, 1.0, 0.0, 0.5)
    for _ in range(1000):
        assert loop(2.0, 0.0, 0.01) == 0.5
    assert loop.integral <= 0.5
    assert min(loop(-0.2, 0.0, 0.01) for _ in range(60)) < 0.5
    integral = loop.integral
    assert loop.hold() == max(-0.5, min(0.5, integral))


def test_a_turn_has_its_way_before_the_speed() -> None:
    pilot, aim = Pilot(Gains(), STROKE_LIMITS), Aim(depth=1.0, heading=radians(90.0), speed=1.0)
    for k in range(20):
        left, right = pilot(aim, motion(0.005 * k))
    assert right.lead / STROKE_LIMITS.lead == pytest.approx(1.0)
    assert left.lead < 0.0, "the inner fin brakes"


@pytest.mark.parametrize("doubt", ["imu", "depth", "estimate"])
def test_what_is_not_to_be_believed_moves_nothing(doubt: str) -> None:
    pilot, aim = Pilot(Gains(), STROKE_LIMITS), Aim(depth=1.0)
    for k in range(100):
        pilot(aim, motion(0.005 * k, position=(0.0, 0.0, -1.01), yaw=0.02))
    before = pilot.depth.integral, pilot.turn.integral
    wild = {"position": (0.0, 0.0, -9.0), "yaw": 2.0, "roll": 1.0, "doubts": {doubt}}
    item = pilot(aim, motion(0.505, **wild))
    other = pilot(
        aim, motion(1.5, **{**wild, "position": (0.0, 0.0, 5.0), **({} if doubt == "depth" else {"yaw": -2.0})})
    )
    assert item[0].incidence + item[1].incidence == pytest.approx(other[0].incidence + other[1].incidence)
    assert pilot.depth.integral == before[0]
    if "heading" in FALLBACK[doubt]:
        assert pilot.turn.integral == before[1]
        assert item == other


def test_a_fall_back_is_reported_and_so_is_the_return() -> None:
    message: list[str] = []
    watch = Watch("autopilot", message.append)
    for time, doubts in ((1.0, set()), (2.0, {"imu"}), (2.5, {"imu", "depth"}), (3.0, {"depth"}), (3.5, set())):
        watch(motion(time, doubts=doubts))
    assert [text.split(": ", 2)[1] for text in message] == ["t = 2.00 s", "t = 2.50 s", "t = 3.00 s", "t = 3.50 s"]
    assert "imu is silent" in message[0]
    assert "without feedback: depth, heading" in message[0]
    assert message[2].endswith("imu is back after 1.00 s")


def test_from_the_truth_over_the_wire_and_after_a_reset() -> None:
    pilot = Autopilot(depth_m=1.0)
    pilot.start(PLANT)
    observed = {"position": [0.0, 0.0, 0.0], "quaternion": [1.0, 0.0, 0.0, 0.0], "velocity": [0.0] * 3,
            "angular_velocity": [0.0] * 3}  # fmt: skip
    output = [
        pilot.update(State({"step": 5 * k, "timestamp": 5e-3 * k, "outputs": observed}, PLANT)) for k in range(50)
    ]
    assert set(output[0].values()) == {0.0}
    assert max(map(abs, output[-1].values())) > 0.05
    again = pilot.update(State({"step": 0, "timestamp": 0.0, "outputs": observed}, PLANT))
    assert set(again.values()) == {0.0}
    pilot.on_parameters_changed({"depth_m": 3.0, "depth_p": 2.0, "turn": "both"})
    assert (pilot._aim.depth, pilot._helm.pilot.depth.p, pilot._helm.pilot.max_strokes.turn) == (3.0, 2.0, "both")


@pytest.mark.parametrize(("word", "value", "text"), [
    ("depth_p", -1.0, "depth_p: expected a number from 0 to 110"), ("turn_p", float("nan"), "turn_p: expected"),
    ("roll_i", 1e6, "roll_i: expected"), ("pitch_deg", 3.0, "pitch_deg: expected a number from -0.25 to 0.25"),
    ("heading_deg", float("inf"), "heading_deg: expected"), ("turn", "bothh", "did you mean both"),
    ("amplitude_deg", 0.0, "amplitude_deg: expected"), ("frequency_hz", 9.0, "frequency_hz: expected"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_place(word: str, value: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Autopilot(**{word: value})
    pilot = Autopilot()
    with pytest.raises(rtmms.ModelError, match=text):
        pilot.on_parameters_changed({word: value})
    assert getattr(pilot, word) == getattr(Autopilot(), word)


def test_a_plant_that_reports_neither_motion_nor_imu_is_refused() -> None:
    with pytest.raises(rtmms.ModelError, match="expected outputs position, quaternion"):
        Autopilot().start(PlantInfo("manta", 1e-3, "lockstep", None, None, ACTUATORS, ()))


@pytest.mark.parametrize(("arguments", "text"), [
    ({"course": "waypoints", "waypoints": "0 0 -1; nan 0 -1"}, "controller 'path': course: waypoint 2: expected three"),
    ({"course": "eigth"}, "did you mean eight"), ({"radius_m": 0.0}, "radius_m"),
    ({"compensate": "guess"}, "compensate"),
    ({"speed_m_s": -0.4}, "speed_m_s: expected"), ({"lookahead_m": 0.0}, "lookahead_m: expected"),
])  # fmt: skip
def test_a_course_that_makes_no_sense_is_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Path(**arguments)


def swum(compensate: str, seconds: float = 200.0) -> tuple[Guide, float]:
    """A point that follows the guide at 0.4 m/s through a current of 0.15 m/s across the course: the guide, and
    the mean error of the last 20 s."""
    from rtmms.analysis.courses import course

    guide, aim = Guide(course("waypoints", waypoints="0 0 -1; 100 0 -1"), 1.0, compensate), Aim()
    position, yaw, dt, errors = np.array([0.0, 1.0, -1.0]), 0.0, 0.05, []
    for k in range(round(seconds / dt)):
        ground = np.array([0.4 * np.cos(yaw), 0.4 * np.sin(yaw) + 0.15, 0.0])
        now = Motion(k * dt, tuple(position), (0.4, 0.0, 0.0), tuple(ground), yaw=yaw)
        guide(now, 0.4, aim)
        yaw += dt * 1.0 * (aim.heading - yaw)
        position = position + dt * ground
        errors.append(guide.error)
    return guide, float(np.mean(errors[-400:]))


def test_a_current_across_the_course_is_found() -> None:
    guide, error = swum("estimate")
    assert guide.current[1] == pytest.approx(0.15, abs=0.04), "of it, what is across the body is seen"
    assert abs(error) < 0.05
    assert abs(swum("integrator")[1]) < 0.05
    assert swum("none")[1] > 0.2


def test_rotations_there_and_back() -> None:
    rng = np.random.default_rng(1)
    from scipy.spatial.transform import Rotation

    turned = Rotation.random(random_state=2)
    x, y, z, w = turned.as_quat()
    v = rng.normal(size=3)
    assert rotate((w, x, y, z), v) == pytest.approx(turned.apply(v))
    assert rotate_back((w, x, y, z), rotate((w, x, y, z), v)) == pytest.approx(v)
    yaw, pitch, roll = turned.as_euler("ZYX")
    assert euler((w, x, y, z)) == pytest.approx((roll, pitch, yaw))
