"""Terminal speeds and turning rates of the ROV `bluerov2` at full thrust, by its damping and by the simulation.

    python examples/25_rov.py

For each axis the thrusters push by their pseudo-inverse, as hard as the first of them can. The speed at which damping
d v + D v^2 takes the wrench is compared with that of the simulation, without the restoring moment. Then the robot is
let go at 20 deg of roll, and the period of its free decay is compared with that of a small, undamped swing.
"""

from __future__ import annotations

import math

import numpy as np

import rtmms

AXES = {"surge": "m/s", "sway": "m/s", "heave": "m/s", "roll": "rad/s", "pitch": "rad/s", "yaw": "rad/s"}


def wrenches(plant) -> np.ndarray:
    """(6, 8) wrench of a newton of each thruster, from the table that the plant exposes to controllers."""
    table = plant.shape["thrusters"]
    route = np.array([item["direction"] for item in table])
    place = np.array([item["position"] for item in table])
    return np.hstack([route, np.cross(place, route)]).T


def damping(p, axis: str) -> tuple[float, float]:
    turns = axis in ("roll", "pitch", "yaw")
    linear = getattr(p, f"linear_{axis}_{'n_m_s' if turns else 'n_s_m'}")
    return linear, getattr(p, f"quadratic_{axis}_{'kg_m2' if turns else 'kg_m'}")


def main() -> None:
    plant = rtmms.load("bluerov2", buoyancy_above_m=0.0, thruster_s=0.0)
    command, thrust = np.array(plant.shape["thrusters"][0]["curve"]).T
    inverse = np.linalg.pinv(wrenches(plant))
    print("axis   full thrust        closed form  simulated")
    for k, (axis, unit) in enumerate(AXES.items()):
        maximum = thrust[-1] / np.abs(inverse[:, k]).max()
        plant.reset()
        for _ in range(1000):
            plant.step(np.interp(inverse[:, k] * maximum, thrust, command))
        linear, quadratic = damping(plant.parameters, axis)
        speed = (-linear + math.sqrt(linear**2 + 4.0 * quadratic * maximum)) / (2.0 * quadratic)
        result = np.concatenate([plant.observe()["velocity"], plant.observe()["angular_velocity"]])[k]
        force = f"{maximum:6.2f} {'N' if k < 3 else 'N m'}"
        print(f"{axis:6} {force:14} {speed:12.4f} {unit:5} {result:8.4f} {unit}")

    plant = rtmms.load("bluerov2")
    p, half = plant.parameters, math.radians(10.0)
    moment = p.mass_kg * p.gravity_m_s2 * p.buoyancy_above_m
    plant.place(quaternion=[math.cos(half), math.sin(half), 0.0, 0.0])
    crossings, before = [], 1.0
    while len(crossings) < 2:
        plant.step(np.zeros(8))
        roll = plant.observe()["quaternion"][1]
        if before * roll < 0.0:
            crossings.append(plant.time)
        before = roll
    swing = 2.0 * math.pi * math.sqrt((p.ixx_kg_m2 + p.added_roll_kg_m2) / moment)
    print(f"\nrestoring moment {moment:.3f} N m times sin of roll or pitch")
    print(f"period of roll   {2.0 * (crossings[1] - crossings[0]):.2f} s, of a small undamped swing {swing:.2f} s")


if __name__ == "__main__":
    main()
