"""Parameters of robots: each is declared, and what a declaration excludes is refused by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Annotated, Any

import pytest

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter, build, in_model, parameters_of, settable
from rtmms.identification.unknowns import asked_for
from rtmms.plant.protocol import builder, robots
from rtmms.report.parameter_table import parameters_table
from rtmms.robots import urdf
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.manta.parameters import build as build_manta
from rtmms.wire.peer.controller import Controller
from rtmms.wire.peer.plugins import registered


def kind_of(robot: str) -> Any:
    """The dataclass of a robot's parameters."""
    if robot in ("manta", "urdf"):
        return MantaParameters if robot == "manta" else urdf.Options
    module = import_module(builder(robot).load().__module__)
    return next(one for one in vars(module).values() if is_dataclass(one) and parameters_of(one))


def made(robot: str, **given: Any) -> Any:
    return build_manta(None, given) if robot == "manta" else build(kind_of(robot), given, robot=robot)


OURS = [name for name, point in robots().items() if point.module.startswith("rtmms.robots")]
ROBOTS = [*sorted(OURS), "urdf"]
CASES = [(robot, name) for robot in ROBOTS for name in parameters_of(kind_of(robot))]


def wrong(declared: Parameter, default: Any) -> Iterator[Any]:
    """Values that the declaration excludes."""
    if isinstance(default, str) or declared.choices:
        yield from (f"{declared.choices[0]}x", 3) if declared.choices else ()
        return
    yield "x"
    if isinstance(default, bool):
        return
    numbers: list[Any] = [math.nan, math.inf]
    low, high = declared.low, declared.le
    if low is not None:
        numbers += [low - 1, *([low] if declared.strict else [])]
    if high is not None:
        numbers += [2 * high + 1]
    yield from ((one,) * len(default) if isinstance(default, tuple) else one for one in numbers)


def test_all_robots_are_tried() -> None:
    assert len(OURS) == 17


@pytest.mark.parametrize("robot", ROBOTS)
def test_each_field_is_declared_and_takes_its_default(robot: str) -> None:
    kind = kind_of(robot)
    assert list(parameters_of(kind)) == [one.name for one in fields(kind)]
    assert made(robot, **{one.name: one.default for one in fields(kind)}) == kind()
    for name, one in parameters_of(kind).items():
        assert f"| `{name}` |" in parameters_table(kind)
        assert one.about


@pytest.mark.parametrize(("robot", "name"), CASES, ids=[f"{robot} {name}" for robot, name in CASES])
def test_what_a_parameter_cannot_be_is_refused_by_name(robot: str, name: str) -> None:
    kind = kind_of(robot)
    default = next(one.default for one in fields(kind) if one.name == name)
    for value in wrong(parameters_of(kind)[name], default):
        with pytest.raises(ModelError, match=name):
            made(robot, **{name: value})


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
    ("given", "text"),
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
def test_a_declaration_makes_its_refusals(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ModelError) as fault:
        build(Toy, given)
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
    for name, point in registered(group).items() if point.module.startswith("rtmms_")
}  # fmt: skip
PEER_CASES = [(peer, name) for peer, kind in PEERS.items() for name in parameters_of(kind) if peer != "serial"]


@pytest.mark.parametrize(("peer", "name"), PEER_CASES, ids=[f"{peer} {name}" for peer, name in PEER_CASES])
def test_what_a_parameter_of_a_peer_cannot_be_is_refused_by_name(peer: str, name: str) -> None:
    kind: Any = PEERS[peer]
    declared = parameters_of(kind)[name]
    if declared.kind is None and not declared.choices:
        return
    default = 0.0 if declared.kind else ""
    for value in wrong(declared, default):
        with pytest.raises(ModelError, match=name):
            kind(**{name: value})


def test_each_parameter_of_our_controllers_is_declared() -> None:
    for name, kind in PEERS.items():
        if issubclass(kind, Controller) and is_dataclass(kind):
            assert set(parameters_of(kind)) == {one.name for one in fields(kind) if one.init}, name
            assert set(kind.settable) >= set(settable(kind)), name
    assert PEERS["gait"].settable[:2] == ("amplitude_deg", "frequency_hz")  # type: ignore[attr-defined]


def test_a_class_of_a_users_own_has_the_settable_that_it_names() -> None:
    class Mine(Controller):
        settable = ("gain",)

    assert (Mine.settable, Controller.settable) == (("gain",), ())
