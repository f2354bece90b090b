"""Find the builder of a robot by the robot's name or file, and build its plant."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.base.trust import asked_by_program, refuse_unnamed

if TYPE_CHECKING:
    from rtmms.plant.protocol import Plant

WORLD = "world"
"""Name of several robots on one clock, where a robot's name is expected (rtmms.World)."""


def robots() -> dict[str, Any]:
    """Return the robots that are installed, third parties' included.

    Returns
    -------
    dict of str to EntryPoint
        Entry points of group rtmms.plants by name.
    """
    return entry_points_of("rtmms.plants")


DATA_ENDINGS = ("urdf", "xml")
"""Endings of robots' files that contain no code."""


def builder(robot: str) -> Any:
    """Return the entry point that builds a robot.

    Parameters
    ----------
    robot : str
        Name of the robot, or a file. The ending of a file, before the colon of FILE.py:NAME, selects the entry point of
        group rtmms.plant_files.

    Returns
    -------
    EntryPoint
        Its `load` returns the function that makes the plant.

    Raises
    ------
    UnknownNameError
        There is no such robot.
    ModelError
        There is no such file.
    ArgumentError
        `robot` is not text.
    """
    if not isinstance(robot, str):
        raise ArgumentError(f"robot: expected a name or a file as text, got {robot!r:.60}")
    known = robots()
    if robot in known:
        return known[robot]
    if robot == WORLD:
        return EntryPoint(WORLD, "rtmms.world.world:build", "rtmms.plants")
    files = entry_points_of("rtmms.plant_files")
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

    Parameters
    ----------
    robot : str
        Name from `rtmms list robots`, or FILE.urdf, FILE.xml (MJCF), FILE.fmu or FILE.py:NAME.
    dt : float, optional
        Step, s; None for the robot's own.
    preset : str, optional
        Named set of parameters of that robot, or a FILE.toml of parameters. The file may name a preset to start from
        (key `preset`). Keywords have precedence over it.
    **parameters : Any
        Any parameter of the robot, see its page in docs/.

    Returns
    -------
    Plant
        The plant at t = 0.

    Raises
    ------
    UnknownNameError, ModelError
        The robot, the preset or a parameter is wrong; the message has the place, the value and what is expected.
    """
    with asked_by_program():
        return build_plant(robot, dt=dt, preset=preset, **parameters)


def build_plant(robot: str, *, dt: float | None = None, preset: str | None = None, **parameters: Any) -> Plant:
    """Build a plant as `load` does, for rtmms itself: the robot's name may come from data.

    Parameters
    ----------
    robot : str
        As in `load`.
    dt : float, optional
        Step, s; None for the robot's own.
    preset : str, optional
        As in `load`.
    **parameters : Any
        Any parameter of the robot.

    Returns
    -------
    Plant
        The plant at t = 0.

    Raises
    ------
    ModelError
        As `load`, and where the robot is a file with code that the user did not name (rtmms.base.trust).
    """
    if preset is not None and not isinstance(preset, str):
        raise ModelError(f"preset: expected a name or a FILE.toml, got {preset!r:.60}")
    return build_by(maker(robot), dt=dt, preset=preset, **parameters)


def maker(robot: str) -> Callable[..., Plant]:
    """Return the function that makes plants of a robot, for callers that build many.

    The search for that function takes longer than the construction of some plants.

    Parameters
    ----------
    robot : str
        As in `load`.

    Returns
    -------
    callable
        Function of dt, preset and parameters that returns a plant.

    Raises
    ------
    UnknownNameError, ModelError
        As `builder`.
    """
    point = builder(robot)
    make: Callable[..., Plant] = point.load()
    return partial(make, robot) if point.group == "rtmms.plant_files" else make


def build_by(make: Callable[..., Plant], *, dt: float | None, preset: str | None, **parameters: Any) -> Plant:
    """Build a plant by the function that `maker` returned, as `build_plant` does.

    Parameters
    ----------
    make : Callable[..., Plant]
        Function that makes the plant.
    dt : float or None
        Step, s; None for the robot's own.
    preset : str or None
        Name or FILE.toml, as in `load`.
    **parameters : Any
        Any parameter of the robot.

    Returns
    -------
    Plant
        The plant at t = 0.

    Raises
    ------
    ModelError
        A parameter is wrong; the message names the file if the parameter came from it.
    """
    # a third party's plant may have no steps and presets: only those that were given are passed
    asked = {name: value for name, value in (("dt", dt), ("preset", preset)) if value is not None}
    if preset is None or not preset.endswith(".toml"):
        plant: Plant = make(**asked, **parameters)
        return plant
    from rtmms.base.toml_file import read_toml

    written = read_toml(preset, "preset")
    keys = [key for key in written if key not in parameters and (key != "dt" or dt is None)]
    values = {**written, **parameters, **({} if dt is None else {"dt": dt})}
    try:
        plant = make(**values)
    except ModelError as error:
        if any(key in str(error) for key in keys):
            raise ModelError(f"{preset}: {error}") from None
        raise
    return plant
