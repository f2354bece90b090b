"""Parameters, and keys of tables of files: each is declared, and what a declaration excludes is refused by name."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import pytest

from rtmms.base.entry_points import entry_points_of
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter, build, in_model, parameters_of, read_table, settable
from rtmms.base.toml_file import toml_value
from rtmms.bridging.bridge import Bridge
from rtmms.bridging.config import construct
from rtmms.bridging.config import parameters as listed
from rtmms.loop.impairment import Impairment
from rtmms.plant.loading import builder, robots
from rtmms.robots import urdf
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.manta.parameters import build as build_manta
from rtmms.scenario.tables import EventTable, RobotTable, SweepTable
from rtmms.sensing.data_sheets import KINDS, RelativeSensor
from rtmms.studies.fit_unknowns import asked_for
from rtmms.view.parameter_table import parameters_table
from rtmms.wire.peer.controller import Controller
from tests.wrong_values import wrong_values


@cache
def kind_of(robot: str) -> Any:
    """The dataclass of a robot's parameters."""
    if robot in ("manta", "urdf"):
        return MantaParameters if robot == "manta" else urdf.Options
    module = import_module(builder(robot).load().__module__)
    return next(var for var in vars(module).values() if is_dataclass(var) and parameters_of(var))


def create(robot: str, **values: Any) -> Any:
    return build_manta(None, values) if robot == "manta" else build(kind_of(robot), values, robot=robot)


OURS = [name for name, point in robots().items() if point.module.startswith("rtmms.robots")]
ROBOTS = [*sorted(OURS), "urdf"]
CASES = [(robot, name) for robot in ROBOTS for name in parameters_of(kind_of(robot))]


def test_all_robots_are_tried() -> None:
    assert len(OURS) == 19


@pytest.mark.parametrize("robot", ROBOTS)
def test_each_field_is_declared_and_takes_its_default(robot: str) -> None:
    kind = kind_of(robot)
    assert list(parameters_of(kind)) == [field.name for field in fields(kind)]
    assert create(robot, **{field.name: field.default for field in fields(kind)}) == kind()
    for name, parameter in parameters_of(kind).items():
        assert f"| `{name}` |" in parameters_table(kind)
        assert parameter.about[0].isupper(), name
        assert parameter.about.endswith("."), name


@pytest.mark.parametrize(("robot", "name"), CASES, ids=[f"{robot} {name}" for robot, name in CASES])
def test_what_a_parameter_cannot_be_is_refused_by_name(robot: str, name: str) -> None:
    declared = parameters_of(kind_of(robot))[name]
    for value in () if declared.bare is str and not declared.choices else wrong_values(declared):
        with pytest.raises(ModelError, match=name):
            create(robot, **{name: value})


@dataclass(frozen=True)
class Toy:
    """Parameters of a test."""

    mass_kg: Annotated[float, Parameter("Mass.", "kg", le=10)] = 1.0
    drag: Annotated[float, Parameter("Drag.", ge=0, live=True, in_model=False)] = 0.0
    tilt_rad: Annotated[float, Parameter("Tilt.", "rad", signed=True, le=2, live=True)] = 0.0
    drive: Annotated[str, Parameter("Drive.", choices=("motion", "torque"))] = "motion"
    links: Annotated[int, Parameter("Links.", ge=2, why="one is no chain")] = 3
    stop: Annotated[float | None, Parameter("Stop.", ge=0)] = None


class Plant:
    """Plant that has nothing but parameters."""

    parameters = Toy()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mass_kg": 0}, "toy: mass_kg must be > 0 kg, got 0"), ({"mass_kg": 11}, "mass_kg must be <= 10 kg, got 11"),
        ({"drag": -1}, "toy: drag must be >= 0, got -1"), ({"tilt_rad": -3}, "must be <= 2 rad in size, got -3"),
        ({"mass_kg": "x"}, "mass_kg must be a number in kg, got 'x'"), ({"links": 2.5}, "links must be a whole number"),
        ({"links": 1}, "toy: links must be >= 2, one is no chain, got 1"),
        ({"mass_kg": True}, "mass_kg must be a number"), ({"drag": math.nan}, "drag must be finite, got nan"),
        ({"drive": "torqe"}, "drive must be one of motion, torque, got 'torqe'; did you mean 'torque'?"),
        ({"masskg": 1}, "unknown toy parameter 'masskg'; did you mean mass_kg"),
    ],
)  # fmt: skip
def test_a_declaration_makes_its_refusals(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ModelError) as fault:
        build(Toy, arguments)
    assert text in str(fault.value)


def test_a_declaration_makes_values_sets_and_bounds() -> None:
    assert build(Toy, {"mass_kg": "2", "stop": "none"}) == Toy(mass_kg=2.0)
    assert build(Toy, {"links": 4}, preset="long", presets={"long": {"links": 9, "drag": 1}}) == Toy(drag=1, links=4)
    with pytest.raises(UnknownNameError, match="unknown toy preset 'lang'; did you mean long"):
        build(Toy, {}, preset="lang", presets={"long": {}})
    assert settable(Toy) == ("drag", "tilt_rad")
    assert in_model(Toy, ("tilt_rad", "drag"))
    assert not in_model(Toy, ("drag",))
    (mass, drag, tilt) = asked_for(["mass_kg", "drag", "tilt_rad"], (), Plant(), {}, {})  # type: ignore[arg-type]
    assert (mass.low, mass.high, mass.unit) == (1e-6, 10.0, "kg")
    assert (drag.low, drag.high) == (0.0, math.inf)
    assert (tilt.low, tilt.high) == (-2.0, 2.0)


# --- Controllers and bridges


PEERS: dict[str, type] = {
    name: point.load() for group in ("rtmms.controllers", "rtmms.bridges")
    for name, point in entry_points_of(group).items() if point.module.startswith("rtmms_")
}  # fmt: skip
PEER_CASES = [(peer, name) for peer, kind in PEERS.items() for name in parameters_of(kind)]


@pytest.mark.parametrize(("peer", "name"), PEER_CASES, ids=[f"{peer} {name}" for peer, name in PEER_CASES])
def test_what_a_parameter_of_a_peer_cannot_be_is_refused_by_name(peer: str, name: str, tmp_path: Path) -> None:
    kind: Any = PEERS[peer]
    declared = parameters_of(kind)[name]
    if issubclass(kind, Bridge):
        parts = NEEDED.get(peer, {}) | {"config": str(tmp_path / "b.toml")}
        parts.pop(name, None)
        for value in wrong_values(declared):
            (tmp_path / "b.toml").write_text(f"{name} = {toml_value(value)}\n")
            with pytest.raises(ModelError, match=f"^bridge '{peer}': .*b.toml: .*{name}"):
                construct(kind, "bridge", peer, parts)
    elif declared.kind or declared.choices:
        for value in wrong_values(declared):
            with pytest.raises(ModelError, match=name):
                kind(**{name: value})


NEEDED = {"serial": {"device": "/dev/none", "state_fields": "time:f32"}}
"""Words that a bridge cannot be made without."""


def test_each_parameter_of_our_bridges_is_declared_and_listed() -> None:
    for peer, kind in PEERS.items():
        if issubclass(kind, Bridge) and peer != "template":  # which readers copy
            declared = parameters_of(kind)
            assert set(declared) == {field.name for field in fields(kind) if field.init}, peer
            assert all(item.about.endswith(".") for item in declared.values()), peer
            assert {name: item.about for name, item in listed(kind).items() if name != "config"} == {
                name: item.about for name, item in declared.items()
            }


def test_each_parameter_of_our_controllers_is_declared() -> None:
    for name, kind in PEERS.items():
        if issubclass(kind, Controller) and is_dataclass(kind):
            assert set(parameters_of(kind)) == {field.name for field in fields(kind) if field.init}, name
            assert set(kind.tunable_parameters) >= set(settable(kind)), name
    assert PEERS["gait"].tunable_parameters[:2] == ("amplitude_deg", "frequency_hz")  # type: ignore[attr-defined]


def test_a_class_of_a_users_own_has_the_settable_that_it_names() -> None:
    class Mine(Controller):
        tunable_parameters = ("gain",)

    assert (Mine.tunable_parameters, Controller.tunable_parameters) == (("gain",), ())


# --- Tables of files

TABLES: dict[str, Any] = {
    "robot": RobotTable, "event": EventTable, "sweep": SweepTable, "link": Impairment, "sight": RelativeSensor,
    **{f"sensor {name}": kind for name, kind in KINDS.items()},
}  # fmt: skip
KEYS = [(table, name) for table, kind in TABLES.items() for name in parameters_of(kind)]


def table_of(table: str, values: dict[str, Any]) -> dict[str, Any]:
    """Read a table in which the keys that are required have a value."""
    item = {float: 1.0, str: "x"}
    needed = {name: item[key.bare] for name, key in parameters_of(TABLES[table]).items() if key.required}
    return read_table(TABLES[table], needed | values, table, lambda key, text: ModelError(f"at {key}: {text}"))


@pytest.mark.parametrize("table", TABLES)
def test_each_key_of_a_table_is_declared_and_takes_its_default(table: str) -> None:
    kind = TABLES[table]
    known = parameters_of(kind)
    assert list(known) == [field.name for field in fields(kind)]
    defaults = {field.name: field.default for field in fields(kind) if field.default not in (MISSING, None)}
    assert table_of(table, defaults).items() >= defaults.items()
    for name, item in known.items():
        assert f"| `{name}` |" in parameters_table(kind)
        assert item.about.endswith(".")
        if item.required:
            with pytest.raises(ModelError, match=f"at {name}: {name}: expected .*, got none; this key is required"):
                table_of(table, {name: None})
    near = list(known)[-1] + "x"
    with pytest.raises(ModelError, match=f"at {near}: unknown key of {table} '{near}'; did you mean {near[:-1]}"):
        table_of(table, {near: 1})


@pytest.mark.parametrize(("table", "name"), KEYS, ids=[f"{table} {name}" for table, name in KEYS])
def test_what_a_key_of_a_table_cannot_be_is_refused_with_its_place(table: str, name: str) -> None:
    for value in wrong_values(parameters_of(TABLES[table])[name]):
        with pytest.raises(ModelError, match=f"at {name}: {name}.*(expected|unknown)"):
            table_of(table, {name: value})
