"""Tendons over bodies and soft rods: virtual work, energy, friction, slack; in linear models, snapshots, pictures."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms import model as m
from rtmms.mechanism.tendons import SEGMENT_TENSION
from rtmms.plant.protocol import Channel

NO_GRAVITY = (0.0, 0.0, 0.0)


def hand(rods: bool = True, **more: Any) -> rtmms.Mechanism:
    """A palm with a finger on either side, and a soft tail."""
    bone = m.Box(0.1, 0.02, 0.02, 1000.0, m.at(x=0.05))
    bodies = [m.Body("palm", solids=[m.Box(0.1, 0.12, 0.04, 1000.0)])]
    joints = []
    for side, y in (("left", 0.05), ("right", -0.05)):
        bodies += [m.Body(f"{side}.near", solids=[bone]), m.Body(f"{side}.far", solids=[bone])]
        joints.append(m.Joint(f"{side}.knuckle", "palm", f"{side}.near", placement=m.at(0.05, y), axis=(0, 1, 0)))
        joints.append(m.Joint(f"{side}.tip", f"{side}.near", f"{side}.far", placement=m.at(0.1), axis=(0, 1, 0)))
    back = m.Placement(np.diag([-1.0, -1.0, 1.0]), np.array([-0.05, 0.0, 0.0]))
    section = m.RodSection(0.5, (2e-4, 1e-4, 1e-4), 0.05, 0.05, 0.04)
    tail = m.Rod("tail", "palm", 0.3, section, elements=3, placement=back)
    values: dict[str, Any] = {"gravity": NO_GRAVITY, **more}
    return rtmms.Mechanism("hand", bodies, joints, rods=[tail] if rods else [], **values)


def finger(side: str, **more: Any) -> m.Tendon:
    """Below the finger, from the palm to the tip, over an eyelet of the near bone."""
    y = 0.05 if side == "left" else -0.05
    path = [("palm", (0.0, y, -0.03)), (f"{side}.near", (0.05, 0.0, -0.02)), (f"{side}.far", (0.08, 0.0, -0.012))]
    return m.Tendon(side, path, **more)


def tail(**more: Any) -> m.Tendon:
    """Companion the tail, half way round it."""
    path = [("palm", (-0.04, 0.0, 0.03)), ("tail", (0.02, 0.01, 0.02)), ("tail", (0.15, 0.02, 0.0)),
            ("tail", (0.3, 0.01, -0.01))]  # fmt: skip
    return m.Tendon("tail", path, **more)


def plant_of(*tendons: Any, dt: float = 1e-3, method: str = "rk4", rods: bool = False, **more: Any) -> rtmms.TreePlant:
    return rtmms.TreePlant(hand(rods, **more), dt, actuators=tendons, method=method)


def anywhere(plant: rtmms.TreePlant, seed: int) -> None:
    """A random state, within reach."""
    rng, n = np.random.default_rng(seed), plant.model.n
    quaternion = rng.normal(size=4)
    plant.place(
        position=rng.normal(size=3), quaternion=quaternion / np.linalg.norm(quaternion), velocity=rng.normal(size=3),
        angular_velocity=rng.normal(size=3), joint_position=0.4 * rng.normal(size=n), joint_velocity=rng.normal(size=n),
    )  # fmt: skip


def displaced(plant: rtmms.TreePlant, j: int, by: float) -> float:
    """Length of the first tendon with joint j moved."""
    q = plant.state.q.copy()
    q[j] += by
    before = plant.present()
    plant.place(joint_position=q)
    length = float(plant.observe()["tendon_length"][0])
    plant.put(*before)
    return length


@pytest.mark.full
@pytest.mark.parametrize("tendon", [finger("left"), tail()], ids=["bodies", "rod"])
def test_the_generalised_force_is_that_of_virtual_work(tendon: m.Tendon) -> None:
    """tau = -T dl/dq, and nothing on the base."""
    plant = plant_of(tendon, rods=True)
    anywhere(plant, 3)
    n, pull = plant.model.n, 2.5
    rates = []
    for command in (0.0, pull):
        plant.commanded[0] = command
        plant.observe()
        rates.append(plant.system.outputs.rate[6 + n :].copy())
    mass = dynamics.mass_matrix(plant.model, plant.state)
    result = mass @ (rates[1] - rates[0])
    h = 1e-5
    slope = np.array([(displaced(plant, j, h) - displaced(plant, j, -h)) / (2.0 * h) for j in range(n)])
    np.testing.assert_allclose(result[:6], 0.0, atol=1e-9)
    np.testing.assert_allclose(result[6:], -pull * slope, atol=1e-8)
    outputs = plant.observe()
    assert outputs["tendon_rate"][0] == pytest.approx(float(slope @ outputs["joint_velocity"]), abs=1e-8)
    assert outputs["power"] == pytest.approx(-pull * float(outputs["tendon_rate"][0]), rel=1e-12)


def commands(plant: rtmms.TreePlant, time: float) -> np.ndarray:
    """Around the neutral: 0 to 2 N, 2 cm, 5 cm/s."""
    wave = np.array([math.sin(9.0 * time + k) for k in range(len(plant.neutral))])
    size = np.array([{"N": 1.0, "m": 0.02, "m/s": 0.05}[actuator.unit] for actuator in plant.actuators])
    return np.asarray(plant.neutral + size * (wave + np.array([actuator.unit == "N" for actuator in plant.actuators])))


def lacking(dt: float, method: str, **friction: Any) -> tuple[float, float]:
    """What the energy's balance is off by after 0.4 s, and what was lost."""
    lag = {"stiffness": 60.0, "damping": 0.5, **friction}
    plant = plant_of(
        finger("left", time_constant=0.05, **friction), finger("right", command="length", **lag),
        tail(command="rate", **lag), dt=dt, method=method, rods=True,
    )  # fmt: skip
    start, lost = plant.observe()["energy"], 0.0
    for k in range(round(0.4 / dt)):
        plant.step(commands(plant, 1e-2 * (k * dt // 1e-2)))
        now = float(plant.observe()["dissipated_energy"])
        assert now >= lost - 1e-12
        lost = now
    outputs = plant.observe()
    return float(outputs["energy"] - start - outputs["work"] + outputs["dissipated_energy"]), lost


@pytest.mark.full
@pytest.mark.parametrize(("method", "dt", "order"), [("rk4", 5e-4, 4), ("implicit2", 5e-4, 2)])
def test_energy_is_what_winches_gave_less_what_is_lost(method: str, dt: float, order: int) -> None:
    """All three commands, spring, damper and friction, to the method's order."""
    coarse, lost = lacking(dt, method, friction=0.4, slip=0.05)
    fine, _ = lacking(0.5 * dt, method, friction=0.4, slip=0.05)
    assert lost > 1e-3
    assert abs(fine) < 1e-5 * lost if order == 4 else abs(fine) < 0.01 * lost
    assert abs(coarse) > 2.0 ** (order - 1) * abs(fine)


def test_friction_takes_what_the_capstan_does() -> None:
    """T_k+1 = T_k exp(-mu theta) where it slides, from whichever side it is pulled; the same on both at rest."""
    plant = plant_of(finger("left", friction=0.5))
    assert plant.actuators[0] == Channel("left.tension", "N", lower=0.0)
    for sign in (-1.0, 0.0, 1.0):
        plant.reset()
        plant.place(joint_position=[0.6, 0.8, 0.0, 0.0], joint_velocity=[3.0 * sign, 3.0 * sign, 0.0, 0.0])
        plant.commanded[0] = 2.0
        outputs = plant.observe()
        poses = dynamics.body_poses(plant.model, plant.state)
        names = plant.model.body_names
        points = [
            poses[0][names.index(body)] @ np.array(place) + poses[1][names.index(body)]
            if poses[0][0].shape == (3, 3) else np.zeros(3)
            for body, place in finger("left").path
        ]  # fmt: skip
        legs = np.diff(points, axis=0)
        turn = math.acos(float(legs[0] @ legs[1]) / float(np.linalg.norm(legs[0]) * np.linalg.norm(legs[1])))
        first, second = plant.system.tendons.room[:2, SEGMENT_TENSION]
        slides = -np.sign(sign) if outputs["tendon_rate"][0] * sign > 0.0 else np.sign(sign)
        assert first == 2.0
        assert second == pytest.approx(2.0 * math.exp(-0.5 * turn * slides), rel=1e-4)
        assert turn > 0.3


def test_a_slack_tendon_does_nothing() -> None:
    """The bits of the same tree with a tendon that does not pull."""
    slack = plant_of(finger("left", command="length", stiffness=500.0, damping=5.0, neutral=0.5, friction=0.3))
    without = plant_of(finger("left"))
    for plant in (slack, without):
        anywhere(plant, 5)
        for _ in range(100):
            plant.step(plant.neutral)
    np.testing.assert_array_equal(slack.vector, without.vector)
    outputs = slack.observe()
    assert outputs["tendon_tension"][0] == outputs["dissipated_energy"] == outputs["work"] == 0.0


def test_a_taut_tendon_holds_what_its_spring_bears() -> None:
    """Statics: a finger that hangs from a tendon; the torque of its weight is T dl/dq."""
    up = m.Tendon("up", [("palm", (0.05, 0.05, 0.1)), ("left.near", (0.08, 0.0, 0.0))], "length", 300.0, 20.0)
    stiff = rtmms.model.JointServo("left.tip", 50.0, 0.5)
    right = [rtmms.model.JointServo(f"right.{name}", 50.0, 0.5) for name in ("knuckle", "tip")]
    weight = rtmms.Mechanism("hand", hand(False).bodies, hand(False).joints, base="fixed")
    plant = rtmms.TreePlant(weight, 1e-3, actuators=[up, stiff, *right], method="implicit2")
    for _ in range(4000):
        plant.step(plant.neutral)
    outputs = plant.observe()
    assert np.abs(outputs["joint_velocity"]).max() < 1e-5
    h = 1e-5
    slope = (displaced(plant, 0, h) - displaced(plant, 0, -h)) / (2.0 * h)
    q = outputs["joint_position"]
    bone, g = 0.04, 9.81
    arm = 0.05 * math.cos(q[0]) + 0.1 * math.cos(q[0]) + 0.05 * math.cos(q[0] + q[1])
    assert float(outputs["tendon_tension"][0]) * slope == pytest.approx(bone * g * arm, rel=1e-4)


def test_momentum_stays_and_sides_stay_alike() -> None:
    """No wrench from outside; two fingers that are pulled alike do as in a mirror."""
    plant = plant_of(finger("left", friction=0.3), finger("right", friction=0.3))
    before = dynamics.momentum(plant.model, plant.state, about="centre")
    for k in range(300):
        plant.step(np.full(2, 1.0 + math.sin(0.02 * k)))
    outputs = plant.observe()
    np.testing.assert_allclose(outputs["joint_position"][:2], outputs["joint_position"][2:], rtol=1e-12)
    assert abs(outputs["joint_position"][0]) > 0.1
    np.testing.assert_allclose(outputs["position"][1], 0.0, atol=1e-15)
    np.testing.assert_allclose(outputs["tendon_tension"][0], outputs["tendon_tension"][1], rtol=1e-12)
    after = dynamics.momentum(plant.model, plant.state, about="centre")
    np.testing.assert_allclose(np.asarray(after), np.asarray(before), atol=1e-6)  # that of a finger is 0.05


def every_kind(dt: float = 1e-3) -> rtmms.TreePlant:
    spring = {"stiffness": 60.0, "damping": 0.5, "friction": 0.2, "slip": 0.05}
    plant = plant_of(
        finger("left", time_constant=0.05, friction=0.2, slip=0.05), finger("right", command="length", **spring),
        m.Tendon("across", [("left.far", (0.1, 0.0, 0.0)), ("right.far", (0.1, 0.0, 0.0))], "rate", 40.0, 0.1),
        m.Tendon("bare", [("palm", (0.0, 0.0, 0.1)), ("right.near", (0.1, 0.0, 0.0))]), dt=dt,
    )  # fmt: skip
    anywhere(plant, 7)
    for k in range(20):
        plant.step(commands(plant, k * plant.dt))
    return plant


def test_runs_are_restored_forked_and_measured() -> None:
    """Bits after restore, of a fork among many, and the error of a step."""
    plant = every_kind()
    stored = plant.snapshot()
    values = np.array([commands(plant, k * plant.dt) for k in range(50)])
    many = rtmms.rollout(plant, np.tile(values, (2, 1, 1)), outputs=("position", "tendon_tension"))
    for command in values:
        plant.step(command)
    last = plant.observe()
    for run in range(2):
        np.testing.assert_array_equal(many.outputs["position"][run, -1], last["position"])
        np.testing.assert_array_equal(many.outputs["tendon_tension"][run, -1], last["tendon_tension"])
    plant.restore(stored)
    for command in values:
        plant.step(command)
    np.testing.assert_array_equal(plant.observe()["tendon_length"], last["tendon_length"])
    error = plant.step_error()
    assert 0.0 < error.largest < 1e-5
    assert np.sum(last["tendon_tension"] > 0.0) >= 3
    other = plant_of(finger("left"))
    with pytest.raises(rtmms.ModelError):
        other.restore(stored)


LINEAR = """
import numpy as np, rtmms
from rtmms.analysis.linearise import linearise
from tests.mechanism.test_tendons import commands, every_kind
plant = every_kind(1e-4)
rate, step = linearise(plant), rtmms.linearise(plant)
assert set(rate.states) == set(step.states), (rate.states, step.states)
order = [rate.states.index(name) for name in step.states]
held = rate.held(plant.dt)
off_a = np.abs(held.a[np.ix_(order, order)] - step.a).max() / np.abs(step.a).max()
off_b = np.abs(held.b[order] - step.b).max() / np.abs(step.b).max()
print(*(name for name in rate.states if "." in name and ("tension" in name or "filter" in name)))
print(off_a, off_b)
"""


@pytest.mark.full
def test_linear_models_know_tendons() -> None:
    """d/dt x by a complex step, and a step by differences: the same to first order in the step. In plain Python, which
    saves compiling for complex numbers."""
    ran = subprocess.run(
        [sys.executable, "-c", LINEAR], env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": "."}, text=True,
        capture_output=True, timeout=300, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    names, off = ran.stdout.splitlines()
    assert names.split() == [
        "left.tension.lag", "right.length.filter", "right.length.filter_rate", "across.rate.filter",
        "across.rate.filter_rate",
    ]  # fmt: skip
    off_a, off_b = map(float, off.split())
    assert off_a < 1e-3
    assert off_b < 1e-3


ON_WHEELS = """
import numpy as np
import rtmms
from rtmms import locomotion as on
from rtmms import model as m
sides = (("left", 0.2), ("right", -0.2))
deck = m.Body("deck", 2.0, inertia=np.diag([0.01, 0.02, 0.03]))
rims = [m.Body(side, 0.1, inertia=np.diag([1e-4, 2e-4, 1e-4])) for side, _ in sides]
mast = m.Body.about_centre("mast", 0.2, (0.0, 0, 0.1), 1e-3 * np.eye(3))
hubs = [m.Joint(side, "deck", side, placement=m.at(y=y), axis=(0, 1, 0)) for side, y in sides]
joint = m.Joint("mast", "deck", "mast", axis=(0, 1, 0), stiffness=2.0, damping=0.05)
ground = [on.Plane("deck"), *(on.Wheel(side, 0.05) for side, _ in sides)]
cart = m.Mechanism("cart", [deck, *rims, mast], [*hubs, joint], contacts=ground)
stay = m.Tendon("stay", [("deck", (0.2, 0, 0)), ("mast", (0, 0, 0.2))])
plant = rtmms.TreePlant(cart, actuators=[m.JointSpeed("left"), m.JointSpeed("right"), stay])
for _ in range(600):
    plant.step([4.0, 4.0, 2.0])
seen = plant.observe()
print(*seen["velocity"][:1], *seen["joint_position"][2:], *seen["tendon_tension"])
"""


@pytest.mark.full
def test_a_tendon_of_a_robot_on_wheels() -> None:
    """A stay bends a mast on a cart that rolls: k q = T dl/dq and its weight. In plain Python, see above."""
    ran = subprocess.run(
        [sys.executable, "-c", ON_WHEELS], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, text=True, capture_output=True,
        timeout=300, check=True,
    )  # fmt: skip
    speed, q, tension = map(float, ran.stdout.split())
    assert speed == pytest.approx(4.0 * 0.05, rel=1e-3)
    assert tension == 2.0
    pull = 2.0 * 0.04 * math.cos(q) / math.sqrt(0.08 - 0.08 * math.sin(q))
    assert 2.0 * q == pytest.approx(pull + 0.2 * 9.81 * 0.1 * math.sin(q), rel=0.02)


def test_limits_of_commands_hold() -> None:
    plant = plant_of(finger("left", upper=3.0))
    plant.step([-5.0])
    assert plant.observe()["tendon_tension"][0] == 0.0
    plant.step([9.0])
    assert plant.observe()["tendon_tension"][0] == 3.0


def test_they_are_drawn() -> None:
    """As lines through their points, which move with the bodies."""
    from rtmms.view.drawings import shape_of
    from rtmms.wire.protocol.received_state import PlantInfo

    plant = plant_of(finger("left"), tail(), rods=True)
    plant.place(joint_position=0.3 * np.ones(plant.model.n))
    info = PlantInfo("hand", plant.dt, "", None, None, plant.actuators, plant.outputs, shape=plant.shape)
    shape = shape_of(info)
    assert shape is not None
    result = {name: np.ravel(value).tolist() for name, value in plant.observe().items()}
    cords = shape.points(result)
    lengths = [float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum()) for points in cords]
    np.testing.assert_allclose(lengths, plant.observe()["tendon_length"], rtol=1e-6)
    assert [skin.lines for skin in shape.skins] == [((0, 1, 2),), ((0, 1, 2, 3),)]


@pytest.mark.parametrize(
    ("tendon", "text"),
    [
        (m.Tendon("t", [("palm", (0, 0, 0))]), r"actuators\[0\] \(Tendon\) 't': path must be two or more points"),
        (m.Tendon("t", [("palm", (0, 0, 0)), ("palm", (1, 0, 0))]), "expected points on at least two bodies"),
        (m.Tendon("t", [("palm", (0, 0, 0)), ("toe", (1, 0, 0))]), r"path\[1\]"),
        (m.Tendon("t", [("palm", (0, 0, 0)), ("tail", (0.4, 0, 0))]), "X must be within rod 'tail', 0 to 0.3 m"),
        (finger("left", command="length"), "a commanded length needs stiffness"),
        (finger("left", command="force"), "command must be one of tension, length, rate"),
        (finger("left", stiffness=3.0), "expected lower >= 0, no stiffness and no damping, got stiffness or damping"),
        (finger("left", lower=-1.0), "got lower = -1 N"),
        (finger("left", friction=[0.1, 0.2]), r"friction must have shape \(1,\), got \(2,\)"),
        (finger("left", friction=-0.1), "friction must be >= 0"),
        (finger("left", slip=0.0), "slip must be > 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tendon: m.Tendon, text: str) -> None:
    with pytest.raises(rtmms.RtmmsError, match=text):
        plant_of(tendon, rods=True)


def pushrod(**more: Any) -> rtmms.TreePlant:
    """A slider on a rail, with a rod of 0.5 m to a point of the base."""
    base, slider = m.Body("base", 5.0, inertia=np.eye(3)), m.Body("slider", 0.4, inertia=0.01 * np.eye(3))
    joint = m.Joint("rail", "base", "slider", "prismatic", placement=m.at(0.5), axis=(1, 0, 0))
    rod = m.Tendon("rod", [("base", (0, 0, 0)), ("slider", (0, 0, 0))], "none", stiffness=400.0, neutral=0.5, **more)
    mechanism = rtmms.Mechanism("press", [base, slider], [joint], base="fixed", gravity=NO_GRAVITY)
    return rtmms.TreePlant(mechanism, 1e-3, actuators=[rod])


def test_a_rod_pushes_as_it_pulls() -> None:
    """The slider swings at sqrt(k / m) to both sides; a cable lets it go when it is slack."""
    quarter = 0.5 * math.pi / math.sqrt(400.0 / 0.4)
    for start, pushes in ((0.02, True), (-0.02, True), (-0.02, False)):
        plant = pushrod(pushes=pushes)
        plant.place(joint_position=[start])
        for _ in range(round(2.0 * quarter / plant.dt)):
            plant.step(np.zeros(0))
        outputs = plant.observe()
        if pushes:
            assert outputs["joint_position"][0] == pytest.approx(-start, rel=1e-3)
            assert outputs["energy"] == pytest.approx(0.5 * 400.0 * start**2, rel=1e-6)
            assert math.copysign(1.0, outputs["tendon_tension"][0]) == math.copysign(1.0, -start)
        else:
            assert outputs["joint_position"][0] == start
            assert outputs["tendon_tension"][0] == 0.0


def test_a_cable_without_a_command_has_no_channel() -> None:
    """It is the cable of the same length that is commanded."""
    plant = pushrod()
    assert plant.actuators == ()
    fixed = plant_of(finger("left", command="none", stiffness=3e3, damping=2.0, neutral=0.15))
    commanded = plant_of(finger("left", command="length", stiffness=3e3, damping=2.0, neutral=0.15))
    for _ in range(300):
        fixed.step(np.zeros(0))
        commanded.step(commanded.neutral)
    assert fixed.vector.tobytes() == commanded.vector.tobytes()
    assert [channel.name for channel in commanded.actuators] == ["left.length"]
    assert rtmms.linearise(fixed).a.shape == (len(fixed.coordinates().names),) * 2


def test_rods_that_push_have_no_friction() -> None:
    with pytest.raises(rtmms.ModelError, match=r"'left': friction: expected 0 with pushes=True, got 0.2"):
        plant_of(finger("left", command="none", stiffness=3e3, friction=0.2, pushes=True))
    with pytest.raises(rtmms.ModelError, match="pushes: expected True or False, got 1"):
        plant_of(finger("left", command="none", stiffness=3e3, pushes=1))
    assert plant_of(finger("left", pushes=True)).actuators[0].lower is None  # a commanded force of either sign
