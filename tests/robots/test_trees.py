"""The quadrotor, the torpedo, URDF files and one's own Python file as plants."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.parameters import parameter_values, parameters_of_plant
from rtmms.model.urdf import from_urdf
from rtmms_controllers.hover import Hover
from tests.cli.shell import environment

ROOT = Path(__file__).resolve().parents[2]
URDF = ROOT / "examples" / "quadrotor" / "quadrotor.urdf"


def run(plant: Any, command: Any, seconds: float) -> dict[str, Any]:
    values = np.array(command, dtype=float)
    for _ in range(round(seconds / plant.dt)):
        plant.step(values)
    outputs: dict[str, Any] = plant.observe()
    return outputs


def flown(plant: Any, controller: Any, seconds: float) -> dict[str, Any]:
    """The controller in the loop, without a wire."""
    names = [channel.name for channel in plant.actuators]
    for k in range(round(seconds / plant.dt)):
        values = controller.update(SimpleNamespace(outputs=plant.observe(), time=k * plant.dt, step=k))
        plant.step(np.array([values[name] for name in names]))
    outputs: dict[str, Any] = plant.observe()
    return outputs


def test_the_quadrotor_hovers_at_its_own_hover_speed() -> None:
    plant = rtmms.load("quadrotor", motor_s=0.0)
    observed = run(plant, [plant.parameters.hover_rad_s] * 4, 2.0)  # type: ignore[attr-defined]
    np.testing.assert_allclose(observed["position"], 0.0, atol=1e-9)
    assert observed["energy"] == pytest.approx(0.0, abs=1e-9)


def test_the_quadrotor_falls_to_the_speed_at_which_air_carries_it() -> None:
    plant = rtmms.load("quadrotor", dt=1e-2)
    assert run(plant, [0.0] * 4, 0.1)["velocity"][2] == pytest.approx(-0.981, rel=1e-2)
    assert run(plant, [0.0] * 4, 60.0)["velocity"][2] == pytest.approx(-math.sqrt(0.5 * 9.81 / 0.006), rel=1e-6)


def test_the_controller_takes_it_to_its_place() -> None:
    plant = rtmms.load("quadrotor")
    observed = flown(plant, Hover(x_m=0.5, y_m=-0.3, z_m=1.0, yaw_deg=40.0), 8.0)
    np.testing.assert_allclose(observed["position"], [0.5, -0.3, 1.0], atol=5e-3)
    assert 2.0 * math.degrees(math.atan2(observed["quaternion"][3], observed["quaternion"][0])) == pytest.approx(
        40.0, abs=0.5
    )


@pytest.mark.full
def test_the_file_is_the_robot() -> None:
    pytest.importorskip("yourdfpy")
    item, other = rtmms.load("quadrotor", drag_area_m2=0.0, dt=1e-3), rtmms.load(str(URDF))
    assert [c.name for c in item.actuators] == [c.name for c in other.actuators]
    command = [450.0, 470.0, 480.0, 460.0]
    a, b = run(item, command, 0.3), run(other, command, 0.3)
    for name in ("position", "quaternion", "angular_velocity", "motor"):
        np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-14)


def test_the_torpedo_is_neutral_and_upright() -> None:
    plant = rtmms.load("torpedo", start_depth_m=0.0)
    observed = run(plant, [0.0] * 5, 5.0)
    np.testing.assert_allclose(observed["position"], 0.0, atol=1e-12)
    np.testing.assert_allclose(observed["quaternion"], [1, 0, 0, 0], atol=1e-12)


def test_the_torpedo_goes_where_its_fins_point() -> None:
    plant = rtmms.load("torpedo", propeller_moment_m=0.0)
    straight = run(plant, [157.0, 0, 0, 0, 0], 40.0)
    speed = straight["velocity"][0]
    fins = 4 * 0.5 * 1000.0 * 0.15 * 0.1 * 0.37
    assert speed == pytest.approx(157.0 * math.sqrt(1.6e-4 / (1.6 + fins)), rel=1e-3)
    np.testing.assert_allclose(straight["velocity"][1:], 0.0, atol=1e-6)
    rudder = run(plant, [157.0, 0.1, 0, 0.1, 0], 3.0)
    assert rudder["angular_velocity"][2] < -0.01, "a positive rudder turns right"
    plant.reset()
    run(plant, [157.0, 0, 0, 0, 0], 5.0)
    lift = run(plant, [157.0, 0, 0.1, 0, 0.1], 2.0)
    assert lift["angular_velocity"][1] < -0.001, "positive side fins lift the nose"


ARM = """<robot name="arm">
<link name="base"><inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
</link>
<link name="upper"><inertial><origin xyz="0 0 -0.25"/><mass value="1"/>
<inertia ixx="0.02" iyy="0.02" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.25"/><geometry><cylinder radius="0.02" length="0.5"/></geometry></collision></link>
<link name="lower"><inertial><origin xyz="0 0 -0.2"/><mass value="0.5"/>
<inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.2"/><geometry><cylinder radius="0.02" length="0.4"/></geometry></collision></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1.5" effort="7" velocity="3"/><dynamics damping="0.3" friction="0.1"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -0.5"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="3" velocity="3"/></joint>
{more}</robot>"""
TRANSMISSION = """<transmission name="t"><joint name="{joint}"><hardwareInterface>{kind}</hardwareInterface></joint>
<actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>"""


def arm(tmp_path: Path, more: str = "") -> str:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.format(more=more))
    return str(path)


@pytest.mark.full
def test_limits_dynamics_and_transmissions_of_a_file(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    plain: Any = rtmms.load(arm(tmp_path), base="fixed")
    assert [(c.name, c.lower, c.upper) for c in plain.actuators] == [
        ("shoulder.torque", -7.0, 7.0), ("elbow.torque", -3.0, 3.0)
    ]  # fmt: skip
    from rtmms.model.layout import C_COULOMB, C_DAMPING

    np.testing.assert_allclose(plain.model.constant[1, [C_DAMPING, C_COULOMB]], [0.3, 0.1])
    more = TRANSMISSION.format(joint="shoulder", kind="hardware_interface/PositionJointInterface")
    more += TRANSMISSION.format(joint="elbow", kind="EffortJointInterface")
    both: Any = rtmms.load(arm(tmp_path, more), base="fixed")
    assert [(c.name, c.lower, c.upper) for c in both.actuators] == [
        ("shoulder.angle", -1.0, 1.5), ("elbow.torque", -3.0, 3.0)
    ]  # fmt: skip
    moved: Any = rtmms.load(arm(tmp_path, more), base="fixed", drive="motion")
    assert [c.name for c in moved.actuators] == ["shoulder.angle", "elbow.angle"]
    assert not moved.model.imposed.any()  # held as firmly as their efforts allow
    stopped: Any = rtmms.load(arm(tmp_path), base="fixed", stop_n_m=500.0, stop_n_m_s=1.0)
    assert run(stopped, [7.0, 0.0], 1.0)["joint_position"][0] < 1.55


@pytest.mark.full
def test_water_around_a_file(tmp_path: Path) -> None:
    """Buoyancy of the shapes is their volume's; a neutral one floats; drag slows it."""
    pytest.importorskip("yourdfpy")
    from rtmms.model.layout import C_WEIGHT

    heavy: Any = rtmms.load(arm(tmp_path), buoyancy=True)
    displaced = 1000.0 * math.pi * 0.02**2 * 0.5
    assert heavy.model.constant[1, C_WEIGHT] == pytest.approx(1.0 - displaced)
    floating = rtmms.load(arm(tmp_path), buoyancy="neutral", added_mass=1.0, drag=1.0)
    np.testing.assert_allclose(run(floating, [0, 0], 1.0)["position"], 0.0, atol=1e-12)
    current = rtmms.load(arm(tmp_path), buoyancy="neutral", drag=1.0, current_x_m_s=0.3)
    assert 0.01 < run(current, [0, 0], 1.0)["velocity"][0] < 0.3


@pytest.mark.full
@pytest.mark.peer
def test_mass_matrix_and_acceleration_of_a_file_are_pinocchios(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    pin = pytest.importorskip("pinocchio")
    from rtmms import dynamics
    from tests.random_tree import random_state

    path = arm(tmp_path)
    plant: Any = rtmms.load(path)
    peer = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    data, state = peer.createData(), random_state(plant.model, 5)
    w, x, y, z = state.orientation
    q, v = np.array([*state.position, x, y, z, w, *state.q]), np.array([*state.twist, *state.qd])
    mass = np.triu(pin.crba(peer, data, q))
    np.testing.assert_allclose(np.triu(dynamics.mass_matrix(plant.model, state)), mass, rtol=1e-10, atol=1e-12)
    torque = np.array([0.4, -0.2])
    friction = np.array([0.3 * state.qd[0] + 0.1 * np.sign(state.qd[0]), 0.0])
    a = pin.aba(peer, data, q, v, np.array([*np.zeros(6), *(torque - friction)]))
    plant.place(state)
    plant.system.hold.torque[:] = torque
    rate = plant.evaluate()
    np.testing.assert_allclose(np.r_[rate[8:14], rate[14:]], a, rtol=1e-9, atol=1e-9)


MINE = """
import numpy as np
import rtmms
from rtmms import model as m
import beside

body = rtmms.Mechanism("ball", [m.Body("ball", solids=[m.Ellipsoid(0.1, 0.1, 0.1, 1000.0)])])

def robot(dt=0.01, force=3.0):
    assert beside.VALUE == 3
    return rtmms.TreePlant(body, dt, actuators=[rtmms.model.BodyWrench("ball", ("fz",), force_limit=force)])

there = robot()
number = 3
def wrong():
    return 3
def broken():
    return 1 / 0
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return str(tmp_path / "mine.py")


def test_a_function_a_class_and_a_plant_of_a_file(mine: str) -> None:
    plant = rtmms.load(f"{mine}:robot", dt=0.02, force=5.0)
    assert (plant.dt, plant.actuators[0].upper) == (0.02, 5.0)
    assert rtmms.load(f"{mine}:there").dt == 0.01
    buoy = rtmms.load(f"{ROOT / 'examples' / '30_own_plant.py'}:Buoy", mass_kg=30.0)
    assert buoy.actuators[0].name == "thrust"


DECLARED = """from __future__ import annotations
from typing import Annotated
import rtmms
from mine import robot as plain

def robot(force: Annotated[float, rtmms.Parameter("Force at most.", "N", le=9)] = 3.0, dt=0.01, spare=2.0):
    return plain(dt, force)

def known(drag: Annotated[float, rtmms.Parameter("Drag.", ge=0)] = 1.2):
    return rtmms.load("torpedo")
"""


def test_keywords_of_a_function_are_parameters_with_unit_and_range(mine: str) -> None:
    """As those of a built-in robot, which keeps its own beside them."""
    file = Path(mine).with_name("declared.py")
    file.write_text(DECLARED)
    plant = rtmms.load(f"{file}:robot", force=5)
    assert parameter_values(plant) == {"force": 5.0, "spare": 2.0}
    assert {name: (parameter.unit, parameter.le) for name, parameter in parameters_of_plant(plant).items()} == {
        "force": ("N", 9)
    }
    for number in (np.int64(5), np.float32(5.0), np.array(5.0)):
        assert parameter_values(rtmms.load(f"{file}:robot", force=number)) == {"force": 5.0, "spare": 2.0}
    for many in (12.0, np.int64(12)):
        with pytest.raises(rtmms.ModelError, match="force: expected a number > 0 and <= 9, got 12"):
            rtmms.load(f"{file}:robot", force=many)
    torpedo = rtmms.load(f"{file}:known")
    assert parameter_values(torpedo)["drag"] == 1.2
    assert {"drag", "length_m"} <= parameters_of_plant(torpedo).keys()
    assert parameter_values(rtmms.load(f"{mine}:there")) == {}


@pytest.mark.parametrize(
    ("word", "chosen", "text"),
    [
        (":robt", {}, r"unknown name in '.*mine.py' 'robt'; did you mean robot"),
        (":robot", {"forse": 2}, r"unknown parameter of '.*:robot' 'forse'; did you mean force"),
        (":there", {"force": 2}, "expected no parameters, as .* got force"),
        (":number", {}, "expected a plant, a class or a function, got 3"),
        (":wrong", {}, "expected a plant, got a int without reset"),
        (":broken", {}, r"line 18: ZeroDivisionError: division by zero"),
        ("", {}, r"expected FILE.py:NAME with .* got no NAME; the file has: .*mine.py:robot"),
    ],
)
def test_what_a_file_cannot_be(mine: str, word: str, chosen: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        rtmms.load(mine + word, **chosen)


def test_near_misses_report_how_files_run(tmp_path: Path) -> None:
    with pytest.raises(
        rtmms.UnknownNameError,
        match=r"did you mean quadrotor\? \(a file runs as FILE\.urdf, FILE\.xml \(MJCF\), FILE\.fmu",
    ):
        rtmms.load("quadroter")
    with pytest.raises(rtmms.ModelError, match="there is no such file"):
        rtmms.load("mine.py:robot")
    (tmp_path / "bad.py").write_text("def f(:\n")
    with pytest.raises(rtmms.ModelError, match=r"bad\.py, line 1: SyntaxError: invalid syntax"):
        rtmms.load(f"{tmp_path / 'bad.py'}:f")


@pytest.mark.full
@pytest.mark.parametrize(
    ("more", "text"),
    [
        (TRANSMISSION.format(joint="wrist", kind="EffortJointInterface"), "transmission: there is no joint 'wrist'"),
        (
            TRANSMISSION.format(joint="elbow", kind="VelocityJointInterface"),
            "joint 'elbow': expected an effort or position",
        ),
        ('<rtmms><rotor link="lower" spn="1"/></rtmms>', r"unknown attribute .* 'spn'; did you mean spin"),
        ('<rtmms><rotor link="lowr"/></rtmms>', r"unknown body .* 'lowr'; did you mean lower"),
        ('<rtmms><thruster link="lower" curve="0 0 1"/></rtmms>', "curve: expected pairs of numbers, got '0 0 1'"),
        ('<rtmms><rotor link="lower" spin="x"/></rtmms>', "spin: expected a whole number, got 'x'"),
        ('<rtmms><wing link="lower"/></rtmms>', "unknown element .* 'wing'"),
    ],
)
def test_what_a_urdf_cannot_be(tmp_path: Path, more: str, text: str) -> None:
    pytest.importorskip("yourdfpy")
    with pytest.raises(rtmms.ModelError, match=text):
        rtmms.load(arm(tmp_path, more))


def altered() -> Iterator[tuple[str, str]]:
    """Yield files with one fault each that a reader would pass over, and what the error must name."""
    whole = ARM.format(more=TRANSMISSION.format(joint="elbow", kind="EffortJointInterface") + "<rtmms/>")
    for item in re.finditer(r'(?<=[ "])(\w+)="', whole):
        name, begin = item[1], item.start(1)
        if whole.rfind("<", 0, begin) < whole.rfind("<robot", 0, begin) + 7 or len(name) < 3:
            continue
        tag = re.match(r"<(\w+)", whole[whole.rfind("<", 0, begin) :])
        assert tag is not None
        if tag[1] in ("actuator", "transmission") or name in ("name", "type", "link"):
            continue  # what belongs to no link or joint, and what has a check of its own
        yield whole[:begin] + name[0] + name[2:] + whole[begin + len(name) :], f"<{tag[1]}>"
    for tag in ("inertial", "collision", "origin", "geometry", "mass", "inertia", "axis", "limit", "dynamics", "rtmms"):
        wrong = tag[:1] + tag[2:]
        opened = re.sub(rf"<{tag}\b", f"<{wrong}", whole, count=1)
        yield re.sub(rf"</{tag}>", f"</{wrong}>", opened, count=1), f"did you mean <{tag}>"
    for tag in ("mass", "inertia", "axis", "limit", "dynamics", "origin", "geometry", "inertial"):
        match = re.search(rf"<{tag}( [^<>]*/>|>.*?</{tag}>)", whole, re.DOTALL)
        assert match is not None
        yield whole.replace(match[0], match[0] * 2, 1), f"expected one <{tag}>, got several"


@pytest.mark.full
def test_a_urdf_with_a_misspelt_absent_or_second_entry_is_refused(tmp_path: Path) -> None:
    """Readers of URDF pass over these, so that a robot would have no mass, no limit, or another axis."""
    pytest.importorskip("yourdfpy")
    path, count = tmp_path / "arm.urdf", 0
    for count, (text, expected) in enumerate(altered(), 1):  # noqa: B007
        path.write_text(text)
        with pytest.raises(rtmms.ModelError) as refused:
            rtmms.load(str(path))
        assert expected in str(refused.value), text
    assert count > 50


@pytest.mark.full
def test_a_function_s_keyword_of_a_robot_s_name_is_its_own(tmp_path: Path) -> None:
    """The function has used `start_depth_m` itself; a reset does not sink the robot again."""
    path = tmp_path / "mine.py"
    path.write_text(
        "import rtmms\nfrom rtmms import model as m\n"
        "def robot(start_depth_m: float = 1.5):\n"
        "    start = m.State(position=[0, 0, -start_depth_m], orientation=[1, 0, 0, 0], q=[], twist=[0] * 6, qd=[])\n"
        "    body = m.Body('one', mass=1.0, inertia=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])\n"
        "    return rtmms.TreePlant(rtmms.Mechanism('mine', [body], []), dt=0.01, initial=start)\n"
    )
    plant = rtmms.load(f"{path}:robot", start_depth_m=0.7)
    for _ in range(2):
        assert plant.observe()["position"][2] == -0.7
        plant.reset()
    assert parameter_values(plant)["start_depth_m"] == 0.7


@pytest.mark.full
def test_a_fluid_that_would_act_on_no_shape_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    path = tmp_path / "bare.urdf"
    path.write_text(re.sub(r"<collision>.*?</collision>", "", ARM.format(more=""), flags=re.DOTALL))
    for option in ({"drag": 1.0}, {"added_mass": 1.0}, {"buoyancy": "shapes"}):
        with pytest.raises(rtmms.ModelError, match=f"{next(iter(option))}: expected a link with <collision> or"):
            rtmms.load(str(path), **option)
    rtmms.load(str(path), buoyancy="neutral")


@pytest.mark.full
def test_a_named_material_colours_its_drawings(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    path = tmp_path / "arm.urdf"
    visual = '<visual><geometry><box size="1 1 1"/></geometry><material name="{}">{}</material></visual>'
    current = '<color rgba="0 1 0 1"/>'
    text = ARM.format(more='<material name="gelb"><color rgba="1 1 0 1"/></material>')
    for inner in (visual.format("gelb", ""), visual.format("gruen", current)):
        text = text.replace("<collision>", f"{inner}<c>", 1)
    path.write_text(text.replace("<c>", "<collision>"))
    colours = [drawing.colour for body in from_urdf(path).bodies for drawing in body.drawings]
    assert colours == [(255, 255, 0), (0, 255, 0)]


@pytest.mark.full
def test_extensions_of_other_tools_are_passed_over(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    path = tmp_path / "arm.urdf"
    more = '<gazebo reference="base"/><sensor name="s"/>'
    text = ARM.format(more=more).replace("<axis", '<drake_limits a="1"/><axis').replace(
        "<collision>", '<contact><lateral_friction value="1"/></contact><collision>').replace(
        'effort="7"', 'effort="7" acceleration="2"')  # fmt: skip
    path.write_text(text)
    assert [c.name for c in rtmms.load(str(path), base="fixed").actuators] == ["shoulder.torque", "elbow.torque"]


@pytest.mark.full
def test_the_interface_may_be_in_the_transmission_s_actuator(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    more = """<transmission name="t"><joint name="elbow"/><actuator name="m">
    <hardwareInterface>PositionJointInterface</hardwareInterface></actuator></transmission>"""
    assert [c.name for c in rtmms.load(arm(tmp_path, more), base="fixed").actuators] == ["elbow.angle"]


@pytest.mark.full
@pytest.mark.parametrize("robot", ["quadrotor", str(URDF)])
def test_it_hovers_over_the_wire(tmp_path: Path, robot: str) -> None:
    pytest.importorskip("yourdfpy")
    arguments = ["run", robot, "--controller", "hover", "--duration", "6", "--mode", "lockstep", "--json", "--quiet"]
    figure = ["--figure", str(tmp_path / "run.png")] if robot == "quadrotor" else []
    ran = subprocess.run(
        [sys.executable, "-m", "rtmms", *arguments, *figure],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    np.testing.assert_allclose(report["final"]["position"], [0.0, 0.0, 1.0], atol=1e-2)
    assert not figure or (tmp_path / "run.png").stat().st_size > 10_000
