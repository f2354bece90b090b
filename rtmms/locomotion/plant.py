"""A plant without inertia: its joints follow commands, and it moves by its Stokes connection."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np

from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.jit import COMPILED, compile_progress, kernel
from rtmms.base.memory import INTEGER, Layout, given, model, number, part, scratch, state, whole
from rtmms.base.spatial import Array, unpack_inertia
from rtmms.locomotion.commanded_gaits import commanded_gaits
from rtmms.locomotion.connections import NAMES, WEIGHTED, WORK, Connection, effort, model_of, net_twist, resist
from rtmms.locomotion.group import NODES, WEIGHTS, transport
from rtmms.locomotion.paths import Gait, Path
from rtmms.locomotion.reconstruction import Motion
from rtmms.mechanism.actuators import attached
from rtmms.mechanism.joint_laws import limited, settle
from rtmms.mechanism.step import finite, saturate
from rtmms.model.compiled import Model
from rtmms.model.description import Mechanism, displaced_density
from rtmms.plant.kernel_plant import KernelPlant, RecordErrorEstimator
from rtmms.plant.protocol import Channel, Plant, SavedState, Surroundings, TunableGait, water_density
from rtmms.plant.validation import limits_of, read_seed, refuse_not_finite

# Abilities of a plant that its shape moves: its connection, its named gaits, the limits of its joints.


@dataclass(frozen=True)
class Locomotion:
    """kind of its connection (rtmms.locomotion.connections); words of its own gaits by name; what `rtmms gaits` seeks.

    gaits   {name: gait}: a word as `rtmms gaits --gait` takes it ('circle:a=1'), a Path, or Sines
    note    {name: text} of what such a gait is
    goal    what the best gait is sought for: 'distance' or 'turn' (rtmms.locomotion.optimise)
    shape   m or rad: a gait of about that amplitude is where the search begins
    travel  the motion of so many cycles of a gait, from rest, where it takes dynamics; None: the connection gives it
    """

    kind: str
    gaits: Mapping[str, Gait] = field(default_factory=dict)
    note: Mapping[str, str] = field(default_factory=dict)
    goal: str = "distance"
    shape: float = 1.0
    travel: Callable[[Model, Path, int], Motion] | None = None

    def commanded(self, actuators: Sequence[Channel]) -> dict[str, TunableGait]:
        """Return the gaits that these actuators can play, as periodic commands by name."""
        return commanded_gaits(self.gaits, actuators)


@runtime_checkable
class Locomoting(Plant, Protocol):
    """A plant of a mechanism whose net motion follows from its shape's motion."""

    model: Model
    locomotion: Locomotion | None


def limits(plant: Locomoting) -> tuple[Array, Array]:
    """(p,) least and (p,) greatest shape: of the plant's angle actuators; infinite where there is none."""
    names = plant.model.joint_names
    least, greatest = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    for channel in plant.actuators:
        joint, _, what = channel.name.rpartition(".")
        if what == "angle" and joint in names:
            k = names.index(joint)
            least[k] = -np.inf if channel.lower is None else channel.lower
            greatest[k] = np.inf if channel.upper is None else channel.upper
    return least, greatest


# A step of a plant without inertia: joints follow their commands, and the whole moves as the connection has it.


POSE = 7
GLIDE = Layout(
    "Glide",
    state("pose", POSE), state("joints", 3, "n", unit="rad, rad/s"), state("spent", 1, unit="J"),
    part("tree", WEIGHTED), part("work", WORK), model("bandwidth", "n", unit="rad/s"),
    model("driven", "commands", dtype=INTEGER), given("given", "commands"), model("limits", "commands", 2),
    number("dt", unit="s"),
    scratch("twists", 3, 6), scratch("poses", 2, POSE), scratch("turned", 2), scratch("lengths", 1),
    scratch("series", 8, 6), scratch("torque", "n", unit="N m"), whole("memory"),
)  # fmt: skip
"""All that a plant without inertia steps with. pose: position (m) and quaternion, world; joints: target, position and
rate; spent: work; driven: the joint that each command moves."""
SOUND, BAD_COMMAND, NOT_FINITE, SINGULAR = 0, 1, 2, 3
"""SINGULAR + row of the twist: what meets no drag."""


@kernel
def joints_at(joints: Any, bandwidth: Any, t: float, q: Any, qd: Any) -> None:
    """Joints t seconds on: a critically damped filter of second order towards their targets, exactly."""
    for j in range(q.shape[0]):
        x, v, _ = settle(joints[1, j], joints[2, j], joints[0, j], bandwidth[j], t)
        q[j], qd[j] = x, v


@kernel
def glide(system: Any) -> int:
    """Advance by dt with the command held. A status, see above."""
    tree, work, joints, pose, dt = system.tree, system.work, system.joints, system.pose, system.dt
    twists, poses, lengths, bandwidth = system.twists, system.poses, system.lengths, system.bandwidth
    driven, given, q, qd = system.driven, system.given, work.q, work.qd
    if not finite(given):
        return BAD_COMMAND
    saturate(given, system.limits)
    for a in range(driven.shape[0]):
        joints[0, driven[a]] = given[a]
    spent = 0.0
    for i in range(3):
        joints_at(joints, bandwidth, NODES[i] * dt, q, qd)
        fault = net_twist(tree, q, qd, work, twists[i])
        if fault >= 0:
            return SINGULAR + fault
        spent += WEIGHTS[i] * dt * effort(tree, qd, twists[i], work)
    lengths[0] = dt
    for k in range(POSE):
        poses[0, k] = pose[k]
    transport(twists, lengths, poses, system.turned, system.series)
    if not (finite(poses[1]) and np.isfinite(spent)):
        return NOT_FINITE
    for k in range(POSE):
        pose[k] = poses[1, k]
    joints_at(joints, bandwidth, dt, q, qd)
    for j in range(q.shape[0]):
        joints[1, j], joints[2, j] = q[j], qd[j]
    system.spent[0] += spent
    return SOUND


@kernel
def observe(system: Any) -> float:
    """Present twist into twists[0] and the joints' torques; returns the power, W."""
    tree, work, twists, torque, joints = system.tree, system.work, system.twists, system.torque, system.joints
    q, qd = work.q, work.qd
    for j in range(q.shape[0]):
        q[j], qd[j] = joints[1, j], joints[2, j]
    net_twist(tree, q, qd, work, twists[0])
    power = effort(tree, qd, twists[0], work)
    resist(tree, work, torque)
    return power


_glide_at = GLIDE.type().at()


@kernel
def enter_glide(address: int) -> int:
    """One step of the plant whose record stands at `address`; the status of `glide`."""
    return glide(_glide_at(address))


# Steps of a plant without inertia beside its own, in memory of their own (rtmms.plant.protocol.StepErrorEstimator).


ORDER = 6
"""Of the integral over the group; joints follow their commands exactly."""


def _reach(model: Model) -> float:
    """m, how far from their origins the bodies' drag acts: sqrt of its moments over its forces."""
    drag = np.sum([np.diag(unpack_inertia(packed)) for packed in model.viscous], axis=0)
    return float(np.sqrt(drag[3:].sum() / drag[:3].sum()))


class GlideErrorEstimator(RecordErrorEstimator):
    """See rtmms.plant.protocol.StepErrorEstimator.

    Velocities are no part of the state: the monitor measures the robot's place.
    """

    order, bounded, base_moves = ORDER, False, True

    def __init__(self, plant: Any) -> None:
        self.length = _reach(plant.model)
        super().__init__(plant)

    def _kept(self, memory: Array) -> SavedState:
        parts = self.plant.system.state_views(memory[:-1])
        pose, joints = parts["pose"], parts["joints"]
        return SavedState(memory, pose[:3], pose[3:], np.zeros(6), joints[1], parts["spent"])


# A plant without inertia: its joints move as commanded, and it goes where its Stokes connection takes it.


@dataclass(eq=False)
class ConnectionPlant(KernelPlant):
    """A mechanism with Body.viscous as a plant (see rtmms.plant.protocol.Plant): eta = -A(r) rd at every instant.

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
    half_span_m: float | None = None

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
        decisive = self._bandwidth.tobytes() + self._joints.tobytes() + start.tobytes()
        self._key = hashlib.sha256(self.model.digest.encode() + decisive).digest()
        self.system = GLIDE.make({
            "tree": self.connection.tree, "work": {}, "bandwidth": self._bandwidth, "driven": self._joints,
            "given": self._given, "limits": limits_of(self.actuators), "dt": self.dt,
        }, {"n": p})  # fmt: skip
        self.memory = self.system.memory
        self._bind_step()
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
        system.pose[2], system.pose[3], system.joints[:2] = self.start_height, 1.0, self.initial

    def _step_kernel(self) -> Any:
        return enter_glide if COMPILED else None

    def _plain_step(self, system: Any) -> int:
        return int(glide(system))

    def _places_of(self, system: Any) -> dict[str, tuple[int, int]]:
        p, joints = self.model.n, POSE
        return {
            "position": (0, 3), "quaternion": (3, 4), "joint_position": (joints + p, p),
            "joint_velocity": (joints + 2 * p, p), "work": (joints + 3 * p, 1),
        }  # fmt: skip

    def _fail(self, status: int) -> NoReturn:
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

    def step_error_estimator(self) -> GlideErrorEstimator:
        """Memory and steps beside the plant's own, for `rtmms.plant.monitor`."""
        return GlideErrorEstimator(self)

    def commanded_gaits(self) -> Mapping[str, TunableGait]:
        """Return the gaits of its shape as commands, by name; empty without `locomotion`."""
        return {} if self.locomotion is None else self.locomotion.commanded(self.actuators)

    def summarise(self, time: Array, trace: Mapping[str, Any]) -> dict[str, float | None]:
        """Numbers for the report."""
        return {} if self.summary is None else self.summary(self, time, trace)
