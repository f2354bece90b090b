"""Provide the protocol of a plant: what the loop, the wire and the bridges need of a simulator.

Every simulator with the members of `Plant` is a plant. `rtmms.plant.description` has what a plant may state about
itself, `rtmms.plant.optional_protocols` the further behaviour that it may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rtmms.base.errors import ModelError, UnknownNameError, warn_renamed

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


def __getattr__(name: str) -> Any:
    """Return a name of 0.2 that another module of the package has now, with a warning."""
    for place in ("rtmms.plant.description", "rtmms.plant.optional_protocols"):  # by name, because they import this one
        module = import_module(place)
        if name in vars(module) and getattr(vars(module)[name], "__module__", "") == module.__name__:
            warn_renamed("rtmms.plant.protocol", name, name, owner_now=module.__name__)
            return vars(module)[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
