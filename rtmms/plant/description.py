"""Provide the description of a plant: its properties as values and functions, from attributes that it may have.

The loop, the wire, reports and viewers read the description once; no step reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError, Renamed, renamed_fields, warn_renamed
from rtmms.plant.optional_protocols import StepErrorEstimator
from rtmms.plant.protocol import (
    STANDARD_GRAVITY_M_S2,
    WATER_DENSITY_KG_M3,
    CommandedGait,
    CoupledLimit,
    Environment,
    Plant,
    TunableGait,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


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
                f"{name}: expected a parameter of the robot, got a fault or a level, which has no number; change it "
                "with `set` only"
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
