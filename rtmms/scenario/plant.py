"""What a scenario makes of a plant: sensors, faults of actuators, what its events set and when."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from rtmms.base.contract import LAST_STEP, LEAST_DT
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.trust import owner_of, peer_name
from rtmms.loop.chores import Agenda, Due
from rtmms.plant.protocol import Composed, Plant, describe_plant
from rtmms.scenario.reading import Event


def with_faults(plant: Plant, events: Iterable[Event]) -> Plant:
    """Where an actuator or a fin is to fail: a plant of which they can. Each of several robots was built with them."""
    if isinstance(plant, Composed):
        return plant
    names = [name for event in events for name in event.values if name.startswith("fault.")]
    if not names:
        return plant
    from rtmms.sensing.faults import FAULT, Faulty, fins

    parts = {*(channel.name for channel in plant.actuators), *fins(plant)}
    return Faulty(plant) if any(name.removeprefix(FAULT) in parts for name in names) else plant


def with_sensors(plant: Plant, profile: str, over: Mapping[str, Any], estimate: bool) -> Plant:
    """The plant seen through the sensors of a profile (rtmms.sensing.read_profile), with an estimator where asked.
    Each of several robots was built with its own."""
    if isinstance(plant, Composed):
        return plant
    if profile == "ideal" and not over:
        if estimate:
            raise ModelError("--estimate: expected a robot with sensors (--sensors typical)")
        return plant
    from rtmms.sensing import read_profile, seen_through
    from rtmms.sensing.sensed import Estimated

    sensors = read_profile(profile, plant, over)
    return Estimated(plant, sensors) if estimate else seen_through(plant, sensors)


def whole_steps(plant: Plant, robot: str, duration: float | None, first: int = 0) -> int | None:
    """Return the number of steps of a run.

    Parameters
    ----------
    plant, robot
        The plant, and its name for an error.
    duration
        s; None for a run without end.
    first
        Step that the run begins with.

    Returns
    -------
    int or None
        None for a run without end.

    Raises
    ------
    ModelError
        The step or the duration cannot be, or the plant's data end before.
    """
    until_s = (duration or 0.0) + first * plant.dt
    ends = describe_plant(plant).ends()
    if ends is not None and until_s > ends:
        raise ModelError(f"--duration {duration:g}: the flow of robot '{robot}' is known until t = {ends:g} s only")
    if plant.dt < LEAST_DT:
        raise ModelError(f"--dt {plant.dt:g}: expected {LEAST_DT:g} s at least, the clock's nanosecond")
    if duration is None:
        return None
    if duration / plant.dt > LAST_STEP - first:
        raise ModelError(
            f"--duration {duration:g}: expected at most {LAST_STEP * plant.dt:g} s, 2^53 steps of {plant.dt:g} s"
        )
    steps = round(duration / plant.dt)
    if steps == 0:
        raise ModelError(f"--duration {duration:g}: expected a step at least, {plant.dt:g} s")
    return steps


def agenda(events: tuple[Event, ...], plant: Plant, controllers: tuple[str, ...], where: str) -> Agenda:
    """What the events set, at the step that begins nearest to their time; ModelError for what the plant has not."""
    acts = []
    for event in events:
        owners: dict[str, dict[str, Any]] = {}
        for name, value in event.values.items():
            owners.setdefault(_owner(name, controllers), {})[name] = value
        step, place = round(event.at_s / plant.dt), f"{where}:{event.line}: event at {event.at_s:g} s"
        for name, value in event.values.items():
            if isinstance(value, list) and (_owner(name, controllers) or name.startswith("fault.")):
                raise ModelError(f"{place}: {name}: expected a single value, got a list")
        for name, value in owners.get("", {}).items():
            check_setting(name, value, plant, place)
        acts += [Due(step, owner, values, place) for owner, values in owners.items()]
    return Agenda(acts)


def check_setting(name: str, value: Any, plant: Plant, place: str) -> None:
    """That a parameter or a fault of the plant can be set so while it runs, as far as that is known before it is done;
    ModelError.  place: where it was given"""
    known = describe_plant(plant).settable
    if name.startswith("fault."):
        _check_fault(name, value, plant, place)
    elif known is None or name in known:
        try:
            check_plant_event(name, value, plant)
        except ModelError as fault:
            raise ModelError(f"{place}: {fault}") from None
    if isinstance(plant, Composed):
        try:
            plant.owners(name)
        except ModelError as fault:
            raise ModelError(f"{place}: {fault}") from None
    elif known is not None and name not in known:
        raise ModelError(f"{place}: {UnknownNameError('parameter that can change while it runs', name, known)}")


def _check_fault(name: str, value: Any, plant: Plant, place: str) -> None:
    """That the word is a fault of that sensor, actuator or fin; ModelError."""
    from rtmms.sensing.faults import check_fault

    target = name.removeprefix("fault.")
    try:
        if isinstance(plant, Composed):
            owner, _, target = target.partition(".")
            if owner not in plant.robots:
                raise UnknownNameError("robot", owner, plant.robots)
            plant = plant.robots[owner]
        check_fault(target, value, plant)
    except ModelError as fault:
        raise ModelError(f"{place}: {fault}") from None


def _owner(name: str, controllers: tuple[str, ...]) -> str:
    return owner_of(name, called_names(controllers))


def called_names(controllers: tuple[str, ...]) -> list[str]:
    """The names that controllers have on the wire, of the words of a command line."""
    return [peer_name(word) for word in controllers]


def check_plant_event(name: str, value: Any, plant: Plant) -> None:
    """That a value can be one of a parameter of the plant, as far as its description shows. ModelError."""
    parameters = describe_plant(plant).parameters()
    if dataclasses.is_dataclass(parameters) and not isinstance(parameters, type) and name in _fields(parameters):
        dataclasses.replace(parameters, **{name: value})


def _fields(parameters: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(parameters)}
