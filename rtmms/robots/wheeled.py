"""What the wheeled robots share: flat bodies, joints by motion or by torque, and what a report has."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.spatial import Array
from rtmms.mechanism.actuators import JointMotion, JointTorque
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint
from rtmms.model.solids import Placement

Z = (0.0, 0.0, 1.0)


def flat(name: str, mass: float, inertia: float, x: float = 0.0) -> Body:
    """A flat body: kg, kg m2 about z through its centre of mass, which stands at x (m)."""
    return Body.about_centre(name, mass, (x, 0.0, 0.0), np.diag([0.5 * inertia, 0.5 * inertia, inertia]))


def hinge(name: str, parent: str, child: str, x: float, drive: str, **more: Any) -> Joint:
    """A joint about z at x (m) of its parent."""
    place = Placement(np.eye(3), np.array([x, 0.0, 0.0]))
    return Joint(name, parent, child, placement=place, axis=Z, drive=drive, **more)


def driven(joints: dict[str, float], drive: str, bandwidth: float, most_torque: float) -> list[Any]:
    """Actuators of joints {name: greatest angle, rad}: JOINT.angle for drive 'motion', JOINT.torque for 'torque'."""
    if drive == "motion":
        return [JointMotion(name, -most, most, bandwidth) for name, most in joints.items()]
    return [JointTorque(name, most_torque) for name in joints]


def summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Over the second half of the run: mean speed along the body's x, turn rate, mean power of the joints."""
    if len(time) < 2:
        return {}
    start = 0.5 * time[-1]
    late = time > start
    heading = np.unwrap(2.0 * np.arctan2(trace["quaternion"][:, 3], trace["quaternion"][:, 0]), period=2.0 * np.pi)
    first, last = int(np.argmax(late)), len(time) - 1
    lasts = float(time[last] - time[first])
    if lasts <= 0.0:
        return {}
    position = np.asarray(trace["position"])
    return {
        "mean_speed_m_s": float(np.mean(np.asarray(trace["velocity"])[late, 0])),
        "net_speed_m_s": float(np.linalg.norm(position[last] - position[first])) / lasts,
        "turn_rate_deg_s": float(np.degrees(heading[last] - heading[first])) / lasts,
        "mean_power_w": float(trace["work"][last] - trace["work"][first]) / lasts,
    }
