"""Provide the interface of a simulated robot, as the loop, the wire and users' scripts use it.

`Plant` has the members that each robot needs. `PlantDescription` has properties that do not change. The other protocols
are optional behaviour, which callers find by isinstance. `rtmms.plant.loading` builds a plant by the robot's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rtmms.base.errors import ModelError, Renamed, UnknownNameError, renamed_fields, warn_renamed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Channel:
    """One actuator or output of a plant.

    Parameters
    ----------
    name : str
        Dotted, unique within the plant, for example 'left.front'.
    unit : str, default ''
        SI, for example 'rad', 'm/s'; '' for none.
    shape : tuple[int, ...], default ()
        () for a scalar; arrays travel flattened in row-major order.
    frame : str, default ''
        'world', 'body', or '' where no frame is meant.
    lower, upper : float, optional
        Limits of an actuator (inclusive), None where there is none.
    neutral : float, default 0.0
        Value to which an actuator goes home.

    Examples
    --------
    >>> from rtmms.plant import Channel
    >>> Channel("left.front", unit="rad", lower=-0.5, upper=0.5).upper
    0.5
    """

    name: str
    unit: str = ""
    shape: tuple[int, ...] = ()
    frame: str = ""
    lower: float | None = None
    upper: float | None = None
    neutral: float = 0.0


class CoupledLimit(NamedTuple):
    """A limit of the difference of two commands, first - second, which a plant saturates smoothly.

    Attributes
    ----------
    first, second : int
        Indices of both actuators.
    max_difference : float
        The difference stays within -max_difference and max_difference.
    obeyed : float
        Up to this difference the commands are applied unchanged.
    """

    first: int
    second: int
    max_difference: float
    obeyed: float

    @property
    def most(self) -> float:
        """Old name of `max_difference`, with a warning."""
        warn_renamed("CoupledLimit", "most", "max_difference")
        return self.max_difference


@runtime_checkable
class Plant(Protocol):
    """A fixed-step simulator; anything with these members gets the loop, the wire and the bridges.

    Attributes
    ----------
    dt : float
        Step, s.
    actuators : tuple of Channel
        Inputs, in the order of a command.
    outputs : tuple of Channel
        Outputs that `observe` returns.
    """

    dt: float
    actuators: tuple[Channel, ...]
    outputs: tuple[Channel, ...]

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0.

        Parameters
        ----------
        seed : int, default 0
            The same seed gives the same bits.
        """

    def step(self, command: Array) -> None:
        """Advance by dt.

        Parameters
        ----------
        command : (n_actuators,) array
            Held over the step, in the order of `actuators`.

        Raises
        ------
        DivergedError
            The step failed.
        """

    def observe(self) -> dict[str, Array]:
        """Return the outputs at the present state, a function of the state alone.

        Returns
        -------
        dict of str to array
            Outputs by name; later steps do not change these arrays.
        """

    def snapshot(self) -> bytes:
        """Return the whole state; a run that `restore` starts from it continues with the same bits.

        Returns
        -------
        bytes
            The state.
        """

    def restore(self, blob: bytes) -> None:
        """Go back to a snapshot of the same model.

        Parameters
        ----------
        blob : bytes
            Bytes that `snapshot` returned.

        Raises
        ------
        ModelError
            The snapshot is another model's.
        """


def refuse_fixed(robot: str, values: Mapping[str, Any], settable: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error where a plant's `set` would change sizes, channels or states.

    Parameters
    ----------
    robot : str
        Name of the robot, for the message.
    values : Mapping[str, Any]
        Parameters to change, by name.
    settable : Iterable[str]
        Names of parameters that may change while the plant runs.
    known : Iterable[str]
        Names of all parameters.

    Raises
    ------
    UnknownNameError
        There is no such parameter.
    ModelError
        A parameter is fixed when the plant is built, or `values` is empty; the message lists what may change.
    """
    settable, known = tuple(settable), tuple(known)
    if not values:
        raise ModelError(f"set: expected parameter = value, got nothing; what can change: {', '.join(settable)}")
    for name in values:
        if name not in known:
            raise UnknownNameError(f"{robot} parameter", name, settable)
        if name not in settable:
            raise ModelError(
                f"set: {robot}: {name} cannot change while the plant runs; what can change: {', '.join(settable)}"
            )


# Optional parts of a plant: a description of what does not change, and behaviour that callers find by isinstance.


class Environment(NamedTuple):
    """The environment of a plant, for the instruments on it.

    Attributes
    ----------
    gravity : (float, float, float)
        Acceleration of a body in free fall, m/s2, world.
    density : float, default 0.0
        Density of the water around, kg/m3; 0 where there is none.
    surface : float, default 0.0
        Height of the water's surface, m, world.

    Examples
    --------
    >>> from rtmms.plant import Environment
    >>> Environment((0.0, 0.0, -9.81), density=1025.0).surface
    0.0
    """

    gravity: tuple[float, float, float]
    density: float = 0.0
    surface: float = 0.0


STANDARD_GRAVITY_M_S2 = 9.80665
"""Default of gravity, m/s2."""
WATER_DENSITY_KG_M3 = 1000.0
"""Default of water's density, kg/m3."""
MIN_LIQUID_KG_M3 = 100.0
"""Density from which a fluid is a liquid, kg/m3."""


def water_density(medium: str, stated: float | None) -> float:
    """Return the density of the water around a plant.

    A plant without a medium is in water where its fluid is as dense as a liquid.

    Parameters
    ----------
    medium : str
        'water', 'air', or '' for none.
    stated : float or None
        Density of the fluid that its bodies displace, kg/m3; None where it is unknown.

    Returns
    -------
    float
        kg/m3; 0 where there is no water.

    Examples
    --------
    >>> from rtmms.plant import water_density
    >>> water_density("water", None), water_density("air", 1.2)
    (1000.0, 0.0)
    """
    if medium == "water":
        return WATER_DENSITY_KG_M3 if stated is None else stated
    return stated if not medium and stated is not None and stated >= MIN_LIQUID_KG_M3 else 0.0


class CommandedGait(Protocol):
    """A plant that moves by commands and has a gait of them, which `rtmms trim` closes.

    Attributes
    ----------
    dt : float
        Step, s.
    gait : mapping of str to float
        Parameters of the gait by name, with their defaults.
    """

    dt: float
    gait: Mapping[str, float]

    def gait_period(self, **gait: float) -> float:
        """Return the period of the gait.

        Parameters
        ----------
        **gait : float
            Parameters that differ from their defaults.

        Returns
        -------
        float
            s.

        Raises
        ------
        ModelError
            The parameters give no period.
        """

    def gait_commands(self, steps: int, **gait: float) -> Array:
        """Return the commands of one period.

        Parameters
        ----------
        steps : int
            Number of steps of a period.
        **gait : float
            Parameters that differ from their defaults.

        Returns
        -------
        (steps, n_actuators) array
            Each row holds for a step of period / steps.
        """


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
    def gait(self) -> Mapping[str, float]:
        """Default of each parameter."""

    @property
    def gait_ranges(self) -> Mapping[str, tuple[float, float]]:
        """Lowest and highest value of each parameter that may change."""

    def gait_period(self, **gait: float) -> float:
        """Return the period.

        Parameters
        ----------
        **gait : float
            Parameters that differ from their defaults.

        Returns
        -------
        float
            s.
        """

    def gait_commands(self, steps: int, **gait: float) -> Array:
        """Return the commands of one period.

        Parameters
        ----------
        steps : int
            Number of steps of a period.
        **gait : float
            Parameters that differ from their defaults.

        Returns
        -------
        (steps, n_actuators) array
            Each row holds for a step of period / steps.
        """


def _nothing() -> None:
    """Return None, the value of an absent property."""


def _standard_environment() -> Environment:
    """Return still water under standard gravity."""
    return Environment((0.0, 0.0, -STANDARD_GRAVITY_M_S2), WATER_DENSITY_KG_M3)


@renamed_fields(surroundings="environment", home="initial_pose")
@dataclass(frozen=True, kw_only=True)
class PlantDescription:
    """Static properties of a plant, beside the members of `Plant`; `describe_plant` returns that of any plant.

    A value holds as long as the plant. A property that may change while the plant runs is a function without arguments
    that returns the present value. None, or empty: the plant does not have the property.

    Parameters
    ----------
    medium : str, default ''
        'water': robots have a depth, positive down. 'air': robots have an altitude, positive up.
    half_span_m : float, optional
        A robot in water less deep than that is near the surface, m; None: nothing uses it.
    airframe : str, default ''
        Name of the layout of its rotors or thrusters, such as 'quad_plus'. Bridges of autopilots find their channels by
        it (bridges/autopilot/airframes.py).
    parameters : callable, default _nothing
        () -> dataclass or mapping of parameters.
    set : callable, optional
        Changes parameters between steps, all or none; raises ModelError or UnknownNameError.
    settable : tuple[str, ...], optional
        Names that `set` accepts; None where the plant does not list them.
    present : callable, optional
        (name that `set` accepts) -> {name: present value} by which `set` puts it back; None: the attribute, or the key,
        of `parameters`.
    coupled : tuple[CoupledLimit, ...], default ()
        Limits of differences of two commands; a difference beyond `obeyed` counts as clamped.
    coupling : str, optional
        How its parts share a step.
    trace_outputs : tuple[str, ...], default ()
        Outputs that `summarise` needs.
    summarise : callable, optional
        (time (k,) s, {name: (k, *shape)}) -> {name: number, None where undefined}, for the report.
    recent_outputs : tuple[str, ...], default ()
        Outputs of the last seconds of a run that its figure needs.
    figure : callable, optional
        (path, samples of the run, samples of its last seconds, timings) -> draws the plant's own figure.
    shape : callable, default _nothing
        () -> mapping that viewers draw, in the frame of `position` and `quaternion` (docs/view.md). See Notes.
    environment : callable, default _standard_environment
        () -> gravity and water around the plant.
    ends : callable, default _nothing
        () -> simulated time, s, until which its environment are known (a flow from a file).
    initial_pose : callable, default _nothing
        () -> place after `reset`, as arguments of its `place` by name; empty: its own start.
    gait : CommandedGait, optional
        Gait of commands of the plant.
    commanded_gaits : callable, optional
        () -> gaits of commands by name, the default one first, among which `rtmms.trim` seeks steady motions.
    step_error_estimator : callable, optional
        () -> estimator by which the monitor checks its steps.
    accurate : Mapping[float, float], optional
        Error of the path, a fraction, to the longest step, s (`StepErrorEstimator.finer`), for its own gait.
    truth : Plant, optional
        Of a plant with sensors: the plant itself, whose outputs are 'truth.NAME' here.
    sensors : Mapping[str, Any], optional
        Sensors of the plant, by name.
    estimates : bool, default False
        Whether its `estimator` estimates its motion, as outputs 'estimate.NAME'.
    step_time_varies : str, default ''
        Reason why the time of a step has no bound, such as 'contacts'; a run then reports the measured time before it
        starts. '': each step takes the same time.

    Notes
    -----
    `shape` returns a mapping with these keys, each of which may be missing:

    - "joints": [{"parent", "position", "quaternion", "slides"}, ...] of `joint_position`; each turns about, or slides
      along, its z axis; parent 0 is the body, k the k-th joint
    - "parts": [{"name", "body", "kind", "position", "quaternion", "size"}, ...]; the kinds are ellipsoid, box and
      cylinder, with full sizes in m
    - "skins": [{"name", "points", "triangles", "lines"}, ...]; `points` is the name of an output (n, 3), m, body frame
    - "cords": [{"name", "points": [[k, x, y, z], ...]}, ...]; lines through points in m, in the frame of the body
      (k = 0) or of the k-th joint

    Examples
    --------
    >>> from rtmms.plant import PlantDescription
    >>> PlantDescription(medium="water").environment().density
    1000.0
    """

    medium: str = ""
    half_span_m: float | None = None
    airframe: str = ""
    parameters: Callable[[], Any] = _nothing
    set: Callable[..., None] | None = None
    settable: tuple[str, ...] | None = None
    present: Callable[[str], Mapping[str, Any]] | None = None
    coupled: tuple[CoupledLimit, ...] = ()
    coupling: str | None = None
    trace_outputs: tuple[str, ...] = ()
    summarise: Callable[[Array, Mapping[str, Array]], dict[str, float | None]] | None = None
    recent_outputs: tuple[str, ...] = ()
    figure: Callable[[Any, Any, Any, Any], None] | None = None
    shape: Callable[[], Mapping[str, Any] | None] = _nothing
    environment: Callable[[], Environment] = _standard_environment
    ends: Callable[[], float | None] = _nothing
    initial_pose: Callable[[], Mapping[str, Any] | None] = _nothing
    gait: CommandedGait | None = None
    commanded_gaits: Callable[[], Mapping[str, TunableGait]] | None = None
    step_error_estimator: Callable[[], StepErrorEstimator] | None = None
    accurate: Mapping[float, float] = field(default_factory=dict)
    truth: Plant | None = None
    sensors: Mapping[str, Any] = field(default_factory=dict)
    estimates: bool = False
    step_time_varies: str = ""


_VALUES = (
    "medium", "half_span_m", "airframe", "set", "settable", "coupled", "coupling", "recent_outputs", "figure",
    "step_error_estimator", "accurate", "step_time_varies", "commanded_gaits",
)  # fmt: skip
_PRESENT = ("parameters", "shape", "ends", "initial_pose")
_TOGETHER = (("trace_outputs", "summarise"), ("truth", "sensors"))
"""Optional members of a plant with the same name in its description: values, those that may change, and pairs."""


def describe_plant(plant: Any) -> PlantDescription:
    """Return the plant's `description`, or one made of the optional members that it has.

    A description costs some microseconds: call this function where something is built, not in a step.

    Parameters
    ----------
    plant : Plant
        Any plant.

    Returns
    -------
    PlantDescription
        Static properties of the plant.
    """
    description = getattr(plant, "description", None)
    if isinstance(description, PlantDescription):
        return description
    result = {name: value for name in _VALUES if (value := getattr(plant, name, None)) is not None}
    result |= {name: partial(getattr, plant, name, None) for name in _PRESENT}
    for names in _TOGETHER:
        if all(hasattr(plant, name) for name in names):
            result |= {name: getattr(plant, name) for name in names}
    if all(hasattr(plant, name) for name in ("gait", "gait_period", "gait_commands")):
        result["gait"] = plant
    result["environment"] = getattr(plant, "environment", None) or partial(_assumed_environment, plant)
    result |= {new: _renamed_member(plant, old, new) for old, new in RENAMED_MEMBERS.items()
              if getattr(plant, new, None) is None and _has_own(plant, old)}  # fmt: skip
    return PlantDescription(**result, estimates=hasattr(plant, "estimator"))


def present_values(about: PlantDescription, names: Iterable[str]) -> dict[str, Any]:
    """Return the present values of parameters that `set` can change.

    Parameters
    ----------
    about : PlantDescription
        Description of the plant.
    names : Iterable[str]
        Names of `settable`.

    Returns
    -------
    dict[str, Any]
        Values by the names with which `set` puts them back. A parameter of all robots of a world has one for each.

    Raises
    ------
    ModelError
        A name is of a fault or a setting without a number.
    """
    result: dict[str, Any] = {}
    for name in names:
        if about.present is not None:
            result |= about.present(name)
            continue
        values = about.parameters()
        try:
            result[name] = values[name] if isinstance(values, Mapping) else getattr(values, name)
        except (KeyError, AttributeError):
            raise ModelError(
                f"{name}: expected a parameter of the robot; faults and levels have no number: begin them by `set`"
            ) from None
    return result


RENAMED_MEMBERS = {"twin": "step_error_estimator", "surroundings": "environment", "home": "initial_pose"}
"""Old name of an optional member, and the name that replaced it in 0.3; the next version removes the old names."""


def _has_own(plant: Any, old: str) -> bool:
    """Return whether a plant has its own member by an old name, not our alias."""
    return not isinstance(getattr(type(plant), old, None), Renamed) and getattr(plant, old, None) is not None


def _renamed_member(plant: Any, old: str, new: str) -> Any:
    """Return a member by its old name, with a warning."""
    warn_renamed(type(plant).__name__, old, new, stacklevel=3)
    return partial(getattr, plant, old, None) if new in _PRESENT else getattr(plant, old)


def _assumed_environment(plant: Any) -> Environment:
    """Return the environment of a plant that declares none.

    Its parameter gravity_m_s2, else standard gravity, acts downwards. It is in water unless its medium is another.
    """
    parameters: Any = getattr(plant, "parameters", None)
    gravity = parameters.get("gravity_m_s2") if isinstance(parameters, Mapping) else getattr(
        parameters, "gravity_m_s2", None
    )  # fmt: skip
    pull = (
        float(gravity) if isinstance(gravity, int | float) and not isinstance(gravity, bool) else STANDARD_GRAVITY_M_S2
    )
    medium = getattr(plant, "medium", "")
    return Environment((0.0, 0.0, -pull), WATER_DENSITY_KG_M3 if medium in ("", "water") else 0.0)


class Wrapper:
    """Base of a plant around plants: it has the optional members that its description has.

    A subclass sets `description` when it is built, to `dataclasses.replace(describe_plant(inner), ...)` with what it
    adds, renames or removes.

    Attributes
    ----------
    description : PlantDescription
        Static properties of the outer plant.
    """

    description: PlantDescription

    def __getattr__(self, name: str) -> Any:
        """Return an optional member from the description."""
        result = getattr(self.description, name) if name in _MEMBERS else None
        if result is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return result() if name in _PRESENT else result


_MEMBERS = (*_VALUES, *_PRESENT, *_TOGETHER[0], "environment")


def unwrapped(plant: Plant) -> Plant:
    """Return the plant itself, without its sensors, faults and levels.

    Parameters
    ----------
    plant : Plant
        Plant, wrapped or not.

    Returns
    -------
    Plant
        The innermost plant.
    """
    inner: Any = describe_plant(plant).truth or plant
    inner = getattr(inner, "sound", inner)
    return getattr(inner, "full", inner)  # type: ignore[no-any-return]


@runtime_checkable
class HasVariants(Protocol):
    """A plant with cheaper variants of itself, for `--degrade` (rtmms.plant.levels)."""

    def variants(self) -> Sequence[Any]:
        """Return plants with the same channels and step, each cheaper than the one before, built and warm.

        Returns
        -------
        sequence of Plant
            Each has `copy_state_from`, and optionally `variant`, a few words that describe it.
        """

    def copy_state_from(self, other: Any) -> None:
        """Continue from the state of another of these plants, the full one or a variant, without a jump.

        The body's pose, velocity and momentum and the forces on it persist. The same state gives the same bits.

        Parameters
        ----------
        other : Any
            Plant whose state is taken.
        """


class HasLevels(Protocol):
    """A plant that steps one of its variants (rtmms.plant.levels.Levels); `set(level=k)` changes the level.

    Attributes
    ----------
    level : int
        Index of the active level; 0 is the full model.
    costs : tuple of float
        Time of a step of each level, s, from the full model on.
    """

    level: int
    costs: tuple[float, ...]


@runtime_checkable
class HasRobots(Protocol):
    """Several plants on one clock, whose channels are named NAME.channel.

    Attributes
    ----------
    robots : mapping of str to Plant
        Plants by name, with their sensors if they have some.
    robot_types : mapping of str to str
        Robot of each plant.
    """

    robots: Mapping[str, Plant]
    robot_types: Mapping[str, str]

    def described(self) -> list[dict[str, Any]]:
        """Return the robots as a log stores them.

        Returns
        -------
        list of dict
            One entry for each robot.
        """

    def owners(self, key: str) -> list[tuple[str, str]]:
        """Return the robots that a key of `set` changes.

        Parameters
        ----------
        key : str
            Name of a parameter, as the world has it.

        Returns
        -------
        list of (str, str)
            Name of each robot, and its own name of the parameter.

        Raises
        ------
        ModelError, UnknownNameError
            No robot has such a parameter.
        """


class SavedState(NamedTuple):
    """A stored state: all of it, and views of the measured parts.

    Attributes
    ----------
    all : (w,) array
        The whole state.
    position : (3,) array
        m, world.
    quaternion : (4,) array
        Body to world.
    twist : (6,) array
        m/s and rad/s, body.
    joints : array
        rad or m, of any shape.
    work : (k,) array or None
        J; its sum is the work of the actuators. None where the state does not contain it.
    """

    all: Array
    position: Array
    quaternion: Array
    twist: Array
    joints: Array
    work: Array | None


class StepErrorEstimator(Protocol):
    """Steps beside a plant's own, in separate memory; the plant and its bits do not change.

    Attributes
    ----------
    dt : float
        Step of the plant, s.
    order : int
        Order of its method.
    bounded : bool
        Whether the method is stable only up to some |lambda| dt.
    base_moves : bool
        Whether the base has a path that can be wrong.
    length : float
        A turn by 1 rad counts as a way of that length, m.
    state : SavedState
        Present state of the estimator.
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
    def finer(self) -> tuple[str, float]:
        """Parameter that shortens the step, and its value, s."""

    def room(self) -> SavedState:
        """Return memory for one more state.

        Returns
        -------
        SavedState
            Its contents are undefined.
        """

    def keep(self, at: SavedState) -> None:
        """Copy the plant's present state.

        Parameters
        ----------
        at : SavedState
            Memory to write, from `room`.
        """

    def divide(self, parts: int) -> None:
        """Set the number of parts of a divided step, from the next `start` on.

        Parameters
        ----------
        parts : int
            Power of two; 2 before the first call. The steps of dt / parts are called halves.
        """

    def start(self, at: SavedState, halves: bool) -> None:
        """Put the estimator into a state.

        Parameters
        ----------
        at : SavedState
            State to start from.
        halves : bool
            Whether the next steps are parts of dt (see `divide`).
        """

    def step(self, command: Array, halves: bool) -> bool:
        """Take one step.

        Parameters
        ----------
        command : (n_actuators,) array
            Command held over the step.
        halves : bool
            Whether the step is a part of dt.

        Returns
        -------
        bool
            False where the step fails.
        """

    def unseen(self, begin: SavedState, end: SavedState) -> float:
        """Return the motion of prescribed joints that no stage of a step evaluated.

        Half steps may have missed the same motion. The command is that of the last step of this estimator.

        Parameters
        ----------
        begin : SavedState
            State before the step.
        end : SavedState
            State after the step.

        Returns
        -------
        float
            Sum of squares over the joints, rad2; 0 without prescribed joints.
        """
        return 0.0

    def power(self, at: SavedState) -> float:
        """Return the actuators' power in a state that contains no work; afterwards the estimator is in that state.

        Parameters
        ----------
        at : SavedState
            State to evaluate.

        Returns
        -------
        float
            W; 0 if the plant has none.
        """
        return 0.0


@runtime_checkable
class HasStepErrorEstimator(Protocol):
    """A plant whose steps `rtmms.plant.monitor` can check by steps beside it."""

    def step_error_estimator(self) -> StepErrorEstimator:
        """Return a new estimator of the plant's steps.

        Returns
        -------
        StepErrorEstimator
            Estimator with its own memory.
        """


class CompiledStep(NamedTuple):
    """A step that compiled code may take without Python, as addresses.

    Attributes
    ----------
    function : int
        Address of a C function of words of 64 bits that returns a status, 0 on success.
    arguments : tuple[int, ...]
        Words that the function receives.
    command : int
        Address from which it reads the command, n_actuators float64.
    """

    function: int
    arguments: tuple[int, ...]
    command: int


@runtime_checkable
class HasCompiledStep(Protocol):
    """A plant whose step is compiled code that runs without Python."""

    def compiled_step(self) -> CompiledStep | None:
        """Prepare the next step and return it; compiled code may take it as soon as its command is in place.

        Returns
        -------
        CompiledStep or None
            None where only `step` can take it.
        """

    def finish_compiled_step(self, status: int) -> None:
        """Do the Python part after the compiled step.

        Parameters
        ----------
        status : int
            Status that the compiled step returned; 0 on success.

        Raises
        ------
        DivergedError
            The step failed, as in `step`.
        """


class Fork(NamedTuple):
    """A run beside the plant's, in its own memory, by the plant's model and kernels at the time of the fork.

    Attributes
    ----------
    entry : CompiledStep
        One step of the fork.
    state : (w,) array
        Everything that a snapshot contains except the count of steps.
    recovery_state : (w,) array
        The last sound state, to which a failed step returns.
    start : (1,) array
        Time at which a step begins, s. The caller writes it.
    places : mapping
        Outputs that the state contains: first index and size of each.
    clear : callable
        Initialises the scratch memory again, after a failed step.
    sync_model : callable
        Copies the plant's present model and parameters. It returns False where only a new fork can have them.
    owner : object
        Object that holds the memory.
    account : CompiledOutputs, optional
        Compiled code of further outputs. Without it, the plant's `observe` returns them.
    """

    entry: CompiledStep
    state: Array
    recovery_state: Array
    start: Array
    places: Mapping[str, tuple[int, int]]
    clear: Callable[[], None]
    sync_model: Callable[[], bool]
    owner: Any
    account: CompiledOutputs | None = None


@runtime_checkable
class HasFork(Protocol):
    """A plant that can have many runs side by side (rtmms.analysis.rollouts)."""

    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return a run beside the plant's, from its present state.

        Parameters
        ----------
        memory : (w,) array, optional
            Memory for the fork's state, of the size of `present()[0]`; None for new memory.

        Returns
        -------
        Fork or None
            None where only `step` can take the plant's steps.
        """

    def present(self) -> tuple[Array, int]:
        """Return the present state.

        Returns
        -------
        (array, int)
            Copy of the state as a Fork stores it, and the steps since the reset.
        """

    def put(self, state: Array, steps: int) -> None:
        """Put the plant into a state, as `restore` does.

        Parameters
        ----------
        state : (w,) array
            State as `present` returns it.
        steps : int
            Steps since the reset.
        """


class RolledOut(NamedTuple):
    """The result of `SupportsRollouts.roll_out`.

    Attributes
    ----------
    outputs : dict[str, array]
        {name: (runs, samples, *shape)}.
    ends : (runs, width) array
        States at the end, as `present` returns them.
    sound : (runs,) array of bool
        False where the run failed; `step` of such a run raises the error.
    """

    outputs: dict[str, Array]
    ends: Array
    sound: npt.NDArray[np.bool_]


@runtime_checkable
class SupportsRollouts(Protocol):
    """A plant without forks whose own simulator advances many runs at once (rtmms.analysis.rollouts)."""

    def can_roll_out(self) -> bool:
        """Return whether the installed simulator can do this; otherwise runs are stepped in turn.

        Returns
        -------
        bool
            Whether `roll_out` may be called.
        """

    def roll_out(
        self, starts: Array, commands: Array, steps: int, every: int, names: Sequence[str], threads: int
    ) -> RolledOut:
        """Advance several runs at once.

        Parameters
        ----------
        starts : (runs, width) array
            State of each run at its start, as `present` returns it.
        commands : (runs or 1, steps or 1, n_actuators) array
            Commands; an axis of length 1 is repeated.
        steps : int
            Number of steps.
        every : int
            Steps from one sample to the next.
        names : Sequence[str]
            Outputs to return.
        threads : int
            Number of threads.

        Returns
        -------
        RolledOut
            Outputs and final states.
        """

    def present(self) -> tuple[Array, int]:
        """Return the present state.

        Returns
        -------
        (array, int)
            Copy of the state, and the steps since the reset.
        """

    def put(self, state: Array, steps: int) -> None:
        """Put the plant into a state, as `restore` does.

        Parameters
        ----------
        state : (width,) array
            State as `present` returns it.
        steps : int
            Steps since the reset.
        """


class Coordinates(NamedTuple):
    """Coordinates of a fork's state; except for a free body's pose, each is an element of that array.

    Attributes
    ----------
    names, units : tuple of str
        Of each coordinate, in order.
    size : (k,) array
        Typical size of each coordinate, for scaling.
    state_indices : (k,) array of int64
        Index of each coordinate in the state. The entries of a pose have no meaning.
    pose : int
        Index of position (3, m, world) and quaternion (4, body to world); -1 without a pose. The first six coordinates
        are then its errors in the body's axes: p = p_ref + R_ref e, R = R_ref exp(theta^).
    has_dependents : (k,) array of bool
        Whether other elements of the state depend on a coordinate (`HasCoordinates.settling`).
    history_indices : (f,) array of int64
        Elements that contain values of earlier steps. Derivatives set them to 0.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    size: Array
    state_indices: npt.NDArray[np.int64]
    pose: int
    has_dependents: npt.NDArray[np.bool_]
    history_indices: npt.NDArray[np.int64]


@runtime_checkable
class HasCoordinates(HasFork, Protocol):
    """A plant whose steps are differentiated on forks, by compiled code (rtmms.analysis.derivatives)."""

    def coordinates(self) -> Coordinates:
        """Return the coordinates of the plant's state.

        Returns
        -------
        Coordinates
            Names, units and places of the coordinates.
        """

    def settling(self, fork: Fork) -> CompiledStep:
        """Return compiled code that computes the dependent elements of a fork's state.

        Parameters
        ----------
        fork : Fork
            Fork whose state it writes.

        Returns
        -------
        CompiledStep
            Its status is 0 on success.
        """


class CompiledOutputs(NamedTuple):
    """Outputs for compiled code: a function as in `CompiledStep`, and the addresses of its results.

    Attributes
    ----------
    function : int
        Address of the function that computes the outputs.
    arguments : tuple[int, ...]
        Words that the function receives.
    numbers : Mapping[str, tuple[int, int]]
        Address and count of the float64 of each output, in row-major order.
    derived : Mapping[str, tuple[tuple[str, ...], Callable[..., array]]], default {}
        Outputs that follow from others: names of these, and a function of their rows (samples, width) that returns the
        output's rows. Names that no output has are entries of `numbers`.
    """

    function: int
    arguments: tuple[int, ...]
    numbers: Mapping[str, tuple[int, int]]
    derived: Mapping[str, tuple[tuple[str, ...], Callable[..., Array]]] = {}


@runtime_checkable
class HasCompiledOutputs(HasCompiledStep, Protocol):
    """A plant whose outputs compiled code computes as well, so that it can take many steps in a row.

    `finish_compiled_step` is then called once for all of them.
    """

    def compiled_outputs(self) -> CompiledOutputs | None:
        """Return the outputs as compiled code computes them.

        Returns
        -------
        CompiledOutputs or None
            None where only `observe` can compute them.
        """
