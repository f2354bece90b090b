"""A plant without inertia: its joints move as commanded, and it goes where its Stokes connection takes it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.arguments import limits_of, read_command, read_seed, refuse_not_finite
from rtmms.errors import DivergedError, ModelError
from rtmms.jit import COMPILED, compile_progress
from rtmms.locomotion.abilities import Locomotion
from rtmms.locomotion.connections import NAMES, Connection, model_of
from rtmms.locomotion.glide import BAD_COMMAND, GLIDE, NOT_FINITE, SINGULAR, SOUND, enter_glide, glide, observe
from rtmms.locomotion.twin import GlideTwin
from rtmms.mechanism.actuators import attached
from rtmms.mechanism.joint_bounds import limited
from rtmms.model.compiled import Model
from rtmms.model.description import Mechanism, displaced_density
from rtmms.plant import Channel, Surroundings, water_density
from rtmms.snapshot import StatefulPlant
from rtmms.spatial import Array


@dataclass(eq=False)
class ConnectionPlant(StatefulPlant):
    """A mechanism with Body.viscous as a plant (see rtmms.plant.Plant): eta = -A(r) rd at every instant.

    mechanism  the description, or what `rtmms.compile` made of it, joints driven by motion
    actuators  `JointMotion` of joints (rtmms.mechanism.actuators); a joint without one stays where it is. Once it is
               built, their channels
    dt         s
    initial    (p,) shape at t = 0
    Outputs are those of `TreePlant`. Time is integrated to sixth order on the group.
    """

    mechanism: Mechanism | Model
    actuators: Any = ()
    dt: float = 1e-3
    initial: Any = None
    parameters: Any = None
    locomotion: Locomotion | None = None
    summary: Callable[[Any, Array, Any], dict[str, float | None]] | None = None
    trace_outputs: tuple[str, ...] = ("position", "quaternion", "velocity", "power", "work")
    recent_outputs: tuple[str, ...] = ("joint_position", "joint_torque")
    medium: str = "water"

    def __post_init__(self) -> None:
        self.model = model_of(self.mechanism)
        if isinstance(self.dt, bool) or not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{self.model.name}: dt must be > 0 s, got {self.dt!r}")
        self.connection = Connection(self.model, "stokes")
        more, p = attached(self.model, self.actuators), self.model.n
        if len(more.pushes) or limited(more.bounds).any() or any(drive.joint >= p for drive in more.drives):
            raise ModelError(f"{self.model.name}: a plant without inertia takes JointMotion alone")
        self.actuators = tuple(drive.channel for drive in more.drives)
        self._joints = np.array([drive.joint for drive in more.drives], dtype=np.int64)
        self._bandwidth = np.where(np.isnan(more.bandwidth), 20.0, more.bandwidth)
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        self._given = self.neutral.copy()
        self._steps, self._name = 0, self.model.name
        self.outputs = (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("joint_position", "rad", (p,)), Channel("joint_velocity", "rad/s", (p,)),
            Channel("joint_torque", "N m", (p,)), Channel("power", "W"), Channel("work", "J"),
        )  # fmt: skip
        start = np.zeros(p) if self.initial is None else np.asarray(self.initial, dtype=float)
        if start.shape != (p,):
            raise ModelError(f"{self.model.name}: initial must have shape ({p},), got {start.shape}")
        self.initial = start
        told = self._bandwidth.tobytes() + self._joints.tobytes() + start.tobytes()
        self._key = hashlib.sha256(self.model.digest.encode() + told).digest()
        self._shape = self._given.shape
        self.system = GLIDE.make({
            "tree": self.connection.tree, "work": {}, "bandwidth": self._bandwidth, "driven": self._joints,
            "given": self._given, "limits": limits_of(self.actuators), "dt": self.dt,
        }, {"n": p})  # fmt: skip
        self.memory = self.system.memory
        with compile_progress(f"the kernels of '{self.model.name}'"):
            self.reset()
            self.step(self.neutral)
            self.observe()
        self.reset()

    def surroundings(self) -> Surroundings:
        """Return what the plant moves in, as it is now."""
        x, y, z = self.model.gravity.tolist()
        return Surroundings((x, y, z), water_density(self.medium, displaced_density(self.mechanism)))

    def reset(self, seed: int = 0) -> None:
        """Back to t = 0. Nothing here is random: the seed is taken and changes nothing."""
        read_seed(self.model.name, seed)
        system = self.system
        system.clear()
        system.memory[:], self._steps = 0.0, 0
        system.pose[3], system.joints[:2] = 1.0, self.initial

    def step(self, command: Array) -> None:
        """Advance by dt with `command` (n_actuators,) held. ValueError for a wrong size or a value that is not finite;
        DivergedError if it fails: the state is then still the last sound one."""
        if type(command) is not np.ndarray or command.dtype != np.float64 or command.shape != self._shape:
            command = read_command(self.model.name, self.actuators, command)
        self._given[:] = command
        status = enter_glide(self.system.address) if COMPILED else glide(self.system)
        if status != SOUND:
            self._fail(status)
        self._steps += 1

    def _fail(self, status: int) -> None:
        name = self.model.name
        if status == BAD_COMMAND:
            refuse_not_finite(name, self.actuators, self._given)
        reason = "is not finite" if status == NOT_FINITE else f"meets no drag in {NAMES[status - SINGULAR]}"
        raise DivergedError(self.time + self.dt, "velocity", self.observe(), reason)

    def observe(self) -> dict[str, Array]:
        """The outputs at the present state, by name."""
        system = self.system
        power = observe(system)
        pose, twist, (_, q, qd) = system.pose, system.twists[0], system.joints
        return {
            "position": pose[:3].copy(), "quaternion": pose[3:].copy(), "velocity": twist[:3].copy(),
            "angular_velocity": twist[3:].copy(), "joint_position": q.copy(), "joint_velocity": qd.copy(),
            "joint_torque": system.torque.copy(), "power": np.array(power), "work": np.array(system.spent[0]),
        }  # fmt: skip

    def twin(self) -> GlideTwin:
        """Memory and steps beside the plant's own, for `rtmms.monitor`."""
        return GlideTwin(self)

    def summarise(self, time: Array, trace: Mapping[str, Any]) -> dict[str, float | None]:
        """Numbers for the report."""
        return {} if self.summary is None else self.summary(self, time, trace)
