"""A plant of one's own as a memory layout and a kernel: compiled, it steps in the real-time loop without Python.

Snapshots, runs side by side (`rtmms.rollout`), environments, and sensors in batches follow from the layout.
"""

from __future__ import annotations

import hashlib
from math import cos, isfinite, sin

import numpy as np

import rtmms
from rtmms.base.jit import COMPILED, kernel
from rtmms.base.memory import Layout, number, state, step_input
from rtmms.plant.kernel_plant import KernelPlant

PENDULUM = Layout(
    "Pendulum",
    state("motion", 2, unit="rad, rad/s"), step_input("command", 1, unit="N m"),
    number("dt", unit="s"), number("mass", unit="kg"), number("length", unit="m"), number("drag", unit="N m s2"),
)  # fmt: skip
_pendulum_at = PENDULUM.type().at()


@kernel
def acceleration(p, angle, rate):  # type: ignore[no-untyped-def]
    """Return the acceleration, rad/s2: m l^2 q'' = tau - m g l sin q - c |q'| q'."""
    torque = p.command[0] - p.mass * 9.80665 * p.length * sin(angle) - p.drag * abs(rate) * rate
    return torque / (p.mass * p.length**2)


@kernel
def take_step(p):  # type: ignore[no-untyped-def]
    """One step of the midpoint rule; 0 when all is well."""
    angle, rate = p.motion[0], p.motion[1]
    half = rate + 0.5 * p.dt * acceleration(p, angle, rate)
    slope = acceleration(p, angle + 0.5 * p.dt * rate, half)
    if not isfinite(slope):
        return 1
    p.motion[0], p.motion[1] = angle + p.dt * half, rate + p.dt * slope
    return 0


@kernel
def enter_step(address: int) -> int:
    """`take_step` of the record at an address."""
    return int(take_step(_pendulum_at(address)))


class Pendulum(KernelPlant):
    """A pendulum in water, driven by a motor."""

    _name = "pendulum"

    def __init__(self, dt: float | None = None, mass_kg: float = 1.0, length_m: float = 0.5) -> None:
        self.dt = 1e-3 if dt is None else dt
        self.actuators = (rtmms.Channel("torque", "N m", lower=-5.0, upper=5.0),)
        self.outputs = (rtmms.Channel("angle", "rad"), rtmms.Channel("tip", "m", (2,), "world"))
        self.system = PENDULUM.make({"dt": self.dt, "mass": mass_kg, "length": length_m, "drag": 0.05})
        self.memory, self._command, self._steps = self.system.memory, self.system.command, 0
        self._key = hashlib.sha256(f"pendulum {mass_kg} {length_m}".encode()).digest()
        self._bind_step()

    def _step_kernel(self):  # type: ignore[no-untyped-def]
        return enter_step if COMPILED else None

    def _plain_step(self, system) -> int:  # type: ignore[no-untyped-def]
        return int(take_step(system))

    def reset(self, seed: int = 0) -> None:
        """Go back to rest at 0.5 rad."""
        self.memory[:], self._steps = (0.5, 0.0), 0

    def observe(self) -> dict[str, np.ndarray]:
        """Return the outputs at the present state."""
        angle, length = self.memory[0], self.system.length
        return {"angle": np.array(angle), "tip": length * np.array([sin(angle), -cos(angle)])}


def main(runs: int = 64) -> dict[str, float]:
    """Let it swing alone, then with 64 torques side by side."""
    plant = Pendulum()
    assert isinstance(plant, rtmms.Plant)
    plant.reset()
    start = plant.snapshot()
    for _ in range(1000):
        plant.step(np.zeros(1))
    print(f"after 1 s without torque: {float(plant.observe()['angle']):+.4f} rad")
    torques = np.linspace(-1.0, 1.0, runs)[:, None, None] * np.ones((1, 1000, 1))
    ends = rtmms.rollout(plant, torques, initial=start, outputs=("angle",), every=1000).outputs["angle"][:, -1]
    print(f"with -1 to 1 N m, {runs} runs: {ends.min():+.4f} to {ends.max():+.4f} rad")
    return {"angle": float(plant.observe()["angle"]), "lowest": float(ends.min()), "highest": float(ends.max())}


if __name__ == "__main__":
    main()
