"""Motion from outputs in either frame, and what an accelerometer would read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
from rtmms.plant.protocol import Channel
from rtmms_bridges.motion.frames import GRAVITY, wxyz, xyzw
from rtmms_bridges.motion.imu import Imu
from rtmms_bridges.motion.pose import PoseNames, PoseReader
from tests.bridges.harness import plant_info, state

RNG = np.random.default_rng(3)


def channels(velocity: str = "body", rate: str = "body", acceleration: str | None = "body") -> tuple[Channel, ...]:
    listed = [
        Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
        Channel("velocity", "m/s", (3,), velocity), Channel("angular_velocity", "rad/s", (3,), rate),
    ]  # fmt: skip
    if acceleration is not None:
        listed.append(Channel("acceleration", "m/s2", (3,), acceleration))
    return tuple(listed)


def lists(**outputs: Any) -> dict[str, Any]:
    return {name: list(map(float, value)) for name, value in outputs.items()}


def test_the_same_motion_given_in_either_frame() -> None:
    r = Rotation.random(random_state=1)
    v, w, a = RNG.normal(size=(3, 3))  # world components; a inertial
    body = r.inv()
    rate_of_components = body.apply(a) - np.cross(body.apply(w), body.apply(v))
    here, there = plant_info(*channels()), plant_info(*channels("world", "world", "world"))
    common = {"position": [1.0, 2.0, 3.0], "quaternion": wxyz(r.as_quat())}
    ours = PoseReader(PoseNames(), here)(state(here, **lists(
        **common, velocity=body.apply(v), angular_velocity=body.apply(w), acceleration=rate_of_components,
    )))  # fmt: skip
    theirs = PoseReader(PoseNames(), there)(state(there, **lists(
        **common, velocity=v, angular_velocity=w, acceleration=a,
    )))  # fmt: skip
    for item in (ours, theirs):
        np.testing.assert_allclose(item.velocity, v, atol=1e-14)
        np.testing.assert_allclose(item.velocity_body, body.apply(v), atol=1e-14)
        np.testing.assert_allclose(item.rate, body.apply(w), atol=1e-14)
        assert item.acceleration is not None
        np.testing.assert_allclose(item.acceleration, body.apply(a), atol=1e-14)
        np.testing.assert_allclose(Rotation.from_quat(xyzw(item.attitude)).as_matrix(), r.as_matrix(), atol=1e-14)


def test_at_rest_and_level_it_reads_one_g_upwards() -> None:
    info = plant_info(*channels())
    remaining = lists(position=[0] * 3, quaternion=[1, 0, 0, 0], velocity=[0] * 3, angular_velocity=[0] * 3,
                 acceleration=[0] * 3)  # fmt: skip
    motion = PoseReader(PoseNames(), info)(state(info, **remaining))
    assert Imu().specific_force(motion) == pytest.approx((0.0, 0.0, GRAVITY))
    force, rate = Imu().frd(motion)
    assert force == pytest.approx((0.0, 0.0, -GRAVITY))
    assert rate == pytest.approx((0.0, 0.0, 0.0))


def test_a_falling_body_reads_nothing() -> None:
    info = plant_info(*channels(acceleration="world"))
    q = wxyz(Rotation.random(random_state=4).as_quat())
    fall = lists(position=[0] * 3, quaternion=q, velocity=[0] * 3, angular_velocity=[0] * 3,
                 acceleration=[0, 0, -GRAVITY])  # fmt: skip
    motion = PoseReader(PoseNames(), info)(state(info, **fall))
    assert Imu().specific_force(motion) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_differences_of_velocity_find_the_acceleration_of_a_turn() -> None:
    """A circle at 2 m/s and 0.5 rad/s, body along the path: 1 m/s2 to the left, from constant components."""
    info = plant_info(*channels(acceleration=None))
    read, imu = PoseReader(PoseNames(), info), Imu()
    for k in (1000, 1001):
        yaw = 0.5 * k * info.dt
        q = wxyz(Rotation.from_euler("z", yaw).as_quat())
        motion = read(state(info, k, **lists(
            position=[0] * 3, quaternion=q, velocity=[2, 0, 0], angular_velocity=[0, 0, 0.5],
        )))  # fmt: skip
        force = imu.specific_force(motion)
        if k == 1000:
            assert force == pytest.approx((0.0, 0.0, GRAVITY))
    assert force == pytest.approx((0.0, 1.0, GRAVITY), abs=1e-3)


def test_other_names() -> None:
    info = plant_info(Channel("nose.place", "m", (3,), "world"), *channels()[1:])
    read = PoseReader(PoseNames(position="nose.place"), info)
    assert "nose.place" in read.outputs
    assert set(read.outputs) == {"nose.place", "quaternion", "velocity", "angular_velocity", "acceleration"}


def test_what_is_lacking_is_reported() -> None:
    info = plant_info(Channel("angle", "rad"), Channel("velocity", "m/s", (3,), "body"))
    with pytest.raises(
        rtmms.ModelError, match=r"lacks position .*'position' is not there; expected .3,., m"
    ) as message:
        PoseReader(PoseNames(), info)
    assert "its outputs: angle, velocity" in str(message.value)
    assert PoseReader(PoseNames(), info, needs=())(state(info, velocity=[1.0, 0, 0])).velocity == (1.0, 0.0, 0.0)
    with pytest.raises(rtmms.ModelError, match=r"'angle' has the shape \(\)"):
        PoseReader(PoseNames(position="angle"), info, needs=())
    with pytest.raises(rtmms.ModelError, match="expected one of components, inertial"):
        PoseNames(acceleration_is="what")
