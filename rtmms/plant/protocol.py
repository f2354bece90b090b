"""The face of a simulated robot: what the loop, the wire and a user's script see of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rtmms.base.errors import ArgumentError, ModelError, Renamed, UnknownNameError, warn_renamed
from rtmms.base.trust import asked_by_program, refuse_unnamed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Channel:
    """One actuator or output of a plant.

    name     dotted, unique within the plant, for example 'left.front'
    unit     SI, for example 'rad', 'm/s'; '' for none
    shape    () for a scalar; arrays travel flattened in row-major order
    frame    'world', 'body', or '' where no frame is meant
    lower, upper   limits of an actuator (inclusive), None where there is none
    neutral  the value an actuator goes home to
    """

    name: str
    unit: str = ""
    shape: tuple[int, ...] = ()
    frame: str = ""
    lower: float | None = None
    upper: float | None = None
    neutral: float = 0.0


class CoupledLimit(NamedTuple):
    """A limit of the difference of two commands, first - second by their places: a plant saturates it smoothly.

    most   it stays within -most and most;  obeyed  up to here it is obeyed as it is
    """

    first: int
    second: int
    most: float
    obeyed: float


@runtime_checkable
class Plant(Protocol):
    """A fixed-step simulator. Anything with these members gets the loop, the wire and the bridges."""

    dt: float
    actuators: tuple[Channel, ...]
    outputs: tuple[Channel, ...]

    def reset(self, seed: int = 0) -> None:
        """Back to t = 0; the same seed gives the same bits."""

    def step(self, command: Array) -> None:
        """Advance by dt with `command` (n_actuators,) held, in the order of `actuators`; DivergedError if it fails."""

    def observe(self) -> dict[str, Array]:
        """Return the outputs at the present state, by name: a function of the state alone. Later steps leave them."""

    def snapshot(self) -> bytes:
        """The whole state; `restore` of it continues with the same bits."""

    def restore(self, blob: bytes) -> None:
        """Back to a snapshot of the same model; ModelError if it is another's."""


def refuse_fixed(robot: str, given: Mapping[str, Any], settable: Iterable[str], known: Iterable[str]) -> None:
    """What a plant's `set` refuses: a change of sizes, channels or states.

    UnknownNameError for a parameter that there is none of, ModelError for one that stays as it was built, or where
    nothing is given; each states what may change, and nothing else."""
    settable, known = tuple(settable), tuple(known)
    if not given:
        raise ModelError(f"set: expected parameter = value, got nothing; what can change: {', '.join(settable)}")
    for name in given:
        if name not in known:
            raise UnknownNameError(f"{robot} parameter", name, settable)
        if name not in settable:
            raise ModelError(
                f"set: {robot}: {name} stays as it was built; what can change while it runs: {', '.join(settable)}"
            )


WORLD = "world"
"""What several robots on one clock are called, where a robot's name is expected (rtmms.World)."""


def robots() -> dict[str, Any]:
    """The entry points of group rtmms.plants by name: ours and third parties' alike."""
    return {point.name: point for point in entry_points(group="rtmms.plants")}


DATA_ENDINGS = ("urdf", "xml")
"""Of files of robots that run nothing."""


def builder(robot: str) -> Any:
    """The entry point that builds a robot: by its name, or, for a file, by the end of its name (group
    rtmms.plant_files, for example '.fmu'), which 'FILE.py:NAME' has before a colon. UnknownNameError, or ModelError
    where there is no such file, ArgumentError for what is no text."""
    if not isinstance(robot, str):
        raise ArgumentError(f"robot: expected a name or a file as text, got {robot!r:.60}")
    known = robots()
    if robot in known:
        return known[robot]
    if robot == WORLD:
        return EntryPoint(WORLD, "rtmms.world.world:build", "rtmms.plants")
    files = {point.name: point for point in entry_points(group="rtmms.plant_files")}
    before, colon, _ = robot.rpartition(":")
    for file in (robot, before) if colon else (robot,):
        ending = file.rpartition(".")[2]
        if "." in file and ending in files:
            if not os.path.isfile(file):
                raise ModelError(f"robot '{file}': there is no such file")
            if ending not in DATA_ENDINGS:
                refuse_unnamed(file, f"robot '{robot}'")
            return files[ending]
    endings = "a file runs as FILE.urdf, FILE.xml (MJCF), FILE.fmu or FILE.py:NAME"
    raise UnknownNameError("robot", robot, known, endings)


def load(robot: str, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> Plant:
    """Build the plant of a robot by name.

    robot       a name from `rtmms list robots`, or a FILE.urdf, FILE.xml (MJCF), FILE.fmu or FILE.py:NAME
    dt          step in s; None for the robot's own
    preset      a named set of parameters of that robot, or a FILE.toml of parameters, which may name a preset to start
                from (key `preset`); keywords given beside it win
    parameters  any parameter of the robot, see its page in docs/
    Raises UnknownNameError or ModelError, each naming the place, what was got and what is expected.
    """
    with asked_by_program():
        return build_plant(robot, dt=dt, preset=preset, **parameters)


def build_plant(robot: str, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> Plant:
    """Build a plant as `load` does, for rtmms itself: data may have named the robot.

    Raises
    ------
    ModelError
        As `load`, and where the robot is a file that would run as code and the user did not name (rtmms.base.trust).
    """
    if preset is not None and not isinstance(preset, str):
        raise ModelError(f"preset: expected a name or a FILE.toml, got {preset!r:.60}")
    return build_by(maker(robot), dt=dt, preset=preset, **parameters)


def maker(robot: str) -> Callable[..., Plant]:
    """Return the function that makes plants of a robot, for callers that build many: the search for it takes longer
    than some plants.

    Raises
    ------
    UnknownNameError, ModelError
        As `builder`.
    """
    point = builder(robot)
    make: Callable[..., Plant] = point.load()
    return partial(make, robot) if point.group == "rtmms.plant_files" else make


def build_by(make: Callable[..., Plant], *, dt: float | None, preset: str | None, **parameters: Any) -> Plant:
    """Build a plant by the function that `maker` returned, as `build_plant` does."""
    # a third party's plant need not know of steps and presets that nobody asks it for
    asked = {name: value for name, value in (("dt", dt), ("preset", preset)) if value is not None}
    if preset is None or not preset.endswith(".toml"):
        plant: Plant = make(**asked, **parameters)
        return plant
    from rtmms.base.toml_file import read_toml

    written = read_toml(preset, "preset")
    keys = [key for key in written if key not in parameters and (key != "dt" or dt is None)]
    given = {**written, **parameters, **({} if dt is None else {"dt": dt})}
    try:
        plant = make(**given)
    except ModelError as error:
        if any(key in str(error) for key in keys):
            raise ModelError(f"{preset}: {error}") from None
        raise
    return plant


# What a plant may have beside that: a description of what does not change, and behaviour asked for by isinstance.


class Surroundings(NamedTuple):
    """What a plant moves in, as instruments on it meet it.

    gravity   (3,) m/s2, world: what a body that is let go accelerates by
    density   kg/m3 of the water around; 0 where there is none
    surface   m, height of the water's surface, world
    """

    gravity: tuple[float, float, float]
    density: float = 0.0
    surface: float = 0.0


STANDARD_GRAVITY, WATER, LIQUID = 9.80665, 1000.0, 100.0
"""m/s2 and kg/m3 of what does not declare its own; from this density on a fluid is no gas."""


def water_density(medium: str, stated: float | None) -> float:
    """kg/m3 of the water around a plant of this medium, whose bodies displace a fluid as dense as `stated` (None:
    unknown). A plant without a medium is in water where that fluid is as dense as a liquid."""
    if medium == "water":
        return WATER if stated is None else stated
    return stated if not medium and stated is not None and stated >= LIQUID else 0.0


class CommandedGait(Protocol):
    """A plant that moves by commands and knows a gait of them, which `rtmms trim` closes.

    gait   its parameters by name, with their defaults
    """

    dt: float
    gait: Mapping[str, float]

    def gait_period(self, **gait: float) -> float:
        """s; ModelError for parameters that give none."""

    def gait_commands(self, steps: int, **gait: float) -> Array:
        """(steps, n_actuators) of a period, each for a step of period / steps."""


class TunableGait(Protocol):
    """A gait of commands whose parameters `rtmms.trim` may change.

    Attributes
    ----------
    gait : mapping of str to float
        Default of each parameter, in the unit that its name ends in.
    gait_ranges : mapping of str to (float, float)
        Lowest and highest value of each parameter that may change; `frequency_hz` is one of them where it may.
    """

    @property
    def gait(self) -> Mapping[str, float]: ...

    @property
    def gait_ranges(self) -> Mapping[str, tuple[float, float]]: ...

    def gait_period(self, **gait: float) -> float:
        """Return the period, s."""

    def gait_commands(self, steps: int, **gait: float) -> Array:
        """Return the commands (steps, n_actuators) of one period."""


@runtime_checkable
class HasCommandedGaits(Protocol):
    """A plant that has gaits of commands: `rtmms.trim` seeks steady motions among them."""

    def commanded_gaits(self) -> Mapping[str, TunableGait]:
        """Return the gaits by name, the usual one first; empty where the plant has none."""


def _nothing() -> None:
    """Value of what a plant does not have."""


def _standard_surroundings() -> Surroundings:
    return Surroundings((0.0, 0.0, -STANDARD_GRAVITY), WATER)


@dataclass(frozen=True, kw_only=True)
class PlantDescription:
    """Static properties of a plant, beside the members of `Plant`; `describe_plant` returns that of any plant.

    A value holds as long as the plant. A property that may change while the plant runs is a function without arguments
    that returns the present one. None, or empty: the plant does not have it.

    medium         'water', whose robots have a depth, positive down; 'air', whose robots have an altitude, positive up
    half_span_m    m; a robot in water that is less deep than that is near the surface; None: nobody looks
    airframe       name of the layout of its rotors or thrusters, such as 'quad_plus', by which bridges of autopilots
                   find their channels (bridges/autopilot/airframes.py)
    parameters     () -> a dataclass or a mapping
    set, settable  changes parameters between steps (all or none; ModelError, UnknownNameError), and their names; None
                   for the names where the plant does not list them
    coupled        limits of differences of two commands; what is beyond `obeyed` counts as clamped
    coupling       how its parts share a step
    trace_outputs, summarise   numbers for the report from samples of these outputs: (time (k,) s, {name: (k, *shape)})
                   -> {name: number, None where undefined}
    recent_outputs   outputs of the last seconds of a run that its figure needs
    figure         draws its own figure of a run: (path, samples of the run, of its last seconds, timings)
    shape          () -> what viewers draw of it, in the frame of `position` and `quaternion` (docs/view.md):
                   {"joints": [{"parent", "position", "quaternion", "slides"}, ...] of `joint_position`, each about
                   (along) its z axis, parent 0 the body, k the k-th joint; "parts": [{"name", "body", "kind",
                   "position", "quaternion", "size"}, ...] with the kinds ellipsoid, box and cylinder and full sizes in
                   m; "skins": [{"name", "points", "triangles", "lines"}, ...], points the name of an output (n, 3), m,
                   body frame; "cords": [{"name", "points": [[k, x, y, z], ...]}, ...], lines through points in m of the
                   body (k = 0) and of the k-th joint's frame}; each may be missing
    surroundings   () -> what it moves in
    ends           () -> s, simulated, until which its surroundings are known (a flow from a file)
    home           () -> where `reset` places it: arguments of its `place`, by name; empty: where it starts by itself
    gait           a gait of commands that it knows
    step_error_estimator  () -> steps beside its own, by which its steps are checked
    accurate       error of the path, a fraction -> the longest step, s (`StepErrorEstimator.finer`), of its own gait
    truth, sensors   of a plant seen through sensors: the plant itself, whose outputs are 'truth.NAME' here, and sensors
    estimates      whether it has an estimate of its motion, as outputs 'estimate.NAME', made by its `estimator`
    step_time_varies   why the time of a step has no bound, as 'contacts'; a run then states the measured time before it
                   starts. '': each step takes the same time
    """

    medium: str = ""
    half_span_m: float | None = None
    airframe: str = ""
    parameters: Callable[[], Any] = _nothing
    set: Callable[..., None] | None = None
    settable: tuple[str, ...] | None = None
    coupled: tuple[CoupledLimit, ...] = ()
    coupling: str | None = None
    trace_outputs: tuple[str, ...] = ()
    summarise: Callable[[Array, Mapping[str, Array]], dict[str, float | None]] | None = None
    recent_outputs: tuple[str, ...] = ()
    figure: Callable[[Any, Any, Any, Any], None] | None = None
    shape: Callable[[], Mapping[str, Any] | None] = _nothing
    surroundings: Callable[[], Surroundings] = _standard_surroundings
    ends: Callable[[], float | None] = _nothing
    home: Callable[[], Mapping[str, Any] | None] = _nothing
    gait: CommandedGait | None = None
    step_error_estimator: Callable[[], StepErrorEstimator] | None = None
    accurate: Mapping[float, float] = field(default_factory=dict)
    truth: Plant | None = None
    sensors: Mapping[str, Any] = field(default_factory=dict)
    estimates: bool = False
    step_time_varies: str = ""


_VALUES = (
    "medium", "half_span_m", "airframe", "set", "settable", "coupled", "coupling", "recent_outputs", "figure",
    "step_error_estimator", "accurate", "step_time_varies",
)  # fmt: skip
_PRESENT = ("parameters", "shape", "ends", "home")
_TOGETHER = (("trace_outputs", "summarise"), ("truth", "sensors"))
"""Optional members of a plant that a description has under the same name: values, those that may change, and pairs."""


def describe_plant(plant: Any) -> PlantDescription:
    """Return the plant's `description`, or one of the optional members that it has.

    A description costs some microseconds: take it where something is built, not in a step.
    """
    own = getattr(plant, "description", None)
    if isinstance(own, PlantDescription):
        return own
    found = {name: value for name in _VALUES if (value := getattr(plant, name, None)) is not None}
    found |= {new: _renamed_member(plant, old, new) for old, new in RENAMED_MEMBERS.items()
              if new not in found and _has_own(plant, old)}  # fmt: skip
    found |= {name: partial(getattr, plant, name, None) for name in _PRESENT}
    for names in _TOGETHER:
        if all(hasattr(plant, name) for name in names):
            found |= {name: getattr(plant, name) for name in names}
    if all(hasattr(plant, name) for name in ("gait", "gait_period", "gait_commands")):
        found["gait"] = plant
    found["surroundings"] = getattr(plant, "surroundings", None) or partial(_assumed_surroundings, plant)
    return PlantDescription(**found, estimates=hasattr(plant, "estimator"))


RENAMED_MEMBERS = {"twin": "step_error_estimator"}
"""Old name of an optional member, and the name that replaced it in 0.3; the old ones go with the next version."""


def _has_own(plant: Any, old: str) -> bool:
    """Return whether a plant has a member of its own by an old name, not our alias."""
    return not isinstance(getattr(type(plant), old, None), Renamed) and callable(getattr(plant, old, None))


def _renamed_member(plant: Any, old: str, new: str) -> Any:
    warn_renamed(type(plant).__name__, old, new, stacklevel=3)
    return getattr(plant, old)


def _assumed_surroundings(plant: Any) -> Surroundings:
    """Return the surroundings of a plant that declares none.

    Its parameter gravity_m_s2, else standard gravity, acts downwards. It is in water unless its medium is another.
    """
    parameters: Any = getattr(plant, "parameters", None)
    gravity = parameters.get("gravity_m_s2") if isinstance(parameters, Mapping) else getattr(
        parameters, "gravity_m_s2", None
    )  # fmt: skip
    pull = float(gravity) if isinstance(gravity, int | float) and not isinstance(gravity, bool) else STANDARD_GRAVITY
    medium = getattr(plant, "medium", "")
    return Surroundings((0.0, 0.0, -pull), WATER if medium in ("", "water") else 0.0)


class Wrapper:
    """Base of a plant around plants: it has the optional members that its description has.

    A subclass sets `description` when it is built, `dataclasses.replace(describe_plant(inner), ...)` with what it adds,
    renames or takes away.
    """

    description: PlantDescription

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.description, name) if name in _MEMBERS else None
        if found is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return found() if name in _PRESENT else found


_MEMBERS = (*_VALUES, *_PRESENT, *_TOGETHER[0], "surroundings")


def bare(plant: Plant) -> Plant:
    """The plant itself, within its sensors, faults and levels."""
    found: Any = describe_plant(plant).truth or plant
    found = getattr(found, "sound", found)
    return getattr(found, "full", found)  # type: ignore[no-any-return]


@runtime_checkable
class Degradable(Protocol):
    """A plant with cheaper variants of itself, for `--degrade` (rtmms.world.levels)."""

    def variants(self) -> Sequence[Any]:
        """Plants with the same channels and step, each cheaper than the one before, made and warm. Each has
        `take_over`, and where it likes `variant`, a few words on what it is."""

    def take_over(self, other: Any) -> None:
        """Into the state of another of these plants (the full one or a variant), without a jump: pose, velocity,
        momentum and energy of the body are kept, and the forces on it. The same bits from the same state."""


class Levelled(Protocol):
    """A plant of which a variant steps (rtmms.world.levels.Levels): `set(level=k)` changes it.

    costs   s, a step of each, from the full model on
    """

    level: int
    costs: tuple[float, ...]


@runtime_checkable
class Composed(Protocol):
    """Several plants on one clock: channels of each are named NAME.channel.

    robots   the plants by name, seen through their sensors if they have some;  kinds  what each one is, its robot
    """

    robots: Mapping[str, Plant]
    kinds: Mapping[str, str]

    def described(self) -> list[dict[str, Any]]:
        """The robots as a log keeps them."""

    def owners(self, key: str) -> list[tuple[str, str]]:
        """Return robots that a key of `set` changes, and their own name of it; ModelError, UnknownNameError."""


class SavedState(NamedTuple):
    """A state that was kept: all of it, and views of what is measured.

    position (3,) m, world; quaternion (4,); twist (6,) m/s, rad/s, body; joints rad or m, of any shape; work (k,) J,
    whose sum is the work of the actuators, None where the state does not carry it
    """

    all: Array
    position: Array
    quaternion: Array
    twist: Array
    joints: Array
    work: Array | None


class StepErrorEstimator(Protocol):
    """Steps beside a plant's own, in memory of their own: the plant and its bits stay as they are.

    dt, order   s, of the plant's step and its method;  finer  the parameter that shortens the step, and its value in s
    bounded     whether the method is stable up to some |lambda| dt only
    base_moves  whether there is a way that can be wrong;  length  m: a turn by 1 rad counts as a way of that
    state       where the estimator stands
    """

    dt: float
    order: int
    bounded: bool
    base_moves: bool
    length: float
    state: SavedState

    @property
    def now(self) -> int:
        """Steps of the plant since its reset."""

    @property
    def finer(self) -> tuple[str, float]: ...

    def room(self) -> SavedState:
        """Memory for one more state."""

    def keep(self, at: SavedState) -> None:
        """The plant's present state."""

    def divide(self, parts: int) -> None:
        """The steps that are called halves are of dt / parts from the next `start` on, a power of two; 2 at first."""

    def start(self, at: SavedState, halves: bool) -> None:
        """The estimator stands there from now on; halves: its next steps are of dt / 2 (see `divide`)."""

    def step(self, command: Array, halves: bool) -> bool:
        """One step; False where it fails."""


@runtime_checkable
class HasPrescribedJoints(StepErrorEstimator, Protocol):
    """An estimator with prescribed joints: half steps, too, may miss what a step's stages miss of their motion."""

    def unseen(self, begin: SavedState, end: SavedState) -> float:
        """rad2, the sum of squares over the joints: how far they went from `begin` to `end`, a step later, without any
        stage of the step seeing it. The command is that of the last step of this estimator."""


@runtime_checkable
class HasPower(StepErrorEstimator, Protocol):
    """An estimator whose states carry no work, but have the power that goes in."""

    def power(self, at: SavedState) -> float:
        """W, in a state; the estimator stands there afterwards."""


@runtime_checkable
class HasStepErrorEstimator(Protocol):
    """A plant whose steps can be checked by steps beside it, by `rtmms.plant.monitor`."""

    def step_error_estimator(self) -> StepErrorEstimator: ...


class CompiledStep(NamedTuple):
    """A step as compiled code may take it, without Python: addresses, as whole numbers.

    function   of a C function that takes the arguments, words of 64 bits, and gives a status, 0 when all is well
    command    where it looks for the command, n_actuators float64
    """

    function: int
    arguments: tuple[int, ...]
    command: int


@runtime_checkable
class HasCompiledStep(Protocol):
    """A plant whose step is compiled code that may be called without it."""

    def compiled_step(self) -> CompiledStep | None:
        """The next step may be taken so, as soon as its command is in place: what comes before it is done. None: by
        `step` alone."""

    def finish_compiled_step(self, status: int) -> None:
        """It was: what comes after it. Raises what `step` raises."""


class Fork(NamedTuple):
    """A run beside the plant's, in memory of its own, by the plant's model and kernels at the time of the fork.

    Attributes
    ----------
    entry : CompiledStep
        One step of the fork.
    state : (w,) array
        All that a snapshot contains except the count of steps.
    sound : (w,) array
        The last sound state, to which a failed step returns.
    start : (1,) array
        Time at which a step begins, s. The caller writes it.
    places : mapping
        Outputs that the state contains: first index and size of each.
    clear : callable
        Fills the scratch memory anew, after a failed step.
    follow : callable
        Takes the plant's present model and parameters. It returns False where only a new fork can have them.
    owner : object
        Keeps the memory alive.
    account : CompiledOutputs, optional
        Compiled code of further outputs. Without it, the plant's `observe` returns them.
    """

    entry: CompiledStep
    state: Array
    sound: Array
    start: Array
    places: Mapping[str, tuple[int, int]]
    clear: Callable[[], None]
    follow: Callable[[], bool]
    owner: Any
    account: CompiledOutputs | None = None


@runtime_checkable
class HasFork(Protocol):
    """A plant that can have many runs side by side (rtmms.analysis.rollouts)."""

    def fork(self, memory: Array | None = None) -> Fork | None:
        """At the present state. None: it can be stepped by `step` alone.

        memory: array for the fork's state, of the size of `present()[0]`; None: a new one.
        """

    def present(self) -> tuple[Array, int]:
        """A copy of the state as a Fork has it, and the steps since the reset."""

    def put(self, state: Array, steps: int) -> None:
        """The plant stands there, as after `restore`."""


class RolledOut(NamedTuple):
    """What `RollsOut.roll_out` returns.

    outputs   {name: (runs, samples, *shape)}
    ends      (runs, width) states at the end, as `present` returns them
    sound     (runs,) bool; a run that is not must be repeated by `step`, which raises what failed
    """

    outputs: dict[str, Array]
    ends: Array
    sound: npt.NDArray[np.bool_]


@runtime_checkable
class RollsOut(Protocol):
    """A plant without forks that advances many runs at once by a simulator of its own (rtmms.analysis.rollouts)."""

    def can_roll_out(self) -> bool:
        """Return whether the simulator that is installed can; otherwise runs are stepped in turn."""

    def roll_out(
        self, starts: Array, commands: Array, steps: int, every: int, names: Sequence[str], threads: int
    ) -> RolledOut:
        """Advance runs from `starts` (runs, width) under `commands` (runs or 1, steps or 1, n_actuators)."""

    def present(self) -> tuple[Array, int]:
        """A copy of the present state, and the steps since the reset."""

    def put(self, state: Array, steps: int) -> None:
        """Go to a state, as after `restore`."""


class Coordinates(NamedTuple):
    """Coordinates of a fork's state. Except for a free body's pose, each is an element of that array.

    Attributes
    ----------
    names, units : tuple of str
        Of each coordinate, in order.
    size : (k,) array
        Typical size of each coordinate, for scaling.
    words : (k,) array of int64
        Index of each coordinate in the state. The entries of a pose have no meaning.
    pose : int
        Index of position (3, m, world) and quaternion (4, body to world); -1 without a pose. The first six
        coordinates are then its errors in the body's axes: p = p_ref + R_ref e, R = R_ref exp(theta^).
    has_dependents : (k,) array of bool
        Whether other elements of the state depend on a coordinate (`HasCoordinates.settling`).
    history_indices : (f,) array of int64
        Elements that keep values of earlier steps. Derivatives set them to 0.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    size: Array
    words: npt.NDArray[np.int64]
    pose: int
    has_dependents: npt.NDArray[np.bool_]
    history_indices: npt.NDArray[np.int64]


@runtime_checkable
class HasCoordinates(HasFork, Protocol):
    """A plant whose steps are differentiated on forks, by compiled code (rtmms.analysis.derivatives)."""

    def coordinates(self) -> Coordinates: ...

    def settling(self, fork: Fork) -> CompiledStep:
        """Return compiled code that computes the dependent elements of a fork's state; its status is 0 on success."""


class CompiledOutputs(NamedTuple):
    """Outputs as compiled code may ask for them: a function as in Entry, and where they are then.

    numbers   of each output it has: address of its float64, in row-major order, and how many
    derived   outputs that follow from others: the names of these, and a function of their rows (samples, width) each
              that returns the output's rows (samples, width); names that no output has are numbers of the account
    """

    function: int
    arguments: tuple[int, ...]
    numbers: Mapping[str, tuple[int, int]]
    derived: Mapping[str, tuple[tuple[str, ...], Callable[..., Array]]] = {}


@runtime_checkable
class HasCompiledOutputs(HasCompiledStep, Protocol):
    """A plant whose outputs, too, compiled code can get without it. Of such a plant many steps may be taken in a row:
    `finish_compiled_step` is called once for all of them."""

    def compiled_outputs(self) -> CompiledOutputs | None:
        """None: by `observe` alone."""
