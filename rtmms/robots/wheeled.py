"""Provide parts that the wheeled robots share: flat bodies, joints by motion or by torque, and the summary of a run."""

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
    """Return a flat body.

    Parameters
    ----------
    name : str
        Name of the body.
    mass : float
        kg.
    inertia : float
        About z through its centre of mass, kg m2.
    x : float, default 0.0
        Centre of mass along x, m.

    Returns
    -------
    Body
        The body.
    """
    return Body.about_centre(name, mass, (x, 0.0, 0.0), np.diag([0.5 * inertia, 0.5 * inertia, inertia]))


def hinge(name: str, parent: str, child: str, x: float, drive: str, **more: Any) -> Joint:
    """Return a joint about z.

    Parameters
    ----------
    name, parent, child : str
        Names of the joint and of its bodies.
    x : float
        Place on the parent's x axis, m.
    drive : str
        'torque' or 'motion'.
    **more : Any
        Further fields of `Joint`.

    Returns
    -------
    Joint
        The joint.
    """
    place = Placement(np.eye(3), np.array([x, 0.0, 0.0]))
    return Joint(name, parent, child, placement=place, axis=Z, drive=drive, **more)


def joint_actuators(joints: dict[str, float], drive: str, bandwidth: float, most_torque: float) -> list[Any]:
    """Return actuators of joints: JOINT.angle for drive 'motion', JOINT.torque for 'torque'.

    Parameters
    ----------
    joints : dict[str, float]
        Largest angle, rad, by joint.
    drive : str
        'motion' or 'torque'.
    bandwidth : float
        rad/s, of motions.
    most_torque : float
        Largest torque, N m.

    Returns
    -------
    list[Any]
        Actuators in the order of `joints`.
    """
    if drive == "motion":
        return [JointMotion(name, -limit, limit, bandwidth) for name, limit in joints.items()]
    return [JointTorque(name, most_torque) for name in joints]


def summary(plant: TreePlant, time: Array, trace: Any) -> dict[str, float | None]:
    """Return means over the second half of the run: speed along the body's x, turn rate, power of the joints.

    Parameters
    ----------
    plant : TreePlant
        The plant.
    time : (k,) array
        s.
    trace : mapping of str to array
        Samples of the plant's outputs.

    Returns
    -------
    dict[str, float or None]
        Numbers by name; empty for a short run.
    """
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
