"""Scenario from its file: every key known, every value of its type, each error reported with file and line."""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import open_input
from rtmms.base.parameters import read_table
from rtmms.base.terminal import print_text
from rtmms.base.toml_file import read_toml_and_text
from rtmms.base.trust import file_parameters, refuse_foreign_code, split_word
from rtmms.loop.impairment import Impairment
from rtmms.plant.loading import WORLD
from rtmms.scenario.expectations import Expectation, expectation
from rtmms.scenario.links import from_tables
from rtmms.scenario.run_options import run_options
from rtmms.scenario.tables import EventTable, RobotTable, SweepTable
from rtmms.scenario.toml_lines import Path as Place
from rtmms.scenario.toml_lines import line_of, lines

TABLES = ("robot", "parameters", "sensors", "controller", "bridge", "link", "event", "expect", "sweep")


@dataclass(frozen=True)
class Event:
    """Change at a time of a run.

    Attributes
    ----------
    at_s : float
        Simulated time, s.
    values : Mapping[str, Any]
        'PARAMETER' of the plant, or 'CONTROLLER.PARAMETER', with the new value.
    line : int
        Line in the file.
    ends : bool, default False
        Whether it ends a fault: it then acts before others of its time.

    Examples
    --------
    >>> from rtmms.scenario import Event
    >>> Event(5.0, {"gait.frequency_hz": 0.4}, line=9).values
    {'gait.frequency_hz': 0.4}
    """

    at_s: float
    values: Mapping[str, Any]
    line: int
    ends: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Scenario:
    """Content of a scenario file.

    Attributes
    ----------
    path : Path
        The file.
    robot : str
        As on the command line.
    options : Mapping[str, Any]
        Options of `run` by their long names, with underscores.
    parameters : Mapping[str, Any]
        Parameters of the robot.
    controllers : tuple[str, ...] | None, optional
        Words of a command line, 'NAME:key=value,...'; None where the file has none: the robot's default.
    bridges : tuple[str, ...], default ()
        Words of a command line.
    events : tuple[Event, ...], default ()
        In the order of their times.
    expect : tuple[Expectation, ...], default ()
        Expectations.
    sensors : Mapping[str, Any]
        Tables over those of the profile, which is an option.
    sweep : Mapping[str, Any]
        Table of `rtmms sweep` (rtmms.studies.sweep_study), with the keys of rtmms.scenario.tables.
    places : Mapping[Place, int]
        Lines of the keys.
    links : tuple[Impairment, ...], default ()
        Impairments of the controllers' links.
    robots : tuple[Mapping[str, Any], ...], default ()
        Table of each of several robots on one clock, with a name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rtmms.scenario import Event, Scenario
    >>> turn = Event(5.0, {"gait.frequency_hz": 0.4}, line=9)
    >>> scenario = Scenario(Path("turn.toml"), "manta", events=(turn,), places={("run", "seed"): 4})
    >>> str(scenario.fault("expected a whole number, got -1", "run", "seed"))
    'turn.toml:4: expected a whole number, got -1'
    """

    path: Path
    robot: str
    options: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    controllers: tuple[str, ...] | None = None
    bridges: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    expect: tuple[Expectation, ...] = ()
    sensors: Mapping[str, Any] = field(default_factory=dict)
    sweep: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[Place, int] = field(default_factory=dict)
    links: tuple[Impairment, ...] = ()
    robots: tuple[Mapping[str, Any], ...] = ()

    def fault(self, text: str, *place: str | int) -> ModelError:
        """Return an error with file and line of a key.

        Parameters
        ----------
        text : str
            The message.
        *place : str | int
            Path of the key. An option's key may have dashes for underscores.

        Returns
        -------
        ModelError
            The error.
        """
        dashed = tuple(item.replace("_", "-") if isinstance(item, str) else item for item in place)
        line = line_of(dict(self.places), dashed if dashed in self.places else place)
        return ModelError(f"{self.path}:{line}: {text}")

    def located(self, text: str) -> str:
        """Return a message with the line of the parameter, the sensor or the robot that it names.

        Parameters
        ----------
        text : str
            The message.

        Returns
        -------
        str
            The message with file and line.
        """
        if text.startswith(f"{self.path}:"):
            return text
        for key in self.parameters:
            if key in text:
                return str(self.fault(text, "parameters", key))
        for name, table in self.sensors.items():
            if re.search(rf"\bsensor '?{re.escape(name)}\b", text):
                keys = [key for key in table if re.search(rf"\b{re.escape(key)}\b", text)]
                return str(self.fault(text, "sensors", *name.split("."), *keys[:1]))
        if "sensors" in text and ("sensors", "profile") in self.places:
            return str(self.fault(text, "sensors", "profile"))
        if "robot" in text:
            return str(self.fault(text, "robot"))
        return f"{self.path}: {text}"


def read(path: Path) -> Scenario:
    """Read a scenario from a file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Scenario
        Its content.

    Raises
    ------
    ModelError
        With file, line, what was got and what is expected.
    """
    data, text = read_toml_and_text(path)
    return _Reader(path, lines(text), data).scenario()


MAX_TABLE_ENTRIES = {
    "robot": 64, "controller": 64, "bridge": 64, "link": 64, "sensors": 256, "parameters": 1000, "event": 10_000,
    "expect": 1000,
}  # fmt: skip
"""Largest number of entries of each table of a scenario: a file with more is no person's, and would take minutes and
gigabytes.
"""

MAX_ENTRIES = 50_000
"""Keys and values of all tables and lists."""

GROUPS = {"controller": "rtmms.controllers", "bridge": "rtmms.bridges"}
"""Entry points of each kind of table."""


OLD_KEYS: Mapping[str, str] = {"tracking_from": "tracking_start", "as_json": "json"}
"""Old names of keys, which work for one minor version."""


class _FaultTime(NamedTuple):
    """Time of the fault of the k-th event."""

    k: int
    target: str
    at_s: float
    until_s: float | None


class _Reader:
    def __init__(self, path: Path, places: dict[Place, int], data: dict[str, Any]) -> None:
        self._path, self._places, self._data = path, places, data

    def scenario(self) -> Scenario:
        if _entries(self._data) > MAX_ENTRIES:
            raise ModelError(f"{self._path}: expected at most {MAX_ENTRIES} keys and values, got more")
        for name, max_entries in MAX_TABLE_ENTRIES.items():
            table = self._data.get(name)
            if isinstance(table, (list, dict)) and len(table) > max_entries:
                raise self._fault(f"{name}: expected at most {max_entries} entries, got {len(table)}", name)
        known = {run_option.file_key: run_option.name for run_option in run_options().values() if run_option.key}
        options: dict[str, Any] = {}
        for key, value in self._data.items():
            if key in TABLES:
                continue
            name = self._current(key)
            if name not in known:
                raise self._unknown("key", key, [*known, *TABLES], key)
            name = known[name]
            if isinstance(value, (dict, list)):
                raise self._fault(f"{key}: expected a single value, got {_kind(value)}", key)
            if name in options:
                raise self._fault(
                    f"{key}: expected this key once, got it again in another spelling; remove one of them", key
                )
            options[name] = value
        self._refuse_options(options)
        options |= self._profile()
        controllers = self._plugins("controller")
        robots = self._robots()
        events = tuple(sorted(self._events(controllers), key=lambda event: (event.at_s, not event.ends)))
        return Scenario(
            self._path, self._robot(), options, self._parameters(), controllers, self._plugins("bridge") or (), events,
            self._expect(), {} if robots else self._sensors(), self._sweep(), self._places, self._links(),
            robots,
        )  # fmt: skip

    def _robots(self) -> tuple[Mapping[str, Any], ...]:
        """Return the table of each of several robots on one clock, with known keys.

        The values are checked at their use.
        """
        robot_tables = self._data.get("robot")
        if not isinstance(robot_tables, list):
            return ()
        built, over = [], self._sensors()
        for k, table in enumerate(robot_tables):
            if not isinstance(table, dict):
                raise self._fault(f"robot: expected tables [[robot]], got {_kind(table)}", "robot")
            item = read_table(RobotTable, table, "robot", self._faults_of("robot", k))
            for key in ("robot", "preset", "sensors"):
                if key in item:
                    item[key] = self._resolve_file(item[key], "robot", k, key)
            if "sensors" in item:
                item["profile"] = item.pop("sensors")
            if over:
                item["sensors"] = over
            for key, value in item.get("parameters", {}).items():
                self._finite(value, f"robot: parameters.{key}", "robot", k, "parameters")
            built.append(item)
        if not built:
            raise self._fault("robot: expected at least one table [[robot]]", "robot")
        return tuple(built)

    def _robot(self) -> str:
        robot = self._data.get("robot")
        if isinstance(robot, list):
            return WORLD
        if not isinstance(robot, str) or not robot:
            raise self._fault(f'robot: expected a text such as "manta", got {_kind(robot)}', "robot")
        return self._resolve_file(robot, "robot")

    def _parameters(self) -> dict[str, Any]:
        table = self._table("parameters")
        for key, value in table.items():
            if isinstance(value, dict):
                raise self._fault(f"parameters.{key}: expected a value, got a table", "parameters", key)
            self._finite(value, f"parameters.{key}", "parameters", key)
        return table

    def _sensors(self) -> dict[str, Any]:
        """Return the tables over the profile, by sensor; a table within a table is a second sensor of its kind."""
        result: dict[str, Any] = {}
        for name, table in self._table("sensors").items():
            if name == "profile":
                continue
            if not isinstance(table, dict):
                raise self._fault(
                    f"sensors.{name}: expected a table [sensors.{name}], got {_kind(table)}", "sensors", name
                )
            inner = {key: value for key, value in table.items() if isinstance(value, dict)}
            result |= {f"{name}.{key}": value for key, value in inner.items()}
            if len(inner) < len(table) or not table:
                result[name] = {key: value for key, value in table.items() if key not in inner}
            if len(result) > MAX_TABLE_ENTRIES["sensors"]:
                raise self._fault(f"sensors.{name}: expected at most {MAX_TABLE_ENTRIES['sensors']} sensors, got more",
                                  "sensors", name)  # fmt: skip
        return result

    def _profile(self) -> dict[str, Any]:
        """Return the option for the table's `profile`."""
        table = self._table("sensors")
        if "profile" not in table:
            return {}
        if not isinstance(table["profile"], str):
            raise self._fault(f"sensors.profile: expected a text, got {_kind(table['profile'])}", "sensors", "profile")
        return {"sensors": self._resolve_file(table["profile"], "sensors", "profile")}

    def _plugins(self, kind: str) -> tuple[str, ...] | None:
        """Return the words of a command line for each table."""
        result = self._data.get(kind)
        if result is None:
            return None
        if not isinstance(result, list) or not all(isinstance(item, dict) for item in result):
            raise self._fault(f"{kind}: expected tables [[{kind}]], got {_kind(result)}", kind)
        return tuple(self._word(kind, k, item) for k, item in enumerate(result))

    def _word(self, kind: str, k: int, table: Mapping[str, Any]) -> str:
        named = [key for key in ("name", "file") if key in table]
        if len(named) != 1 or not isinstance(table[named[0]], str) or not table[named[0]]:
            raise self._fault(f'[[{kind}]]: expected name = "..." or file = "FILE.py"', kind, k)
        name = self._resolve_file(table[named[0]], kind, k, named[0])
        if split_word(name)[1]:
            raise self._fault(f"{kind}: {named[0]}: expected a name, got '{name}': parameters are keys of the table",
                              kind, k, named[0])  # fmt: skip
        files = _files_of(kind, name)
        pairs = []
        for key, value in table.items():
            if key in named:
                continue
            if isinstance(value, (dict, list)):
                raise self._fault(f"{kind} {name}: {key}: expected a single value, got {_kind(value)}", kind, k, key)
            self._finite(value, f"{kind} {name}: {key}", kind, k, key)
            if isinstance(value, str) and files.get(key) == "code":
                value = self._resolve_file(value, kind, k, key)
            elif isinstance(value, str) and files.get(key) in ("input", "output"):
                self._inside(value, kind, k, key)
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if "," in text:
                raise self._fault(f"{kind} {name}: {key}: expected a value without a comma, got '{text}'", kind, k, key)
            pairs.append(f"{key}={text}")
        return name + (":" + ",".join(pairs) if pairs else "")

    def _events(self, controllers: tuple[str, ...] | None) -> Iterable[Event]:
        event_tables = self._data.get("event", [])
        if not isinstance(event_tables, list) or not all(isinstance(item, dict) for item in event_tables):
            raise self._fault(f"event: expected tables [[event]], got {_kind(event_tables)}", "event")
        faults: list[_FaultTime] = []
        for k, table in enumerate(event_tables):
            fields = read_table(EventTable, table, "event", self._faults_of("event", k))
            at_s, values, line = fields["at_s"], fields.get("set"), line_of(self._places, ("event", k))
            if "fault" in fields:
                yield from self._faults(k, fields, line)
                self._refuse_overlap(faults, _FaultTime(k, fields["target"], fields["at_s"], fields.get("until_s")))
                continue
            for key in ("target", "until_s", "value"):
                if key in fields:
                    raise self._fault(f"event: {key}: expected a fault with it, got none", "event", k, key)
            if not values:
                raise self._fault(
                    f"event: set: expected {{ name = value, ... }}, got {_kind(values)}", "event", k, "set"
                )
            values = dict(_flat(values))
            for name, value in values.items():
                self._finite(value, f"event: set: {name}", "event", k, "set")
                if isinstance(value, list) and not _numbers(value):
                    what = "expected a single value, or a list of numbers"
                    raise self._fault(f"event: set: {name}: {what}, got {value}", "event", k, "set")
            yield Event(at_s, values, line)

    def _faults(self, k: int, event: Mapping[str, Any], line: int) -> Iterable[Event]:
        """Return the events of a fault: a parameter of the plant is set when it begins, and set back when it ends."""
        if "set" in event:
            raise self._fault("event: expected a fault or set, got both", "event", k, "set")
        for key in ("fault", "target"):
            if not event.get(key):
                raise self._fault(f"event: {key}: expected a text, got {_kind(event.get(key))}", "event", k, key)
        at_s, value = event["at_s"], event.get("value")
        name, word = f"fault.{event['target']}", event["fault"]
        yield Event(at_s, {name: word if value is None else f"{word}={value}"}, line)
        if "until_s" in event:
            until_s = event["until_s"]
            if until_s <= at_s:
                raise self._fault(
                    f"event: until_s: expected a time after at_s, {at_s:g} s, got {until_s:g}", "event", k, "until_s"
                )
            yield Event(until_s, {name: ""}, line, ends=True)

    def _refuse_overlap(self, faults: list[_FaultTime], item: _FaultTime) -> None:
        """Raise ModelError for a fault that overlaps another one of its target; add it to `faults`.

        A target has one fault at a time. Of two faults without an end the later one replaces the earlier one.
        """
        for other in faults:
            first, second = sorted((other, item), key=lambda fault: fault.at_s)
            apart = first.until_s is not None and first.until_s <= second.at_s
            replaced = first.until_s is None and second.until_s is None and first.at_s < second.at_s
            if item.target == other.target and not apart and not replaced:
                raise self._fault(
                    f"event: '{item.target}' has another fault at t = {second.at_s:g} s: expected separate times "
                    "(at_s, until_s)",
                    "event", item.k,
                )  # fmt: skip
        faults.append(item)

    def _sweep(self) -> dict[str, Any]:
        return read_table(
            SweepTable, self._table("sweep"), "sweep", lambda key, text: self._fault(f"sweep: {text}", "sweep", key)
        )

    def _faults_of(self, table: str, k: int) -> Callable[[str, str], ModelError]:
        """Return the function that makes an error of a key of the k-th table, for `read_table`."""
        return lambda key, text: self._fault(f"{table}: {text}", table, k, key)

    def _links(self) -> tuple[Impairment, ...]:
        """Return the links of [[link]] tables; unknown controllers are refused later."""
        link_tables = self._data.get("link", [])
        if not isinstance(link_tables, list) or not all(isinstance(item, dict) for item in link_tables):
            raise self._fault(f"link: expected tables [[link]], got {_kind(link_tables)}", "link")
        return from_tables(
            link_tables, lambda k, key, text: self._fault(f"link: {text}", "link", k, *([key] if key else []))
        )

    def _expect(self) -> tuple[Expectation, ...]:
        result = []
        for name, text in _flat(self._table("expect")):
            try:
                result.append(expectation(name, text))
            except ModelError as fault:
                raise self._fault(f"expect: {name}: {fault}", "expect", name) from None
        return tuple(result)

    def _table(self, name: str) -> dict[str, Any]:
        result = self._data.get(name, {})
        if not isinstance(result, dict):
            raise self._fault(f"{name}: expected a table [{name}], got {_kind(result)}", name)
        return result

    def _inside(self, file: str, *place: str | int) -> None:
        """Raise ModelError for a file outside the scenario's working folder, as its author may be anybody."""
        here = Path.cwd().resolve()
        if file and (file.startswith("~") or not (here / file).resolve().is_relative_to(here)):
            raise self._fault(
                f"{place[-1]}: expected a file in the folder that the scenario runs in, or below it, got '{file}'; "
                "name other files on the command line", *place
            )  # fmt: skip

    def _current(self, key: str) -> str:
        """Return the present name of an option; an old one prints a warning."""
        name = key.replace("-", "_")
        new = OLD_KEYS.get(name)
        if new is None:
            return name
        line = self._places.get((key,))
        place = f"{self._path}:{line}" if line else str(self._path)
        print_text(f"{place}: {key} is {new} now; the next version removes the old name", err=True)
        return new

    def _refuse_options(self, options: Mapping[str, Any]) -> None:
        """Raise ModelError for an option of the command line alone, and for files that a scenario may not write.

        These are files outside its folder, of other kinds, or of other users.
        """
        for name, value in options.items():
            option = run_options()[name]
            if option.not_in_file:
                raise self._fault(f"{name}: {option.not_in_file.format(value=value)}", name)
            if option.writes is None or not isinstance(value, str):
                continue
            self._inside(value, name)
            if option.writes and not value.endswith(option.writes):
                raise self._fault(f"{name}: expected a name that ends in {option.writes}, got '{value}'", name)
            if Path(value).is_file() and not _ours(Path(value)):
                raise self._fault(
                    (
                        f"{name}: rtmms did not make '{value}', so a scenario cannot overwrite it; give "
                        f"{option.word} on the command line"
                    ),
                    name,
                )

    def _resolve_file(self, word: str, *place: str | int) -> str:
        """Return a file beside the scenario, wherever the command runs.

        It raises ModelError for code that is elsewhere, or that others can write: a scenario is data, and names only
        files that came with it.
        """
        file, colon, name = word.partition(".py:")
        file = file + ".py" if colon else word
        if not file.endswith((".py", ".urdf", ".xml", ".fmu", ".toml")):
            return word
        path = self._path.parent / file
        if file.endswith((".py", ".fmu")):
            if not path.resolve().is_relative_to(self._path.resolve().parent):
                raise self._fault(
                    f"'{file}' would run as code: expected a file in the folder of the scenario or below", *place
                )
            try:
                refuse_foreign_code(path, f"'{file}'")
            except ModelError as fault:
                raise self._fault(str(fault), *place) from None
        return str(path) + (":" + name if colon else "")

    def _finite(self, value: Any, what: str, *place: str | int) -> None:
        if any(
            isinstance(item, float) and not math.isfinite(item)
            for item in (value if isinstance(value, list) else [value])
        ):
            raise self._fault(f"{what}: expected a finite number, got {value}", *place)

    def _fault(self, text: str, *place: str | int) -> ModelError:
        return ModelError(f"{self._path}:{line_of(self._places, place)}: {text}")

    def _unknown(self, kind: str, name: str, known: Iterable[str], *place: str | int) -> ModelError:
        return self._fault(str(UnknownNameError(kind, name, known)), *place)


def _files_of(kind: str, name: str) -> Mapping[str, str]:
    """Return the parameters of an installed controller or bridge that name files, with their kinds.

    See rtmms.base.trust.NamesFile. A user's own file beside the scenario may open any file. A plug-in that cannot be
    loaded fails at its start.
    """
    known = entry_points_of(GROUPS[kind])
    if name not in known:
        return {}
    try:
        loaded = known[name].load()
        try:  # a bridge inherits parameters, whose types have names of another module
            hints = typing.get_type_hints(loaded, include_extras=True)
        except NameError:  # a controller has attributes whose types a type checker alone can read
            signature = inspect.signature(loaded, eval_str=True)
            hints = {key: parameter.annotation for key, parameter in signature.parameters.items()}
    except Exception:  # whatever another package raises when it is imported
        return {}
    return {"config": "input", **file_parameters(hints)}


def _entries(value: Any) -> int:
    """Return the number of keys and values in a table or list, with those of inner ones."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return len(inner) + sum(_entries(item) for item in inner if isinstance(item, (dict, list)))


def _flat(table: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """Return keys with their dots: a.b = 1 and "a.b" = 1 are the same name."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _numbers(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)


def _ours(path: Path) -> bool:
    """Return whether rtmms may have made a log, a trace or a figure: each has a mark within itself."""
    with open_input(path) as file:
        begun = file.read(1 << 16)
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        text = begun + file.read()
    return not text or any(mark in text for mark in (b"rtmms", "rtmms".encode("utf-32-le"), b"Matplotlib"))
