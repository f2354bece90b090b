"""The eel's course: which way its joints are offset, and that it gets there."""

from __future__ import annotations

from math import cos, radians, sin
from pathlib import Path

import pytest

import rtmms
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms_controllers.eel_course import EelCourse
from tests.cli.shell import finish, start

JOINTS = tuple(Channel(f"{kind}{i}.angle", "rad") for i in (1, 2, 3) for kind in ("yaw", "pitch"))
MOTION = (("position", 3), ("quaternion", 4), ("velocity", 3), ("angular_velocity", 3))
OUTPUTS = tuple(Channel(name, "", (size,)) for name, size in MOTION)
EEL = PlantInfo("eel", 1e-3, "lockstep", None, None, JOINTS, OUTPUTS)


def offsets(roll: float, **arguments: float) -> tuple[float, float]:
    """(yaw, pitch) deg of a joint, level and at the origin but for the roll."""
    course = EelCourse(**arguments)
    course.start(EEL)
    observed = {"position": [0.0, 0.0, -2.0], "velocity": [0.1, 0.0, 0.0], "angular_velocity": [0.0] * 3,
            "quaternion": [cos(roll / 2), sin(roll / 2), 0.0, 0.0]}  # fmt: skip
    for k in range(3):
        course.update(State({"step": 5 * k, "timestamp": 5e-3 * k, "outputs": observed}, EEL))
    return course._cpg.bias_deg, course._cpg.incidence_deg


def test_to_the_left_and_down_in_the_axes_of_its_own_roll() -> None:
    assert offsets(0.0, heading_deg=10.0)[0] < 0.0
    assert offsets(0.0, depth_m=2.2)[1] > 0.0
    level, rolled = offsets(0.0, heading_deg=10.0), offsets(radians(90.0), heading_deg=10.0)
    assert rolled == pytest.approx((0.0, -level[0]), abs=1e-9)
    assert offsets(0.0, heading_deg=170.0)[0] == pytest.approx(-5.0)


def test_what_makes_no_sense_is_refused() -> None:
    for arguments, text in (({"heading_p": -1.0}, "heading_p"), ({"depth_m": float("nan")}, "depth_m"),
                        ({"turn_deg": 50.0}, "turn_deg")):  # fmt: skip
        with pytest.raises(rtmms.ModelError, match=f"controller 'eel_course': {text}: expected"):
            EelCourse(**arguments)


@pytest.mark.full
def test_it_gets_there(tmp_path: Path) -> None:
    result = finish(start(tmp_path, "run", "eel", "--set", "gait=none", "--controller",
                        "eel_course:heading_deg=30,depth_m=2.3", "--mode", "lockstep", "--duration", "80",
                        "--tracking-start", "65", "--json", "--quiet"), 240)  # fmt: skip
    assert result.status == 0, result.err
    assert result.report["tracking"]["heading_deg"]["rms"] < 3.0
    assert result.report["tracking"]["depth_m"]["rms"] < 0.03
