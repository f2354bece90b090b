"""Define the robots of a world, their starts and their equipment, as a user gives them and as a log keeps them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

import rtmms.plant.loading
from rtmms.base.errors import ArgumentError, ModelError, UnknownNameError
from rtmms.plant.description import describe_plant, unwrapped
from rtmms.plant.loading import WORLD
from rtmms.plant.optional_protocols import HasRobots
from rtmms.plant.protocol import Plant
from rtmms.plant.validation import read_numbers

MAX_MEMBERS = 64
"""Largest number of robots on one clock."""
WORLD_CURRENT = "current_m_s"
"""Name of the parameter of the world's uniform current, m/s."""
CURRENT_COMPONENTS = ("current_x_m_s", "current_y_m_s", "current_z_m_s")
"""Names of the parameters of a robot's uniform current, m/s."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
_RESERVED = ("truth", "estimate", "fault", "none")
"""Words with which channels, faults, and patterns begin already."""


@dataclass(frozen=True)
class Member:
    """One robot of a world.

    Parameters
    ----------
    name : str
        Name in the world: a letter, then letters, digits and _.
    robot : str or Plant
        Robot as `rtmms.load` takes it, or an existing plant.
    preset : str, optional
        Preset of the robot's parameters; None for its own.
    position : (3,) array_like, optional
        Start in the world, m; None: the robot's own.
    heading_deg : float, optional
        Start about z, degrees; None: the robot's own.
    parameters : Mapping[str, Any], optional
        Its own parameters, which override those of all robots.
    profile : str, default 'ideal'
        Profile of its sensors: 'ideal', 'typical' or a file.
    sensors : Mapping[str, Any], optional
        Tables that override the profile.
    suite : Mapping[str, Any], optional
        Its sensors as a log keeps them, in place of `profile` and `sensors`.
    estimate : bool, default False
        Whether its outputs include an estimate of its motion.
    faults : bool, default False
        Whether its actuators may fail.
    sees : sequence or mapping, default ()
        Other robots that it senses: names, or {name: {key: value}} (rtmms.world.relative_sensors).
    aside_m : float, default 0.0
        Shift along y from its own start, m, for a robot without `position`; a robot that cannot be placed stays.

    Raises
    ------
    ModelError
        A field is wrong.

    Examples
    --------
    >>> from rtmms.world.members import Member
    >>> Member("two", "eel", position=(0.0, 1.0, -1.0)).kind
    'eel'
    """

    name: str
    robot: str | Plant
    preset: str | None = None
    position: tuple[float, ...] | None = None
    heading_deg: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    profile: str = "ideal"
    sensors: Mapping[str, Any] = field(default_factory=dict)
    suite: Mapping[str, Any] | None = None
    estimate: bool = False
    faults: bool = False
    sees: Any = ()
    aside_m: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        where = f"world: robot '{self.name}'" if isinstance(self.name, str) else "world"
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name) or self.name in _RESERVED:
            raise ModelError(
                f"world: name of a robot: expected a letter, then letters, digits and _, got {self.name!r:.60}"
            )
        if not isinstance(self.robot, str | Plant):
            raise ModelError(f"{where}: robot: expected a name, a file or a plant, got {self.robot!r:.60}")
        if self.robot == WORLD or isinstance(self.robot, HasRobots):
            raise ModelError(f"{where}: robot: expected one robot, got a world: name the robots of that world here")
        if self.position is not None:
            try:
                position = read_numbers(where, "position", self.position, (3,))
            except ArgumentError as fault:
                raise ModelError(str(fault)) from None
            object.__setattr__(self, "position", tuple(position.tolist()))
        turn = self.heading_deg
        number = isinstance(turn, int | float) and not isinstance(turn, bool)
        if turn is not None and not (number and math.isfinite(turn)):
            raise ModelError(f"{where}: heading_deg: expected a finite number, got {turn!r:.60}")
        aside = self.aside_m
        if not isinstance(aside, int | float) or isinstance(aside, bool) or not math.isfinite(aside):
            raise ModelError(f"{where}: aside_m: expected a finite number, got {aside!r:.60}")
        for name, kind in (("parameters", Mapping), ("sensors", Mapping), ("profile", str)):
            if not isinstance(getattr(self, name), kind):
                expected = "a table" if kind is Mapping else "a text"
                raise ModelError(f"{where}: {name}: expected {expected}, got {getattr(self, name)!r:.60}")

    @property
    def kind(self) -> str:
        """Its kind on the wire."""
        return self.robot if isinstance(self.robot, str) else type(self.robot).__name__

    def built(self, dt: float | None, shared: Mapping[str, Any]) -> Plant:
        """Build its plant, bare, at its start.

        Parameters
        ----------
        dt : float or None
            Step, s; None for the robot's own.
        shared : Mapping[str, Any]
            Parameters of all robots.

        Returns
        -------
        Plant
            The plant.

        Raises
        ------
        ModelError
            The robot cannot be built or placed; the message has its name.
        """
        if isinstance(self.robot, str):
            try:
                plant = self._loaded(dt, shared)
            except TypeError as fault:
                raise ModelError(f"world: robot '{self.name}': {fault}") from None
            except ModelError as fault:
                raise ModelError(f"robot '{self.name}': {fault}") from None
        else:
            members = [name for name in ("preset", "parameters") if getattr(self, name)]
            if members:
                raise ModelError(
                    f"world: robot '{self.name}': {members[0]}: expected none, as this robot is a plant object "
                    "and not a name"
                )
            plant = self.robot
        self._put(plant)
        return plant

    def _loaded(self, dt: float | None, shared: Mapping[str, Any]) -> Plant:
        """Load the robot; one that has the shared current by its components gets it so, one out of the water none."""
        assert isinstance(self.robot, str)
        try:
            return rtmms.plant.loading.build_plant(
                self.robot, dt=dt, preset=self.preset, **{**shared, **self.parameters}
            )
        except UnknownNameError as fault:
            if fault.name != WORLD_CURRENT or WORLD_CURRENT not in shared:
                raise
        remaining = {name: value for name, value in shared.items() if name != WORLD_CURRENT}
        values = remaining | by_components(shared[WORLD_CURRENT]) | dict(self.parameters)
        try:
            return rtmms.plant.loading.build_plant(self.robot, dt=dt, preset=self.preset, **values)
        except UnknownNameError as fault:
            if fault.name not in CURRENT_COMPONENTS or fault.name in self.parameters:
                raise
            values = {name: value for name, value in values.items() if name not in CURRENT_COMPONENTS}
            plant = rtmms.plant.loading.build_plant(self.robot, dt=dt, preset=self.preset, **values)
            if describe_plant(plant).medium in ("", "water"):
                raise
            return plant

    def equipped(self, plant: Plant) -> Plant:
        """Add its faults and sensors to its plant.

        Parameters
        ----------
        plant : Plant
            Its bare plant.

        Returns
        -------
        Plant
            The plant with them.

        Raises
        ------
        ModelError
            Its sensors are wrong, or an estimate has no sensors.
        """
        from rtmms.sensing.faults import Faulty
        from rtmms.sensing.sensed import Estimated, seen_through
        from rtmms.sensing.suite import read_profile, sensor_of_table

        if self.faults:
            plant = Faulty(plant)
        try:
            if self.suite is not None:
                sensors = {name: sensor_of_table(name, sheet, {}) for name, sheet in self.suite.items()}
            else:
                sensors = read_profile(self.profile, plant, self.sensors)
        except ModelError as fault:
            raise ModelError(f"robot '{self.name}': {fault}") from None
        if self.estimate and not sensors:
            raise ModelError(
                f"robot '{self.name}': estimate: expected sensors with it, got none; give "
                "profile='typical', or leave estimate out"
            )
        return Estimated(plant, sensors) if self.estimate else seen_through(plant, sensors)

    def described(self, plant: Plant, sights: Mapping[str, Any]) -> dict[str, Any]:
        """Return its description for a log, from which `read` makes it again.

        Parameters
        ----------
        plant : Plant
            Its plant with its equipment.
        sights : Mapping[str, Any]
            Its sensors for other robots, by name.

        Returns
        -------
        dict[str, Any]
            Data for JSON.
        """
        from rtmms.sensing.faults import Faulty

        about = describe_plant(plant)
        return {
            "name": self.name, "robot": self.kind, "preset": self.preset, "position": self.position,
            "heading_deg": self.heading_deg, "parameters": dict(self.parameters),
            "suite": {name: asdict(sensor) for name, sensor in about.sensors.items()}, "estimate": self.estimate,
            "faults": isinstance(about.truth or plant, Faulty),
            **({"aside_m": self.aside_m} if self.aside_m else {}),
            **({"sees": {name: asdict(item) for name, item in sights.items()}} if sights else {}),
        }  # fmt: skip

    def _put_aside(self, plant: Plant) -> None:
        """Move it to the left of its own start, if it can be placed there."""
        sound: Any = unwrapped(plant)
        position = plant.observe().get("position") if describe_plant(sound).initial_pose() is not None else None
        if position is None or np.shape(position) != (3,):
            return
        member = _pose_member(sound)
        before = dict(getattr(sound, member))
        try:
            moved_position = (float(position[0]), float(position[1]) + self.aside_m, float(position[2]))
            setattr(sound, member, before | {"position": moved_position})
            plant.reset()
        except ModelError:  # held, or with supports that are fixed
            setattr(sound, member, before)
            plant.reset()

    def _put(self, plant: Plant) -> None:
        """Move it to its start, or raise ModelError where it cannot be placed."""
        if self.aside_m and self.position is None:
            self._put_aside(plant)
        if self.position is None and self.heading_deg is None:
            return
        sound: Any = unwrapped(plant)
        if describe_plant(sound).initial_pose() is None:
            raise ModelError(f"robot '{self.name}': {self.kind} cannot be placed; remove position and heading_deg")
        member = _pose_member(sound)
        pose: dict[str, Any] = dict(getattr(sound, member))
        if self.position is not None:
            pose["position"] = self.position
        if self.heading_deg is not None:
            half = 0.5 * math.radians(self.heading_deg)
            pose["quaternion"] = (math.cos(half), 0.0, 0.0, math.sin(half))
        try:
            setattr(sound, member, pose)
            plant.reset()
        except ModelError as fault:
            raise ModelError(f"robot '{self.name}': {fault}") from None


def by_components(current: Any) -> dict[str, float]:
    """Return a uniform current for robots that take its components.

    Parameters
    ----------
    current : (3,) array_like
        m/s, world.

    Returns
    -------
    dict[str, float]
        Values by the names in `CURRENT_COMPONENTS`, m/s.

    Raises
    ------
    ModelError
        It is not three finite numbers.

    Examples
    --------
    >>> from rtmms.world.members import by_components
    >>> by_components((0.1, 0.0, 0.0))["current_x_m_s"]
    0.1
    """
    if isinstance(current, str):  # a vector as on the command line: 0.2,0.1,0
        with suppress(ValueError):
            current = [float(part) for part in current.split(",")]
    try:
        return dict(zip(CURRENT_COMPONENTS, read_numbers("world", WORLD_CURRENT, current, (3,)).tolist(), strict=True))
    except ArgumentError as fault:
        raise ModelError(str(fault)) from None


KEYS = tuple(item.name for item in fields(Member))


def _pose_member(plant: Any) -> str:
    """Return the name of the member with the initial pose, which was `home` before 0.3."""
    return "initial_pose" if hasattr(plant, "initial_pose") else "home"


"""Keys of a robot's table."""


def read(robots: Any) -> tuple[Member, ...]:
    """Read robots as a user or a log gives them.

    Parameters
    ----------
    robots : iterable
        (name, robot), (name, robot, {key: value}), tables, or members.

    Returns
    -------
    tuple[Member, ...]
        The robots.

    Raises
    ------
    ModelError
        An entry is wrong, a name occurs twice, or there are too many robots.
    UnknownNameError
        A key does not exist.

    Examples
    --------
    >>> from rtmms.world.members import read
    >>> [one.name for one in read([("one", "manta"), ("two", "eel", {"position": (0.0, 1.0, -1.0)})])]
    ['one', 'two']
    """
    if isinstance(robots, str | Mapping) or not isinstance(robots, Iterable):
        raise ModelError(f"world: robots: expected [(name, robot), ...], got {robots!r:.60}")
    result = tuple(_member(robot) for robot in robots)
    if not 0 < len(result) <= MAX_MEMBERS:
        raise ModelError(f"world: expected 1 to {MAX_MEMBERS} robots, got {len(result)}")
    names = [entry.name for entry in result]
    owner: dict[int, str] = {}
    for item in result:
        if names.count(item.name) > 1:
            raise ModelError(f"world: two robots have the name '{item.name}'; give each another name")
        if not isinstance(item.robot, str):
            first = owner.setdefault(id(unwrapped(item.robot)), item.name)
            if first != item.name:
                raise ModelError(
                    f"world: robot '{item.name}': expected a plant object of its own, got the one of '{first}'; make "
                    "another plant"
                )
    return result


def _member(item: Any) -> Member:
    """Return a robot from one entry, or raise ModelError where the entry is wrong."""
    if isinstance(item, Member):
        return item
    if isinstance(item, Mapping):
        table = dict(item)
    elif isinstance(item, tuple | list) and len(item) in (2, 3) and (len(item) == 2 or isinstance(item[2], Mapping)):
        table = {"name": item[0], "robot": item[1], **(item[2] if len(item) == 3 else {})}
    else:
        raise ModelError(f"world: expected (name, robot) or (name, robot, {{key: value}}), got {item!r:.60}")
    for key in table:
        if key not in KEYS:
            raise UnknownNameError("key of a robot", str(key), KEYS)
    for key in ("name", "robot"):
        if key not in table:
            raise ModelError(f"world: a robot needs a {key}, got {table!r:.60}")
    return Member(**table)
