"""Several robots on one clock, as one plant."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import c_double
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numba import carray

from rtmms.base.errors import DivergedError, ModelError, Renamed, UnknownNameError
from rtmms.base.jit import kernel
from rtmms.base.memory import INTEGER, Layout, part, state, step_input
from rtmms.base.pointers import numbers_at
from rtmms.base.spatial import Array
from rtmms.base.trust import asked_by_program
from rtmms.plant.description import PlantDescription, describe_plant, present_values
from rtmms.plant.optional_protocols import CompiledOutputs, Fork
from rtmms.plant.protocol import Channel, CoupledLimit, Plant
from rtmms.plant.stage import COMMAND, COUNT, FIRST, INNER, Stage, enter_account, step_inner
from rtmms.plant.validation import read_command, read_seed
from rtmms.sensing.sensed import Sensed
from rtmms.world.members import CURRENT_COMPONENTS, WORLD_CURRENT, by_components, read
from rtmms.world.relative_sensors import RelativeSensors
from rtmms.world.relative_sensors import read as read_sights

WORLD = Layout("World", state("steps", 1, dtype=INTEGER), step_input("command", "actuators"), part("inner", INNER))
"""Record of the world. steps: since the reset; given: the command."""
_world_at = WORLD.type().at()


@kernel
def enter_step(address: int) -> int:
    """Take a step of each robot, in their order, up to one that fails.

    Parameters
    ----------
    address : int
        Address of a record of `WORLD`.

    Returns
    -------
    int
        Status of the last step; 0 when all is well.
    """
    w = _world_at(address)
    rows = w.inner.rows
    for r in range(len(rows)):
        count, first = rows[r, COUNT], rows[r, FIRST]
        if count > 0:
            command = carray(numbers_at(rows[r, COMMAND]), (count,))
            for k in range(count):
                command[k] = w.command[first + k]
        status = step_inner(w.inner, r)
        if status:
            return int(status)
    w.steps[0] += 1
    return 0


FAULT = "fault."


class World(Stage):
    """Several robots as one plant: their channels are called NAME.channel, for example 'one.left.front'.

    An existing plant keeps its present state until the first reset. The robots share a clock and, by parameters of all,
    an ambient flow. They may sense one another (`sees` of a robot: rtmms.world.relative_sensors). They do not touch,
    and the wake of one has no effect on another.

    With seed s the k-th robot, from 0, gets the seed s + k. Its bits are those that it has alone.

    Parameters
    ----------
    robots : iterable
        (name, robot) or (name, robot, {key: value}) each. The keys are the fields of `rtmms.world.members.Member`:
        position (3,) m and heading_deg of its start, preset, parameters, profile and sensors, estimate, faults.
    dt : float, optional
        Step of all, s; None: the shortest of the robots' own.
    **parameters : Any
        Parameters of all robots, such as the water's motion; a robot's own override them. current_m_s (3,) reaches
        robots that have it as one and robots that have its components.

    Attributes
    ----------
    robots : Mapping[str, Plant]
        Plants with their equipment, by name.
    robot_types : Mapping[str, str]
        Kinds of the robots, by name.
    members : tuple of Member
        The robots as `read` made them.

    Raises
    ------
    ModelError
        A robot is wrong; the message has its name.
    UnknownNameError
        A robot, a key or a parameter does not exist.

    Examples
    --------
    >>> import numpy as np, rtmms
    >>> from rtmms.plant import Channel
    >>> class Hover:
    ...     dt, actuators, outputs = 0.01, (Channel("lift"),), (Channel("height", "m"),)
    ...     def reset(self, seed=0): self.height = 0.0
    ...     def step(self, command): self.height += self.dt * float(command[0])
    ...     def observe(self): return {"height": np.array(self.height)}
    ...     def snapshot(self): return np.array([self.height]).tobytes()
    ...     def restore(self, blob): self.height = float(np.frombuffer(blob)[0])
    >>> world = rtmms.World([("one", Hover()), ("two", Hover())])
    >>> world.reset()
    >>> world.step(np.array([1.0, 2.0]))
    >>> {name: float(value) for name, value in world.observe().items()}
    {'one.height': 0.01, 'two.height': 0.02}
    """

    kinds = Renamed("robot_types")
    _name = "world"
    _step_kernel = enter_step

    def __init__(self, robots: Any, *, dt: float | None = None, **parameters: Any) -> None:
        """Build the robots as a program asks for them."""
        with asked_by_program():
            self._assemble(robots, dt, parameters)

    def _assemble(self, robots: Any, dt: float | None, parameters: Mapping[str, Any]) -> None:
        """Build and equip the robots, and make the channels, the sensors for others and the compiled step."""
        members = read(robots)
        built = [member.built(dt, parameters) for member in members]
        self.dt = dt if dt is not None else min(plant.dt for plant in built)
        for k, member in enumerate(members):
            if built[k].dt != self.dt:
                if not isinstance(member.robot, str):
                    raise ModelError(
                        f"world: robot '{member.name}' has steps of {built[k].dt:g} s, expected {self.dt:g} s"
                    )
                built[k] = member.built(self.dt, parameters)
        equipped = [member.equipped(plant) for member, plant in zip(members, built, strict=True)]
        self.members, self._shared = members, dict(parameters)
        self.robots: Mapping[str, Plant] = {member.name: plant for member, plant in zip(members, equipped, strict=True)}
        self.robot_types: Mapping[str, str] = {member.name: member.kind for member in members}
        self.actuators = self._channels("actuators")
        names = tuple(self.robots)
        self._sights_by_robot = {
            member.name: read_sights(member.name, member.sees, member.profile == "typical", names) for member in members
        }
        self._sights = RelativeSensors(self._sights_by_robot, self.robots, self.dt)
        self.outputs = (*self._channels("outputs"), *self._sights.outputs)
        twice = {channel.name for channel in self._channels("outputs")} & {c.name for c in self._sights.outputs}
        if twice:
            raise ModelError(
                f"world: sees: '{min(twice)}' is already an output of the robot itself; rename the "
                "robot that it sees, or that output"
            )
        self._views: dict[str, Array] | None = None
        at = 0
        self._parts: dict[str, slice] = {}
        for name, plant in self.robots.items():
            self._parts[name] = slice(at, at + len(plant.actuators))
            at += len(plant.actuators)
        self._output_names = {
            name: [(channel.name, f"{name}.{channel.name}") for channel in plant.outputs]
            for name, plant in self.robots.items()
        }
        self._descriptions = {name: describe_plant(plant) for name, plant in self.robots.items()}
        if WORLD_CURRENT in parameters and all(
            description.medium not in ("", "water") for description in self._descriptions.values()
        ):
            raise ModelError(f"world: {WORLD_CURRENT}: expected a robot in water, got none")
        self.description = self._described()
        self._combine()
        for k, (member, plant) in enumerate(zip(members, self.robots.values(), strict=True)):
            if isinstance(member.robot, str):
                plant.reset(k)
            elif isinstance(plant, Sensed):  # a plant that was given stays in its state
                plant.switch_on(k)
        self._sights.reset(0)

    def reset(self, seed: int = 0) -> None:
        """Reset each robot to its start, with a seed of its own.

        Parameters
        ----------
        seed : int, default 0
            Whole number >= 0.
        """
        seed = read_seed("world", seed)
        for k, plant in enumerate(self.robots.values()):
            plant.reset(seed + k)
        self._steps = 0
        self._sights.reset(seed)

    def step(self, command: Array) -> None:
        """Take a step of each robot in turn.

        Parameters
        ----------
        command : (n_actuators,) array
            Commands of all robots, in their order.

        Raises
        ------
        DivergedError
            A robot failed; the message has its name, and the robots before it have stepped.
        """
        values = read_command("world", self.actuators, command)
        for k, (name, plant) in enumerate(self.robots.items()):
            with self._naming(k):
                plant.step(values[self._parts[name]])
        self._steps += 1
        self._sights.step()

    def compiled_outputs(self) -> CompiledOutputs | None:
        """Return the compiled outputs, where all robots have them and none senses another.

        Returns
        -------
        CompiledOutputs or None
            None where a robot lacks them.
        """
        return None if self._sights else super().compiled_outputs()

    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return a fork of the world (rtmms.plant.HasFork).

        Parameters
        ----------
        memory : array, optional
            State of the fork; None allocates it.

        Returns
        -------
        Fork or None
            None where a robot cannot be forked, or where one senses another, which needs Python.
        """
        return None if self._sights else super().fork(memory)

    def observe(self) -> dict[str, Array]:
        """Return the outputs of all robots, and their readings of one another.

        Returns
        -------
        dict[str, array]
            Outputs by name.
        """
        if self._views is None:
            self._views = self._own_views()
        observed: dict[str, Array]
        if self._views:
            enter_account(self.system.inner.address)
            observed = {name: view.copy() for name, view in self._views.items()}
        else:
            observed = {}
            for name, plant in self.robots.items():
                outputs = plant.observe()
                for output, name_there in self._output_names[name]:
                    observed[name_there] = outputs[output]
        return observed | self._sights.observe() if self._sights else observed

    def _state_arrays(self) -> Mapping[str, Array]:
        return {}  # the count of steps is all

    def _parts_at(self, arrays: Mapping[str, Any]) -> Sequence[Any]:
        return (*self.inner, *self._sights.parts)

    def _inner_name(self, k: int, output: str) -> str:
        return f"{self.members[k].name}.{output}"

    def _after_step(self) -> None:
        self._sights.step()

    def set(self, **provided: Any) -> None:
        """Change parameters while the world runs; all or none.

        Parameters
        ----------
        **provided : Any
            New values: NAME.parameter of one robot, or a bare parameter of all that have it, such as the current.

        Raises
        ------
        ModelError
            A robot refuses a value, or cannot change a parameter while it runs.
        UnknownNameError
            No robot has the parameter.
        """
        changes: dict[str, dict[str, Any]] = {}
        for key, value in provided.items():
            for name, parameter in self.owners(key):
                known = self._descriptions[name].settable or ()
                parts = (
                    by_components(value)
                    if parameter == WORLD_CURRENT and parameter not in known
                    else {parameter: value}
                )
                changes.setdefault(name, {}).update(parts)
        done: list[tuple[Callable[..., None], dict[str, Any]]] = []
        try:
            for name, values in changes.items():
                change = self._descriptions[name].set
                if change is None:
                    raise ModelError(f"set: robot '{name}' has no parameters that can change while it runs")
                former = _present(self._descriptions[name], values)
                change(**values)
                done.append((change, former))
        except (ModelError, ValueError):
            for change, former in done:
                if former:
                    change(**former)
            raise

    def described(self) -> list[dict[str, Any]]:
        """Return the robots as a log keeps them, with all parameters.

        `rtmms.load("world", robots=...)` builds them again.

        Returns
        -------
        list[dict[str, Any]]
            Data for JSON.
        """
        members = [member.described(plant, self._sights_by_robot[member.name])
                for member, plant in zip(self.members, self.robots.values(), strict=True)]  # fmt: skip
        return [member | {"parameters": {**self._shared, **member["parameters"]}} for member in members]

    # --- inside -----------------------------------------------------------------------------------------------------

    def _channels(self, kind: str) -> tuple[Channel, ...]:
        """Return the channels of all robots under the world's names."""
        return tuple(
            replace(channel, name=f"{name}.{channel.name}")
            for name, plant in self.robots.items()
            for channel in getattr(plant, kind)
        )

    @contextmanager
    def _naming(self, k: int) -> Iterator[None]:
        name = self.members[k].name
        try:
            yield
        except DivergedError as fault:
            raise DivergedError(fault.time, f"{name}: {fault.quantity}", fault.last_good, fault.reason) from None

    def _own_views(self) -> dict[str, Array]:
        """Return the robots' outputs where compiled code leaves them; none where compiled code lacks some of them."""
        account = super().compiled_outputs()
        channels = self._channels("outputs")
        if account is None or not all(channel.name in account.numbers for channel in channels):
            return {}
        result: dict[str, Array] = {}
        for channel in channels:
            at, count = account.numbers[channel.name]
            numbers = np.ctypeslib.as_array((c_double * count).from_address(at))
            result[channel.name] = numbers.reshape(channel.shape)
        return result

    def owners(self, key: str) -> list[tuple[str, str]]:
        """Return the robots that `set` changes by a key, and the name of the parameter in each.

        A key without a robot's name changes all robots that have such a parameter.

        Parameters
        ----------
        key : str
            NAME.parameter, or a bare parameter.

        Returns
        -------
        list[tuple[str, str]]
            Name of the robot and its own name of the parameter.

        Raises
        ------
        UnknownNameError
            No robot has it.
        ModelError
            A robot has it, or is in the water of a current, and cannot change it while it runs.
        """
        fault = key.startswith(FAULT)
        name, dot, parameter = key.removeprefix(FAULT).partition(".")
        if name in self.robots and dot:
            return [(name, FAULT + parameter if fault else parameter)]
        all_ = [(name, key) for name, about in self._descriptions.items() if _can_change(about, key)]
        if fault or not all_:
            raise UnknownNameError("parameter that can change while it runs", key, self.settable)
        for item, about in self._descriptions.items():
            if not _can_change(about, key) and _concerns(about, key):
                names = ", ".join(f"{name}.{key}" for name, _ in all_)
                of_all = f"; {WORLD_CURRENT} sets the current of all" if key in CURRENT_COMPONENTS else ""
                raise ModelError(
                    f"set: {key}: expected a parameter that all robots can change while they run; robot '{item}' "
                    f"({self.robot_types[item]}) cannot; set that of the others alone: {names}{of_all}"
                )
        return all_

    def _described(self) -> PlantDescription:
        """Return the description of the robots, under names with theirs; the environment are those of the first."""
        all_ = self._descriptions
        robot_keys, common = [], dict[str, None]()
        for name, about in all_.items():
            for key in about.settable or ():
                plain = key.removeprefix(FAULT)
                robot_keys.append(f"{FAULT}{name}.{plain}" if plain != key else f"{name}.{key}")
                if plain == key:
                    common[key] = None
        if any(_can_change(about, WORLD_CURRENT) for about in all_.values()):
            common[WORLD_CURRENT] = None
        shared = [
            key for key in common if all(_can_change(item, key) or not _concerns(item, key) for item in all_.values())
        ]  # fmt: skip
        media = {about.medium for about in all_.values()}
        ways = {name: about.coupling for name, about in all_.items() if about.coupling is not None}
        alike = len(set(ways.values())) == 1
        return PlantDescription(
            medium=media.pop() if len(media) == 1 else "",
            parameters=self._parameters, set=self.set, settable=(*robot_keys, *shared), present=self._present,
            coupled=tuple(
                CoupledLimit(first + item.first, first + item.second, item.max_difference, item.obeyed)
                for name, about in all_.items() for first in [self._parts[name].start] for item in about.coupled
            ),
            coupling=next(iter(ways.values())) if alike else ", ".join(f"{k} {v}" for k, v in ways.items()) or None,
            trace_outputs=tuple(f"{name}.{output}" for name, about in all_.items() for output in about.trace_outputs),
            summarise=self._summarise, environment=next(iter(all_.values())).environment,
            ends=self._ends,
        )  # fmt: skip

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of each robot, by its name."""
        parameters = {name: about.parameters() for name, about in self._descriptions.items()}
        return {name: parameter for name, parameter in parameters.items() if parameter is not None}

    def _present(self, key: str) -> dict[str, Any]:
        """Return the present values of a parameter, of each robot that has it."""
        result: dict[str, Any] = {}
        for name, parameter in self.owners(key):
            about = self._descriptions[name]
            parts = (
                CURRENT_COMPONENTS
                if parameter == WORLD_CURRENT and parameter not in (about.settable or ())
                else (parameter,)
            )
            result |= {f"{name}.{part}": value for part, value in present_values(about, parts).items()}
        return result

    def _ends(self) -> float | None:
        """Return the first end of a robot's run, s; None where none ends."""
        return min((end for about in self._descriptions.values() if (end := about.ends()) is not None), default=None)

    def _summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """Return numbers of each robot, by NAME.number."""
        result: dict[str, float | None] = {}
        for name, about in self._descriptions.items():
            if about.summarise is not None:
                robot_trace = {output: trace[f"{name}.{output}"] for output in about.trace_outputs}
                result |= {f"{name}.{key}": value for key, value in about.summarise(time, robot_trace).items()}
        return result

    def _combine(self) -> None:
        """Make the record of the compiled step, with the place of each robot's actuators."""
        self.inner = plants = tuple(self.robots.values())
        sizes = {"actuators": len(self.actuators), "inner": len(plants)}
        self.system = WORLD.make({"inner": {"dt": self.dt}}, sizes)
        self._count = self.system.steps
        types = " ".join(f"{name}={kind}" for name, kind in self.robot_types.items())
        self._key = hashlib.sha256(types.encode()).digest()
        for k, places in enumerate(self._parts.values()):
            self.system.inner.rows[k, [FIRST, COUNT]] = places.start, places.stop - places.start
        self._compose()


def build(robots: Any = (), dt: float | None = None, **parameters: Any) -> World:
    """Build the world that data describes, for `rtmms.load("world", robots=[...])`.

    Parameters
    ----------
    robots : iterable, default ()
        Robots as `World` takes them.
    dt : float, optional
        Step of all, s; None: the shortest of the robots' own.
    **parameters : Any
        Parameters of all robots.

    Returns
    -------
    World
        The world.

    Raises
    ------
    ModelError
        A robot is wrong; the message has its name.
    """
    world = World.__new__(World)
    world._assemble(robots, dt, parameters)
    return world


def _can_change(about: PlantDescription, key: str) -> bool:
    """Return whether a plant can change a parameter while it runs, as one or by its components."""
    known = set(about.settable or ())
    return key in known or (key == WORLD_CURRENT and set(CURRENT_COMPONENTS) <= known)


def _concerns(about: PlantDescription, key: str) -> bool:
    """Return whether a plant has a parameter that the others would change, or is in the water of a current."""
    of_water = key in (WORLD_CURRENT, *CURRENT_COMPONENTS) and about.medium == "water"
    return of_water or key in _parameters(about)


def _parameters(about: PlantDescription) -> dict[str, Any]:
    """Return the present parameters of a plant by name; none of a plant that exposes none."""
    exposed = about.parameters()
    if is_dataclass(exposed):
        return {field.name: getattr(exposed, field.name) for field in fields(exposed)}
    return dict(exposed or {})


def _present(about: PlantDescription, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the present values of parameters, as far as the plant has them; of a fault: none."""
    known = {**_parameters(about), **{name: "" for name in values if name.startswith(FAULT)}}
    return {name: known[name] for name in values if name in known}
