"""Changes of a plant by a scenario: sensors, faults of actuators, and the values that its events set."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from rtmms.base.contract import MAX_STEP, MIN_DT_S
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import parameters_of, read_declared
from rtmms.base.source_declarations import fact
from rtmms.base.trust import owner_of, peer_name
from rtmms.loop.chores import Agenda, ScheduledChange
from rtmms.plant.description import describe_plant
from rtmms.plant.loading import builder
from rtmms.plant.optional_protocols import HasRobots
from rtmms.plant.protocol import Plant
from rtmms.scenario.reading import Event

ROUNDING_STEPS = 1e-6
"""Part of a step by which an event may be past the begin of a step that it belongs to."""


def with_faults(plant: Plant, events: Iterable[Event]) -> Plant:
    """Return a plant whose actuators and fins can fail, where an event needs it.

    Parameters
    ----------
    plant : Plant
        The plant. Each of several robots was built with its faults.
    events : Iterable[Event]
        Events of the scenario.

    Returns
    -------
    Plant
        The plant itself where nothing is to fail.
    """
    if isinstance(plant, HasRobots):
        return plant
    names = [name for event in events for name in event.values if name.startswith("fault.")]
    if not names:
        return plant
    from rtmms.sensing.faults import FAULT, Faulty, fins

    parts = {*(channel.name for channel in plant.actuators), *fins(plant)}
    return Faulty(plant) if any(name.removeprefix(FAULT) in parts for name in names) else plant


def with_sensors(plant: Plant, profile: str, over: Mapping[str, Any], estimate: bool) -> Plant:
    """Return the plant with the sensors of a profile, and with an estimator where requested.

    Parameters
    ----------
    plant : Plant
        The plant. Each of several robots was built with its own sensors.
    profile : str
        'ideal', 'typical' or a file, see rtmms.sensing.read_profile.
    over : Mapping[str, Any]
        Tables over those of the profile.
    estimate : bool
        Whether the plant has an estimator.

    Returns
    -------
    Plant
        The plant itself for ideal sensors.

    Raises
    ------
    ModelError
        An estimate is requested without sensors.
    """
    if isinstance(plant, HasRobots):
        return plant
    if profile == "ideal" and not over:
        if estimate:
            raise ModelError("--estimate: expected a robot with sensors, got one without; add --sensors typical")
        return plant
    from rtmms.sensing import read_profile, seen_through
    from rtmms.sensing.sensed import Estimated

    sensors = read_profile(profile, plant, over)
    return Estimated(plant, sensors) if estimate else seen_through(plant, sensors)


def whole_steps(plant: Plant, robot: str, duration: float | None, first: int = 0) -> int | None:
    """Return the number of steps of a run.

    Parameters
    ----------
    plant : Plant
        The plant.
    robot : str
        Its name, for an error.
    duration : float | None
        Duration, s; None for a run without end.
    first : int, default 0
        First step of the run.

    Returns
    -------
    int | None
        None for a run without end.

    Raises
    ------
    ModelError
        The step or the duration is impossible, or the plant's data end before.
    """
    until_s = (duration or 0.0) + first * plant.dt
    ends = describe_plant(plant).ends()
    if ends is not None and until_s > ends:
        raise ModelError(
            f"--duration {duration:g}: expected at most {ends:g} s, where the flow of robot '{robot}' ends"
        )
    if plant.dt < MIN_DT_S:
        raise ModelError(f"--dt {plant.dt:g}: expected at least {MIN_DT_S:g} s, the resolution of the clock")
    if duration is None:
        return None
    if duration / plant.dt > MAX_STEP - first:
        raise ModelError(
            f"--duration {duration:g}: expected at most {MAX_STEP * plant.dt:g} s, 2^53 steps of {plant.dt:g} s"
        )
    steps = round(duration / plant.dt)
    if steps == 0:
        raise ModelError(f"--duration {duration:g}: expected at least one step, {plant.dt:g} s")
    return steps


def agenda(
    events: tuple[Event, ...], plant: Plant, controllers: tuple[str, ...], where: str, steps: int | None = None
) -> Agenda:
    """Return the values that the events set, each at the first step that begins at its time or later.

    Parameters
    ----------
    events : tuple[Event, ...]
        Events of the scenario.
    plant : Plant
        The plant.
    controllers : tuple[str, ...]
        Words of the controllers.
    where : str
        File of the events, for messages.
    steps : int | None, optional
        Steps of the run; None: no end.

    Returns
    -------
    Agenda
        The agenda.

    Raises
    ------
    ModelError
        The plant or a controller has no such parameter, or no step begins at the time or later.
    """
    acts = []
    for event in events:
        owners: dict[str, dict[str, Any]] = {}
        for name, value in event.values.items():
            owners.setdefault(_owner(name, controllers), {})[name] = value
        step = math.ceil(event.at_s / plant.dt - ROUNDING_STEPS)
        place = f"{where}:{event.line}: event at {event.at_s:g} s"
        if steps is not None and step >= steps and not event.ends:
            last_s = (steps - 1) * plant.dt
            raise ModelError(f"{place}: expected at most {last_s:g} s, where the last step begins")
        for name, value in event.values.items():
            if isinstance(value, list) and (_owner(name, controllers) or name.startswith("fault.")):
                raise ModelError(f"{place}: {name}: expected a single value, got a list")
        for name, value in owners.get("", {}).items():
            check_setting(name, value, plant, place)
        acts += [ScheduledChange(step, owner, values, place) for owner, values in owners.items()]
    return Agenda(acts)


def check_setting(name: str, value: Any, plant: Plant, place: str) -> None:
    """Check that a parameter or a fault of the plant can be set so while it runs, as far as its description shows.

    Parameters
    ----------
    name : str
        Name of the parameter, or 'fault.TARGET'.
    value : Any
        The value.
    plant : Plant
        The plant.
    place : str
        Origin of the value, for messages.

    Raises
    ------
    ModelError
        It cannot.
    """
    known = describe_plant(plant).settable
    if name.startswith("fault."):
        _check_fault(name, value, plant, place)
    elif known is None or name in known:
        try:
            check_plant_event(name, value, plant)
        except ModelError as fault:
            raise ModelError(f"{place}: {fault}") from None
    if isinstance(plant, HasRobots):
        try:
            plant.owners(name)
        except ModelError as fault:
            raise ModelError(f"{place}: {fault}") from None
    elif known is not None and name not in known:
        raise ModelError(f"{place}: {UnknownNameError('parameter that can change while it runs', name, known)}")


def _check_fault(name: str, value: Any, plant: Plant, place: str) -> None:
    """Raise ModelError where the word is no fault of that sensor, actuator or fin."""
    from rtmms.sensing.faults import check_fault

    target = name.removeprefix("fault.")
    try:
        if isinstance(plant, HasRobots):
            owner, _, target = target.partition(".")
            if owner not in plant.robots:
                raise UnknownNameError("robot", owner, plant.robots)
            plant = plant.robots[owner]
        check_fault(target, value, plant)
    except ModelError as fault:
        raise ModelError(f"{place}: {fault}") from None


def _owner(name: str, controllers: tuple[str, ...]) -> str:
    return owner_of(name, called_names(controllers))


def own_controllers(robot: str) -> tuple[str, ...]:
    """Return the controller that drives a robot where nobody names one.

    Parameters
    ----------
    robot : str
        Name or file of the robot.

    Returns
    -------
    tuple[str, ...]
        Its name, or ().
    """
    driver = fact(builder(robot).module, "CONTROLLER")
    return (driver,) if isinstance(driver, str) else ()


def called_names(controllers: tuple[str, ...]) -> list[str]:
    """Return the names of controllers on the wire.

    Parameters
    ----------
    controllers : tuple[str, ...]
        Words of a command line.

    Returns
    -------
    list[str]
        In the same order.
    """
    return [peer_name(word) for word in controllers]


def check_plant_event(name: str, value: Any, plant: Plant) -> None:
    """Check that a parameter of the plant can have a value, as far as its description shows.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        The value.
    plant : Plant
        The plant.

    Raises
    ------
    ModelError
        It cannot.
    """
    if isinstance(plant, HasRobots):
        for robot, parameter in plant.owners(name):
            check_plant_event(parameter, value, plant.robots[robot])
        return
    parameters = describe_plant(plant).parameters()
    if dataclasses.is_dataclass(parameters) and not isinstance(parameters, type) and name in _fields(parameters):
        dataclasses.replace(parameters, **{name: value})  # the class may check its values itself
        declared = parameters_of(type(parameters)).get(name)
        if declared is not None:
            read_declared(name, declared, value)


def _fields(parameters: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(parameters)}
