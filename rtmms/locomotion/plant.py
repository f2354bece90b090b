"""Provide a plant without inertia: its joints follow commands, and it moves by its Stokes connection."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np

from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.jit import COMPILED, compile_progress, kernel
from rtmms.base.memory import INTEGER, Layout, model, number, part, scratch, state, step_input, whole
from rtmms.base.override import override
from rtmms.base.spatial import Array, unpack_inertia
from rtmms.locomotion.commanded_gaits import commanded_gaits
from rtmms.locomotion.connections import NAMES, WEIGHTED, WORK, Connection, effort, model_of, net_twist, resist
from rtmms.locomotion.group import NODES, WEIGHTS, transport
from rtmms.locomotion.paths import Gait, Path
from rtmms.locomotion.reconstruction import Motion
from rtmms.mechanism.actuator_arrays import arrays_of_actuators
from rtmms.mechanism.joint_laws import hard_limits, settle
from rtmms.mechanism.step import finite, saturate
from rtmms.model.compiled import Model
from rtmms.model.description import Mechanism, displaced_density
from rtmms.plant.kernel_plant import KernelPlant, RecordErrorEstimator
from rtmms.plant.optional_protocols import SavedState
from rtmms.plant.protocol import Channel, Environment, Plant, TunableGait, water_density
from rtmms.plant.validation import limits_of, read_seed, refuse_not_finite


@dataclass(frozen=True)
class Locomotion:
    """Abilities of a plant that its shape moves.

    Parameters
    ----------
    kind : str
        Kind of its connection (rtmms.locomotion.connections).
    gaits : Mapping[str, Gait], optional
        Its own gaits by name: a word as `rtmms gaits --gait` takes it ('circle:a=1'), a Path, or Sines.
    note : Mapping[str, str], optional
        Descriptions of these gaits by name.
    goal : str, default 'distance'
        Goal of the best gait: 'distance' or 'turn' (rtmms.locomotion.optimise).
    shape : float, default 1.0
        Amplitude of the gait at which the search begins, m or rad.
    travel : callable, optional
        Function of model, path and number of cycles that returns the motion from rest, where dynamics decides it; None:
        the connection gives it.
    """

    kind: str
    gaits: Mapping[str, Gait] = field(default_factory=dict)
    note: Mapping[str, str] = field(default_factory=dict)
    goal: str = "distance"
    shape: float = 1.0
    travel: Callable[[Model, Path, int], Motion] | None = None

    def commanded(self, actuators: Sequence[Channel]) -> dict[str, TunableGait]:
        """Return the gaits that these actuators can play, as periodic commands.

        Parameters
        ----------
        actuators : Sequence[Channel]
            Channels of the plant.

        Returns
        -------
        dict[str, TunableGait]
            Gaits by name.
        """
        return commanded_gaits(self.gaits, actuators)


@runtime_checkable
class HasLocomotion(Plant, Protocol):
    """A plant of a mechanism whose net motion follows from its shape's motion.

    Attributes
    ----------
    model : Model
        Compiled model.
    locomotion : Locomotion or None
        Its gaits and its connection; None for none.
    """

    model: Model
    locomotion: Locomotion | None


def limits(plant: HasLocomotion) -> tuple[Array, Array]:
    """Return the limits of the shape, from the plant's angle actuators.

    Parameters
    ----------
    plant : HasLocomotion
        The plant.

    Returns
    -------
    (array, array)
        Least and greatest shape, (p,) each; infinite where a joint has no limit.
    """
    names = plant.model.joint_names
    least, greatest = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    for channel in plant.actuators:
        joint, _, what = channel.name.rpartition(".")
        if what == "angle" and joint in names:
            k = names.index(joint)
            least[k] = -np.inf if channel.lower is None else channel.lower
            greatest[k] = np.inf if channel.upper is None else channel.upper
    return least, greatest


POSE = 7
GLIDE = Layout(
    "Glide",
    state("pose", POSE), state("joints", 3, "n", unit="rad, rad/s"), state("spent", 1, unit="J"),
    part("tree", WEIGHTED), part("work", WORK), model("bandwidth", "n", unit="rad/s"),
    model("driven", "commands", dtype=INTEGER), step_input("command", "commands"), model("limits", "commands", 2),
    number("dt", unit="s"),
    scratch("twists", 3, 6), scratch("poses", 2, POSE), scratch("turned", 2), scratch("lengths", 1),
    scratch("series", 8, 6), scratch("torque", "n", unit="N m"), whole("memory"),
)  # fmt: skip
"""Record of a plant without inertia.

pose: position (m) and quaternion, world; joints: target, position and rate; spent: work; driven: the joint that each
command moves.
"""
SOUND, BAD_COMMAND, NOT_FINITE, SINGULAR = 0, 1, 2, 3
"""Statuses of a step. SINGULAR + row of the twist: this motion meets no drag."""


@kernel
def joints_at(joints: Any, bandwidth: Any, t: float, q: Any, qd: Any) -> None:
    """Compute the joints t seconds later, exactly: a critically damped filter of second order towards their targets.

    Parameters
    ----------
    joints : (3, n) array
        Target, position and rate, rad and rad/s.
    bandwidth : (n,) array
        rad/s.
    t : float
        s.
    q : (n,) array
        Positions, rad; written.
    qd : (n,) array
        Rates, rad/s; written.
    """
    for j in range(q.shape[0]):
        x, v, _ = settle(joints[1, j], joints[2, j], joints[0, j], bandwidth[j], t)
        q[j], qd[j] = x, v


@kernel
def glide(system: Any) -> int:
    """Advance by dt with the command held.

    Parameters
    ----------
    system : Record
        Record of `GLIDE`; read and written.

    Returns
    -------
    int
        SOUND, BAD_COMMAND, NOT_FINITE, or SINGULAR + row of the twist.
    """
    tree, work, joints, pose, dt = system.tree, system.work, system.joints, system.pose, system.dt
    twists, poses, lengths, bandwidth = system.twists, system.poses, system.lengths, system.bandwidth
    driven, values, q, qd = system.driven, system.command, work.q, work.qd
    if not finite(values):
        return BAD_COMMAND
    saturate(values, system.limits)
    for a in range(driven.shape[0]):
        joints[0, driven[a]] = values[a]
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
    """Write the present twist to twists[0], and the torques of the joints.

    Parameters
    ----------
    system : Record
        Record of `GLIDE`; read and written.

    Returns
    -------
    float
        Power, W.
    """
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
    """Take one step of the plant whose record is at an address.

    Parameters
    ----------
    address : int
        Address of a record of `GLIDE`.

    Returns
    -------
    int
        Status of `glide`.
    """
    return glide(_glide_at(address))


ORDER = 6
"""Order of the integral over the group; joints follow their commands exactly."""


def _reach(model: Model) -> float:
    """Return the distance from their origins at which the bodies' drag acts: sqrt of its moments over its forces, m."""
    drag = np.sum([np.diag(unpack_inertia(packed)) for packed in model.viscous], axis=0)
    return float(np.sqrt(drag[3:].sum() / drag[:3].sum()))


class GlideErrorEstimator(RecordErrorEstimator):
    """Steps beside the plant's own, in separate memory (rtmms.plant.StepErrorEstimator).

    Velocities are no part of the state: the monitor measures the robot's place.

    Parameters
    ----------
    plant : ConnectionPlant
        The plant.
    """

    order = ORDER
    bounded = False
    base_moves = True

    def __init__(self, plant: Any) -> None:
        """Allocate the memory and find the length of the plant."""
        self.length = _reach(plant.model)
        super().__init__(plant)

    def _view_saved_state(self, memory: Array) -> SavedState:
        parts = self.plant.system.state_views(memory[:-1])
        pose, joints = parts["pose"], parts["joints"]
        return SavedState(memory, pose[:3], pose[3:], np.zeros(6), joints[1], parts["spent"])


@dataclass(eq=False)
class ConnectionPlant(KernelPlant):
    """A mechanism with Body.viscous as a plant (see rtmms.plant.protocol.Plant): eta = -A(r) rd at every instant.

    The outputs are those of `TreePlant`. Time is integrated to sixth order on the group.

    Parameters
    ----------
    mechanism : Mechanism or Model
        A description, or its compiled model, with joints driven by motion.
    actuators : sequence of JointMotion, default ()
        See rtmms.mechanism.actuators; a joint without one stays at its place. The built plant has their channels here.
    dt : float, default 0.001
        Step, s.
    initial : (p,) array_like, optional
        Shape at t = 0, rad or m; None for zeros.
    parameters : dataclass, optional
        The robot's own parameters, which the wire reports.
    locomotion : Locomotion, optional
        Its gaits and its connection; None for none.
    summary : callable, optional
        Function of the plant, times and trace that returns numbers for the report; None for none.
    trace_outputs : tuple[str, ...], optional
        Outputs that a run records.
    recent_outputs : tuple[str, ...], optional
        Outputs of which a run keeps the last values.
    medium : str, default 'water'
        'water', 'air', or '' for none.
    half_span_m : float, optional
        Half of its span, m; None where it has none.

    Raises
    ------
    ModelError
        The mechanism, the step or an actuator is wrong.
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
        """Check the fields, build the record, and compile the kernels."""
        self.model = model_of(self.mechanism)
        if isinstance(self.dt, bool) or not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{self.model.name}: dt must be > 0 s, got {self.dt!r}")
        self.connection = Connection(self.model, "stokes")
        more, p = arrays_of_actuators(self.model, self.actuators), self.model.n
        if len(more.pushes) or hard_limits(more.bounds).any() or any(drive.joint >= p for drive in more.drives):
            raise ModelError(f"{self.model.name}: actuators: expected JointMotion only, as this plant has no inertia")
        self.actuators = tuple(drive.channel for drive in more.drives)
        self._joints = np.array([drive.joint for drive in more.drives], dtype=np.int64)
        self._bandwidth = np.where(np.isnan(more.bandwidth), 20.0, more.bandwidth)
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        self._command = self.neutral.copy()
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
            "command": self._command, "limits": limits_of(self.actuators), "dt": self.dt,
        }, {"n": p})  # fmt: skip
        self.memory = self.system.memory
        self._bind_step()
        with compile_progress(f"the kernels of '{self.model.name}'"):
            self.reset()
            self.step(self.neutral)
            self.observe()
        self.reset()

    def environment(self) -> Environment:
        """Return the present environment of the plant.

        Returns
        -------
        Environment
            Gravity and the density of the water.
        """
        x, y, z = self.model.gravity.tolist()
        return Environment((x, y, z), water_density(self.medium, displaced_density(self.mechanism)))

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0.

        Parameters
        ----------
        seed : int, default 0
            Checked; it has no effect, because nothing here is random.
        """
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
            refuse_not_finite(name, self.actuators, self._command)
        reason = "is not finite" if status == NOT_FINITE else f"meets no drag in {NAMES[status - SINGULAR]}"
        raise DivergedError(self.time + self.dt, "velocity", self.observe(), reason)

    @override
    def observe(self) -> dict[str, Array]:
        system = self.system
        power = observe(system)
        pose, twist, (_, q, qd) = system.pose, system.twists[0], system.joints
        return {
            "position": pose[:3].copy(), "quaternion": pose[3:].copy(), "velocity": twist[:3].copy(),
            "angular_velocity": twist[3:].copy(), "joint_position": q.copy(), "joint_velocity": qd.copy(),
            "joint_torque": system.torque.copy(), "power": np.array(power), "work": np.array(system.spent[0]),
        }  # fmt: skip

    def step_error_estimator(self) -> GlideErrorEstimator:
        """Return memory and steps beside the plant's own, for `rtmms.plant.monitor`.

        Returns
        -------
        GlideErrorEstimator
            Estimator for this plant.
        """
        return GlideErrorEstimator(self)

    def commanded_gaits(self) -> Mapping[str, TunableGait]:
        """Return the gaits of its shape as commands; empty without `locomotion`.

        Returns
        -------
        Mapping[str, TunableGait]
            Gaits by name.
        """
        return {} if self.locomotion is None else self.locomotion.commanded(self.actuators)

    def summarise(self, time: Array, trace: Mapping[str, Any]) -> dict[str, float | None]:
        """Return numbers for the report.

        Parameters
        ----------
        time : (m,) array
            s.
        trace : Mapping[str, Any]
            Recorded outputs by name.

        Returns
        -------
        dict[str, float or None]
            Numbers by name; empty without `summary`.
        """
        return {} if self.summary is None else self.summary(self, time, trace)
