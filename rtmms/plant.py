"""The face of a simulated robot: what the loop, the wire and a user's script see of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rtmms.errors import ModelError, UnknownNameError

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
        """The outputs at the present state, by name: a function of the state alone."""

    def snapshot(self) -> bytes:
        """The whole state; `restore` of it continues with the same bits."""

    def restore(self, blob: bytes) -> None:
        """Back to a snapshot of the same model; ModelError if it is another's."""


@runtime_checkable
class Summarised(Protocol):
    """A plant that can say what a run amounted to, from samples of some of its outputs."""

    trace_outputs: tuple[str, ...]

    def summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """Numbers for the report, None where undefined. time (k,) s, nearly evenly spaced; trace[name] (k, *shape)."""


def refuse_fixed(robot: str, given: Mapping[str, Any], settable: Iterable[str], known: Iterable[str]) -> None:
    """What a plant's `set` refuses: a change of sizes, channels or states.

    UnknownNameError for a parameter that there is none of, ModelError for one that stays as it was built, or where
    nothing is given; each says what may change."""
    settable, known = tuple(settable), tuple(known)
    if not given:
        raise ModelError(f"set: expected parameter = value, got nothing; what can change: {', '.join(settable)}")
    for name in given:
        if name not in known:
            raise UnknownNameError(f"{robot} parameter", name, known)
        if name not in settable:
            raise ModelError(
                f"set: {robot}: {name} stays as it was built; what can change while it runs: {', '.join(settable)}"
            )


def robots() -> dict[str, Any]:
    """The entry points of group rtmms.plants by name: ours and third parties' alike."""
    return {point.name: point for point in entry_points(group="rtmms.plants")}


def builder(robot: str) -> Any:
    """The entry point that builds a robot: by its name, or, for a file, by the end of its name (group
    rtmms.plant_files, for example '.fmu'). UnknownNameError, or ModelError where there is no such file."""
    known = robots()
    if robot in known:
        return known[robot]
    for point in entry_points(group="rtmms.plant_files"):
        if robot.endswith(f".{point.name}"):
            if not os.path.isfile(robot):
                raise ModelError(f"robot '{robot}': there is no such file")
            return point
    raise UnknownNameError("robot", robot, known)


def load(robot: str, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> Plant:
    """Build the plant of a robot by name.

    robot       a name from `rtmms list robots`, or a FILE.fmu
    dt          step in s; None for the robot's own
    preset      a named set of parameters of that robot, or a FILE.toml of parameters, which may name a preset to start
                from (key `preset`); keywords given beside it win
    parameters  any parameter of the robot, see its page in docs/
    Raises UnknownNameError or ModelError, each naming the place, what was got and what is expected.
    """
    point = builder(robot)
    build = point.load()
    if point.group == "rtmms.plant_files":
        build = partial(build, robot)
    # a third party's plant need not know of steps and presets that nobody asks it for
    asked = {name: value for name, value in (("dt", dt), ("preset", preset)) if value is not None}
    if preset is None or not preset.endswith(".toml"):
        plant: Plant = build(**asked, **parameters)
        return plant
    from rtmms.toml_file import read_toml

    written = read_toml(preset)
    keys = [key for key in written if key not in parameters and (key != "dt" or dt is None)]
    given = {**written, **parameters, **({} if dt is None else {"dt": dt})}
    try:
        plant = build(**given)
    except ModelError as error:
        if any(key in str(error) for key in keys):
            raise ModelError(f"{preset}: {error}") from None
        raise
    return plant


# What a plant may offer beside that: whoever can use it asks by isinstance.


@runtime_checkable
class Settable(Protocol):
    """A plant with parameters that can be changed while it runs."""

    def set(self, **parameters: Any) -> None:
        """Change them between steps: all or none; ModelError or UnknownNameError, naming the one that cannot be."""


@runtime_checkable
class Tunable(Protocol):
    """A plant that names the parameters that `set` takes."""

    settable: tuple[str, ...]


@runtime_checkable
class Drawn(Protocol):
    """A plant whose figure needs some outputs of the last seconds of a run."""

    recent_outputs: tuple[str, ...]


@runtime_checkable
class Drawing(Protocol):
    """A plant that draws its own figure of a run."""

    def figure(self, path: Any, trace: Any, recent: Any, statistics: Any) -> None:
        """Write it to `path`: samples of the whole run, of its last seconds, timings."""


@runtime_checkable
class Coupled(Protocol):
    """A plant that says how its parts share a step."""

    coupling: str


@runtime_checkable
class Surrounded(Protocol):
    """A plant that says what it moves in: 'water', whose robots tell their depth, positive down; 'air', whose robots
    tell their altitude, positive up; '' for neither."""

    medium: str


@runtime_checkable
class Described(Protocol):
    """A plant that tells its parameters: a dataclass or a mapping."""

    parameters: Any
