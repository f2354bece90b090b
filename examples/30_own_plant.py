"""A simulator of your own as a plant: write these members, name the class in pyproject.toml, and it is a robot.

    [project.entry-points."rtmms.plants"]
    buoy = "my_package.buoy:Buoy"

after which `rtmms run buoy`, `serve`, `--log`, `rtmms control` and every bridge take it, as docs/plants.md explains.
"""

from __future__ import annotations

import math
import struct

import numpy as np

import rtmms


class Buoy:
    """A buoy that heaves on its mooring's stiffness: z'' = (thrust - c z' - k z) / m, exact over a step."""

    def __init__(self, dt: float | None = None, mass_kg: float = 20.0, damping_n_s_m: float = 15.0) -> None:
        if not mass_kg > 0:
            raise rtmms.ModelError(f"buoy: mass_kg must be > 0 kg, got {mass_kg}")  # exit 2, no traceback
        self.dt = 0.01 if dt is None else dt
        self.actuators = (rtmms.Channel("thrust", "N", lower=-30.0, upper=30.0),)
        self.outputs = (rtmms.Channel("heave", "m", frame="world"), rtmms.Channel("rate", "m/s", frame="world"))
        half, omega2 = 0.5 * damping_n_s_m / mass_kg, 200.0 / mass_kg
        omega = math.sqrt(omega2 - half * half)
        c, s, e = math.cos(omega * self.dt), math.sin(omega * self.dt), math.exp(-half * self.dt)
        self._flow = e * np.array([[c + half / omega * s, s / omega], [-omega2 / omega * s, c - half / omega * s]])
        self._rest_per_newton = 1.0 / (omega2 * mass_kg)
        self._state = np.zeros(2)

    def reset(self, seed: int = 0) -> None:
        """Begin anew with a small push that the seed alone decides: the same seed gives the same bits."""
        self._state[:] = 0.0, 0.01 * np.random.default_rng(seed).standard_normal()

    def step(self, command: np.ndarray) -> None:
        """Advance by dt under the held command; write into arrays that are there, make none of Python's objects."""
        rest_position = self._rest_per_newton * command[0]
        self._state[0] -= rest_position
        self._state[:] = self._flow @ self._state
        self._state[0] += rest_position
        if not np.isfinite(self._state).all():
            raise rtmms.DivergedError(0.0, "heave", {})

    def observe(self) -> dict[str, np.ndarray]:
        """Every output by its name: arrays of the declared shape, functions of the state alone."""
        return {"heave": np.array(self._state[0]), "rate": np.array(self._state[1])}

    def snapshot(self) -> bytes:
        return struct.pack("<2d", *self._state)

    def restore(self, blob: bytes) -> None:
        self._state[:] = struct.unpack("<2d", blob)


def main(seconds: float = 5.0) -> dict[str, float]:
    """Push for a while, let go, and see that a snapshot goes on with the same bits."""
    plant = Buoy()
    assert isinstance(plant, rtmms.Plant)
    plant.reset(seed=1)
    command = np.zeros(1)
    for step in range(round(seconds / plant.dt)):
        command[0] = 10.0 if step < 100 else 0.0
        plant.step(command)
        if step % 50 == 0:
            print(f"t {step * plant.dt:5.2f} s   heave {float(plant.observe()['heave']):+.4f} m")
    blob, other = plant.snapshot(), Buoy()
    other.restore(blob)
    for item in (plant, other):
        item.step(command)
    return {"heave": float(plant.observe()["heave"]), "again": plant.snapshot() == other.snapshot()}


if __name__ == "__main__":
    main()
