"""Origin of a log: all that builds its plant again, and the point where a run branched from another one."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime
import hashlib
import math
import platform
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rtmms.plant.loading
from rtmms.base.contract import MAX_STEP
from rtmms.base.errors import ModelError
from rtmms.base.files import open_input
from rtmms.base.trust import asked_by_data, is_file, path_of, refuse_foreign_code
from rtmms.plant.description import describe_plant
from rtmms.plant.loading import WORLD
from rtmms.plant.optional_protocols import HasRobots
from rtmms.record.log_messages import FORMAT
from rtmms.version import VERSION
from rtmms.world.members import read as read_members

if TYPE_CHECKING:
    from rtmms.plant.protocol import Channel, Plant


# Origin of a branch of a recorded run: the state at its start, so that its own log suffices.


_PIECE = 1 << 20
_MAX_BRANCHES = 1000


@dataclass(frozen=True)
class Branch:
    """Beginning of a run that continues a log.

    Parameters
    ----------
    log : str
        Name of the log, as the user gave it.
    sha256 : str
        Hash of its bytes.
    seconds : float
        Simulated time at which the run begins, s.
    step : int
        The same in steps: the first step of the run.
    state : bytes
        The plant's snapshot there.
    values : Mapping[str, Any], optional
        Values that requests had set by then, by name.
    before : tuple[Mapping[str, Any], ...], optional
        Branches of the log itself, the nearest first: log, sha256 and seconds of each.
    """

    log: str
    sha256: str
    seconds: float
    step: int
    state: bytes
    values: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Mapping[str, Any], ...] = ()

    def as_fields(self) -> dict[str, Any]:
        """Return the branch for reports and `rtmms log info`, without the state.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        fields = {"log": self.log, "sha256": self.sha256, "seconds": self.seconds, "step": self.step}
        return {**fields, "set": dict(self.values), "before": [dict(item) for item in self.before]}

    def as_data(self) -> dict[str, Any]:
        """Return the branch in JSON's own types, for origin.json.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        return {**self.as_fields(), "state": base64.b64encode(self.state).decode()}

    def begin(self, plant: Plant) -> None:
        """Bring a plant that was reset with the run's seed to the beginning of the run.

        Parameters
        ----------
        plant : Plant
            The plant.

        Raises
        ------
        ModelError
            If the plant is another one.
        """
        if self.values:
            plant.set(**self.values)  # type: ignore[attr-defined]
        plant.restore(self.state)


def sha256_of(path: Path) -> str:
    """Return the hash of a file's bytes.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
        Hexadecimal digits.
    """
    result = hashlib.sha256()
    with open_input(path) as file:
        while piece := file.read(_PIECE):
            result.update(piece)
    return result.hexdigest()


def branch_of(origin: Mapping[str, Any]) -> Branch | None:
    """Return the branch of a log, after `refuse_branch`.

    Parameters
    ----------
    origin : Mapping[str, Any]
        Origin of the log.

    Returns
    -------
    Branch | None
        None for a run from t = 0.
    """
    branch = origin.get("branch")
    if branch is None:
        return None
    state = base64.b64decode(branch["state"], validate=True)
    return Branch(
        branch["log"], branch["sha256"], float(branch["seconds"]), branch["step"], state, branch["set"],
        tuple(branch["before"]),
    )  # fmt: skip


def refuse_branch(origin: Mapping[str, Any], place: str) -> None:
    """Raise ModelError if a run does not write a log's `branch` in this form.

    Parameters
    ----------
    origin : Mapping[str, Any]
        Origin of the log.
    place : str
        The file, for the error.

    Raises
    ------
    ModelError
        If it has another form.
    """
    branch = origin.get("branch")
    if branch is None:
        return

    def expect(holds: bool, name: str, expected: str) -> None:
        """Raise ModelError unless a condition holds.

        Parameters
        ----------
        holds : bool
            The condition.
        name : str
            Name of the field.
        expected : str
            Expected value.

        Raises
        ------
        ModelError
            If it does not hold.
        """
        if not holds:
            got = branch.get(name) if isinstance(branch, dict) else branch
            raise ModelError(f"{place}: branch: {name}: expected {expected}, got {got!r:.60}")

    expect(isinstance(branch, dict), "branch", "a table or null")
    step, before = branch.get("step"), branch.get("before")
    _expect_place(branch, expect)
    expect(type(step) is int and 0 <= step <= MAX_STEP, "step", "the number of a step")
    expect(isinstance(branch.get("set"), dict), "set", "a table")
    expect(isinstance(before, list) and len(before) <= _MAX_BRANCHES, "before", "a list of branches")
    for item in before:
        expect(isinstance(item, dict), "before", "a list of branches")
        _expect_place(item, expect)
    try:
        base64.b64decode(branch.get("state"), validate=True)
    except (TypeError, ValueError, binascii.Error):
        expect(False, "state", "a snapshot (base64 text)")


def _expect_place(origin: Mapping[str, Any], expect: Any) -> None:
    seconds, log, hashed = origin.get("seconds"), origin.get("log"), origin.get("sha256")
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
    expect(number and seconds >= 0, "seconds", "a number >= 0")  # type: ignore[operator]
    expect(isinstance(log, str), "log", "text")
    expect(isinstance(hashed, str) and len(hashed) == 64, "sha256", "64 hexadecimal digits")


# Subject of a log: everything that is needed to build the same plant again, and to know how it ran.


MAX_STEP_NUMBERS = 1_000_000
"""Numbers of all outputs, or all actuators, in one step."""

STEP_S = (1e-9, 1e6)
"""Shortest and longest step, s."""


MAX_REPORTED = 1e300
"""Magnitude of a number in a report."""

MAX_PARTS = 10_000
"""Parts of each kind in a drawing."""


def refuse_origin(origin: Mapping[str, Any], place: str) -> None:
    """Raise ModelError if a run does not write an origin in this form.

    Parameters
    ----------
    origin : Mapping[str, Any]
        Origin of the log.
    place : str
        The file, for the error.

    Raises
    ------
    ModelError
        If it has another form; it names the field.
    """

    def expect(holds: bool, name: str, expected: str) -> None:
        """Raise ModelError unless a condition holds.

        Parameters
        ----------
        holds : bool
            The condition.
        name : str
            Name of the field.
        expected : str
            Expected value.

        Raises
        ------
        ModelError
            If it does not hold.
        """
        if not holds:
            raise ModelError(f"{place}: {name}: expected {expected}, got {origin.get(name)!r:.60}")

    dt, seed, preset = origin.get("dt"), origin.get("seed"), origin.get("preset")
    expect(_named(origin.get("robot")), "robot", "a name")
    expect(_number(dt) and STEP_S[0] <= dt <= STEP_S[1], "dt", f"a step of {STEP_S[0]:g} to {STEP_S[1]:g} s")  # type: ignore[operator]
    expect(isinstance(seed, int) and seed >= 0, "seed", "a whole number from 0 on")
    expect(preset is None or _named(preset), "preset", "a name or null")
    parameters = origin.get("parameters")
    named = isinstance(parameters, dict) and not {"robot", "dt", "preset"} & parameters.keys()
    expect(named, "parameters", "a table without robot, dt and preset")
    expect(_small_shape(origin.get("shape")), "shape", f"a table of {MAX_PARTS} parts at most")
    robots = origin.get("robots")
    known = isinstance(robots, dict) and all(
        isinstance(robot, dict) and _named(robot.get("robot")) and _small_shape(robot.get("shape"))
        and isinstance(robot.get("description"), dict | None) for robot in robots.values()
    )  # fmt: skip
    expect(robots is None or known, "robots", "tables with robot, shape and description, or null")
    sensors = origin.get("sensors")
    tables = isinstance(sensors, dict) and all(isinstance(sensor, dict) for sensor in sensors.values())
    expect(sensors is None or tables, "sensors", "tables or null")


def refuse_channels(origin: Mapping[str, Any], place: str) -> None:
    """Raise ModelError if a run does not write channels and versions in this form.

    Parameters
    ----------
    origin : Mapping[str, Any]
        Origin of the log.
    place : str
        The file, for the error.

    Raises
    ------
    ModelError
        If they have another form; it names the field.
    """
    for kind in ("actuators", "outputs"):
        result = origin.get(kind)
        if not isinstance(result, list) or not all(isinstance(entry, dict) for entry in result):
            raise ModelError(f"{place}: {kind}: expected a list of channels, got {result!r:.60}")
        numbers = 0
        for item in result:
            shape = item.get("shape", ())
            if not _named(item.get("name")) or not isinstance(item.get("unit", ""), str):
                raise ModelError(f"{place}: {kind}: expected a name and a unit, got {item.get('name')!r:.60}")
            if not isinstance(shape, list | tuple) or not all(type(n) is int and n >= 0 for n in shape):
                raise ModelError(f"{place}: {kind}: {item['name']}: expected a shape of sizes, got {shape!r:.60}")
            numbers += math.prod(shape)
        if numbers > MAX_STEP_NUMBERS:
            raise ModelError(
                f"{place}: {kind}: expected at most {MAX_STEP_NUMBERS} numbers in a step, got {numbers:.6g}"
            )
    versions = origin.get("versions")
    if not isinstance(versions, dict) or not isinstance(versions.get("rtmms"), str):
        raise ModelError(f"{place}: versions: expected a table with rtmms, got {versions!r:.60}")
    for name in ("mode", "started", "command_line", "machine"):
        if not isinstance(origin.get(name), str):
            raise ModelError(f"{place}: {name}: expected text, got {origin.get(name)!r:.60}")
    for name in ("rate", "duration"):
        value = origin.get(name)
        if value is not None and not (_number(value) and value >= 0):
            raise ModelError(f"{place}: {name}: expected a number >= 0 or null, got {value!r:.60}")
    refuse_branch(origin, place)
    if not isinstance(origin.get("description"), dict | None):
        raise ModelError(f"{place}: description: expected a table or null, got {origin['description']!r:.60}")


REPORT_TABLES: Mapping[str, int] = {"exchange": 0, "schedule": 0, "summary": 0, "timing_us": 1, "tracking": 1}
"""Tables of a report that figures and comparisons read, and the depth of their numbers."""


def refuse_report(data: Mapping[str, Any], place: str) -> None:
    """Raise ModelError for a report in end.json of another form.

    Figures and comparisons expect tables with numbers.

    Parameters
    ----------
    data : Mapping[str, Any]
        Contents of end.json.
    place : str
        The file, for the error.

    Raises
    ------
    ModelError
        If a table is none, or has other values than numbers.
    """
    report = data.get("report")
    if report is None:
        return
    if not isinstance(report, dict):
        raise ModelError(f"{place}: report: expected a table, got {report!r:.60}")
    for name, deep in REPORT_TABLES.items():
        tables = [(name, report.get(name) or {})]
        for _ in range(deep + 1):
            for above, item in tables:
                if not isinstance(item, dict):
                    raise ModelError(f"{place}: report: {above}: expected a table, got {item!r:.60}")
            below = [(f"{above}.{key}", value) for above, entry in tables for key, value in entry.items()]
            tables = below
        for above, value in below:
            if deep or above in ("schedule.period_us", "schedule.deadline_us"):
                good = value is None or (isinstance(value, int | float) and abs(value) < MAX_REPORTED)
                if not good:
                    raise ModelError(f"{place}: report: {above}: expected a number or null, got {value!r:.60}")


def _small_shape(shape: Any) -> bool:
    """Return whether a value is None, or a drawing of few parts."""
    lists = [value for value in shape.values() if isinstance(value, list)] if isinstance(shape, dict) else []
    return shape is None or (isinstance(shape, dict) and all(len(item) <= MAX_PARTS for item in lists))


def _named(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 4096 and "\0" not in value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


LIBRARIES = ("numpy", "numba", "scipy", "pyzmq", "msgpack", "mcap")


def describe(plant: Plant, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the origin of a run in JSON's own types.

    It adds format, dt, actuators, outputs, every parameter that the plant exposes, the data of its figures, versions,
    machine and command line.

    Parameters
    ----------
    plant : Plant
        The plant.
    run : Mapping[str, Any]
        robot, preset, parameters, seed, mode, and further values to store.

    Returns
    -------
    dict[str, Any]
        Values by name.
    """
    from rtmms.plant.levels import levels_of  # loads numba, which a reader of logs does not need

    about = describe_plant(plant)
    return {
        **{key: to_json_types(value) for key, value in run.items()},
        "format": FORMAT, "dt": plant.dt,
        "sensors": None if about.truth is None else to_json_types(about.sensors),
        "estimate": about.estimates,
        "faults": hasattr(about.truth or plant, "sound"),
        **({"degrade": True} if levels_of(plant) is not None else {}),
        "actuators": channels(plant.actuators), "outputs": channels(plant.outputs),
        "description": to_json_types(about.parameters()),
        "trace_outputs": list(about.trace_outputs),
        "recent_outputs": list(about.recent_outputs),
        "shape": to_json_types(about.shape()),
        "robots": _robots(plant) if isinstance(plant, HasRobots) else None,
        "versions": _versions(), "machine": _machine(), "command_line": " ".join(sys.argv),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
    }  # fmt: skip


def _robots(plant: HasRobots) -> dict[str, Any]:
    """Return the viewers' data of each of several robots on one clock."""
    return {
        name: {
            "robot": plant.robot_types[name], "description": to_json_types(about.parameters()),
            "shape": to_json_types(about.shape()),
        }
        for name, about in ((name, describe_plant(robot)) for name, robot in plant.robots.items())
    }  # fmt: skip


def rebuild_plant(origin: Mapping[str, Any], robot: str | None = None, *, trusted: bool = False) -> Plant:
    """Return the plant of a log or trace, with its sensors.

    A log is data. By itself it gets a robot that is installed (entry points); a file that it names would run as code.

    Parameters
    ----------
    origin : Mapping[str, Any]
        Origin of the log.
    robot : str | None, optional
        Robot in place of the log's own, as the user named it; None: the log's own.
    trusted : bool, default False
        Whether the user declared that files which the log names may run.

    Returns
    -------
    Plant
        The plant.

    Raises
    ------
    ModelError
        If it can no longer be built, or is not trusted.
    """
    if robot is None:
        refuse_untrusted(origin, trusted=trusted)
    with asked_by_log(robot, trusted=trusted):
        code, load_options = robot or origin["robot"], {"dt": origin["dt"], "preset": origin["preset"]}
        plant = rtmms.plant.loading.build_plant(code, **load_options, **origin["parameters"])
        if (parameters := _from_surface(origin, plant)) is not None:
            plant = rtmms.plant.loading.build_plant(code, **load_options, **parameters)
    if origin.get("degrade"):
        from rtmms.plant.levels import Levels

        plant = Levels(plant)
    sensors = origin.get("sensors")
    if origin.get("faults"):
        from rtmms.sensing.faults import Faulty

        plant = Faulty(plant)
    if not sensors:
        return plant
    from rtmms.sensing.sensed import Estimated, seen_through
    from rtmms.sensing.suite import sensor_of_table

    built = {name: sensor_of_table(name, sheet, {}) for name, sheet in sensors.items()}
    return Estimated(plant, built) if origin.get("estimate") else seen_through(plant, built)


def _from_surface(origin: Mapping[str, Any], plant: Plant) -> dict[str, Any] | None:
    """Return parameters for a log of an older rtmms with swimming robots at z = 0; None for a newer one."""

    def older(plant: Plant, description: Any) -> bool:
        plant_parameters = describe_plant(plant).parameters()
        return hasattr(plant_parameters, START) and isinstance(description, Mapping) and START not in description

    parameters = dict(origin["parameters"])
    if not isinstance(plant, HasRobots):
        return {**parameters, START: 0.0} if older(plant, origin.get("description")) else None
    recorded = origin.get("robots")
    if not isinstance(recorded, Mapping):
        return None
    names = {
        name for name, robot in plant.robots.items()
        if isinstance(recorded.get(name), Mapping) and older(robot, recorded[name].get("description"))
    }  # fmt: skip
    parameters["robots"] = [
        {**robot_table, "parameters": {**robot_table["parameters"], START: 0.0}}
        if robot_table["name"] in names
        else robot_table
        for robot_table in parameters["robots"]
    ]
    return parameters if names else None


START = "start_depth_m"


def asked_by_log(robot: str | None, *, trusted: bool) -> AbstractContextManager[None]:
    """Work for a log: the user's `robot` runs, and with `trusted` each file of the user's own.

    Parameters
    ----------
    robot : str | None
        Robot in place of the log's own, as the user named it; None: the log's own.
    trusted : bool
        Whether the user declared that files which the log names may run.

    Returns
    -------
    AbstractContextManager[None]
        The context.
    """
    remedy = "add --trust-log, or name the file yourself (--robot FILE.py:NAME)"
    return asked_by_data("the log", remedy, named=() if robot is None else (robot,), trusted=trusted)


def refuse_untrusted(origin: Mapping[str, Any], *, trusted: bool) -> None:
    """Refuse the files of robots and presets that a log names, before anything is built.

    Parameters
    ----------
    origin : Mapping[str, Any]
        Origin of the log.
    trusted : bool
        Whether the user declared that files which the log names may run.

    Raises
    ------
    ModelError
        If the user does not trust the log, or if others can have written such a file.
    """
    if origin["robot"] == WORLD:
        for member in read_members(origin["parameters"].get("robots", ())):
            refuse_untrusted({"robot": member.kind, "preset": member.preset}, trusted=trusted)
        return
    code, preset = origin["robot"], origin["preset"]
    installed = code in rtmms.plant.loading.robots() or "." not in code  # `load` reports an unknown name
    named = [] if installed else [("robot", code)]
    if preset is not None and preset.endswith(".toml"):
        named.append(("preset", preset))
    for kind, word in named:
        if not trusted:
            by_name = f", or name the file yourself (rtmms run {word} --from ..., rtmms replay ... --robot {word})"
            remedy = by_name if kind == "robot" else ""
            raise ModelError(
                f"the log's {kind} '{word}' is a file, which would run as code: if you trust the log, add "
                f"--trust-log{remedy}"
            )
        file = path_of(kind, word) if is_file(word) else Path(word)
        refuse_foreign_code(file, f"the log's {kind} '{word}'")


def channels(channel_list: Iterable[Channel]) -> list[dict[str, Any]]:
    """Return actuators or outputs as a log describes them.

    Parameters
    ----------
    channel_list : Iterable[Channel]
        The channels.

    Returns
    -------
    list[dict[str, Any]]
        Values by name of each.
    """
    return [
        {
            "name": c.name, "unit": c.unit, "shape": [int(n) for n in c.shape], "frame": c.frame,
            "lower": to_json_types(c.lower), "upper": to_json_types(c.upper), "neutral": to_json_types(c.neutral),
        }
        for c in channel_list
    ]  # fmt: skip


def _machine() -> str:
    """Return system, release and processor family, as platform.platform() does, which starts a process for it."""
    libc = "".join(platform.libc_ver())
    return "-".join((platform.system(), platform.release(), platform.machine(), *(("with", libc) if libc else ())))


def _versions() -> dict[str, str]:
    result = {"rtmms": VERSION, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            continue
    return result


def to_json_types(value: Any) -> Any:
    """Return a value in JSON's own types.

    Parameters
    ----------
    value : Any
        A dataclass, mapping, list, array, number or other object.

    Returns
    -------
    Any
        The value; other objects become text.

    Examples
    --------
    >>> to_json_types({"a": (1, 2.5)})
    {'a': [1, 2.5]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json_types(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_types(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
