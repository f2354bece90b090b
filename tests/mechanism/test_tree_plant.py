"""Any tree as a plant: actuators on joints and bodies, outputs, refusals that name their place, snapshots."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.model.compiled import State

G = 9.81


def drone(**more: Any) -> rtmms.Mechanism:
    """A box of 2 kg."""
    return rtmms.Mechanism("drone", [m.Body("hull", solids=[m.Box(0.2, 0.1, 0.05, 2000.0)])], **more)


def arm(damping: float = 0.0, base: str = "fixed", stiffness: float = 0.0, drive: str = "torque") -> rtmms.Mechanism:
    """Two links that swing about y, one below the other."""
    link = m.Box(0.02, 0.02, 0.5, 1000.0, m.at(z=-0.25))
    bodies = [m.Body("mount", solids=[m.Box(0.2, 0.2, 0.2, 1000.0)]), m.Body("upper", solids=[link])]
    bodies.append(m.Body("lower", solids=[link]))
    joints = [
        m.Joint("shoulder", "mount", "upper", axis=(0, 1, 0), damping=damping, stiffness=stiffness),
        m.Joint("elbow", "upper", "lower", axis=(0, 1, 0), placement=m.at(z=-0.5), damping=damping, drive=drive),
    ]
    return rtmms.Mechanism("arm", bodies, joints, base=base)


def run(plant: Any, command: Any, seconds: float) -> dict[str, Any]:
    values = np.array(command, dtype=float)
    for _ in range(round(seconds / plant.dt)):
        plant.step(values)
    outputs: dict[str, Any] = plant.observe()
    return outputs


def test_a_body_falls_without_a_command() -> None:
    plant = rtmms.TreePlant(drone(), dt=1e-2)
    observed = run(plant, [], 0.5)
    assert isinstance(plant, rtmms.Plant)
    assert observed["position"][2] == pytest.approx(-0.5 * G * 0.25, rel=1e-12)
    assert "joint_position" not in observed
    assert observed["energy"] == pytest.approx(0.0, abs=1e-12)


def test_force_and_moment_at_a_pose() -> None:
    """A force along the pose's x, at an arm, accelerates and turns by the laws of Newton and Euler."""
    turned = m.Placement(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.array([0.1, 0.0, 0.0]))
    push = rtmms.model.BodyWrench("hull", ("fx", "mz"), turned)
    plant = rtmms.TreePlant(drone(gravity=(0, 0, 0)), actuators=[push])
    assert [c.name for c in plant.actuators] == ["hull.fx", "hull.mz"]
    observed = run(plant, [2.0, 0.3], 1e-3)
    inertia = 2.0 / 12.0 * (0.2**2 + 0.1**2)
    assert observed["velocity"][1] == pytest.approx(2.0 / 2.0 * 1e-3, rel=1e-6)
    assert observed["angular_velocity"][2] == pytest.approx((0.1 * 2.0 + 0.3) / inertia * 1e-3, rel=1e-6)


def test_momentum_of_a_pushed_tree_is_the_impulse() -> None:
    from rtmms import dynamics

    tree = rtmms.Mechanism("arm", arm().bodies, arm().joints, base="free", gravity=(0, 0, 0))
    plant = rtmms.TreePlant(
        tree, actuators=[rtmms.model.BodyWrench("lower", ("fx",)), rtmms.model.JointTorque("elbow")]
    )
    rng, impulse = np.random.default_rng(2), np.zeros(3)
    for _ in range(200):
        command = rng.normal(size=2)
        before = plant.state
        turn = dynamics.body_poses(plant.model, before)[0][2]
        plant.step(command)
        after = dynamics.body_poses(plant.model, plant.state)[0][2]
        impulse += 0.5 * (turn + after)[:, 0] * command[0] * plant.dt
    momentum = plant.state.rotation @ dynamics.momentum(plant.model, plant.state)[:3]
    np.testing.assert_allclose(momentum, impulse, rtol=1e-4, atol=1e-6)


def quad(**more: Any) -> Any:
    places = {"front": (0.15, 0.0), "left": (0.0, 0.15), "back": (-0.15, 0.0), "right": (0.0, -0.15)}
    rotors = [
        rtmms.model.Rotor("hull", m.at(x, y), 2e-5, 4e-7, spin=1 if k % 2 else -1, name=name, max_speed=900.0, **more)
        for k, (name, (x, y)) in enumerate(places.items())
    ]
    return rtmms.TreePlant(drone(), actuators=rotors)


def test_four_rotors_hover_at_their_thrust() -> None:
    plant = quad()
    hover = math.sqrt(2.0 * G / 4.0 / 2e-5)
    observed = run(plant, [hover] * 4, 1.0)
    np.testing.assert_allclose(observed["position"], 0.0, atol=1e-9)
    assert plant.actuators[0].name == "front.speed"
    assert plant.actuators[0].upper == 900.0


@pytest.mark.parametrize(
    ("faster", "axis", "sign"),
    [((0,), 1, -1), ((2,), 1, 1), ((1,), 0, 1), ((3,), 0, -1), ((0, 2), 2, 1), ((1, 3), 2, -1)],
    ids=["front: nose up", "back: nose down", "left: rolls right", "right: rolls left", "clockwise pair", "other pair"],
)
def test_faster_rotors_turn_it_the_right_way(faster: tuple[int, ...], axis: int, sign: int) -> None:
    plant = quad()
    command = np.full(4, math.sqrt(2.0 * G / 4.0 / 2e-5))
    command[list(faster)] *= 1.02
    observed = run(plant, command, 0.01)
    turned = observed["angular_velocity"]
    assert np.sign(turned[axis]) == sign
    if axis == 2:
        np.testing.assert_allclose(turned[:2], 0.0, atol=1e-9)
        drag = 2 * 4e-7 * (1.02**2 - 1.0) * command.min() ** 2
        assert turned[2] == pytest.approx(sign * drag * 0.01 / (2.0 / 12.0 * 0.05), rel=1e-3)


@pytest.mark.parametrize("method", ["rk4", "abam", "implicit2"])
def test_a_lag_is_exact(method: str) -> None:
    """Speed after a step of the command, whatever the step's length; the impulse is its integral's."""
    tau, c, u, t = 0.05, 3.0, 2.0, 0.2
    plant = rtmms.TreePlant(
        drone(gravity=(0, 0, 0)),
        0.01,
        actuators=[rtmms.model.Thruster("hull", coefficient=c, time_constant=tau)],
        method=method,
    )
    observed = run(plant, [u], t)
    e = math.exp(-t / tau)
    assert observed["motor"][0] == pytest.approx(u * (1.0 - e), rel=1e-13)
    integral = t - 2.0 * tau * (1.0 - e) + 0.5 * tau * (1.0 - e * e)
    assert observed["velocity"][0] == pytest.approx(
        c * u * u * integral / 2.0, rel=2e-2 if method == "implicit2" else 1e-4
    )


def test_a_curve_is_followed_and_held_beyond_its_ends() -> None:
    curve = [(-1.0, -4.0), (0.0, 0.0), (0.5, 1.0), (1.0, 6.0)]
    plant = rtmms.TreePlant(drone(gravity=(0, 0, 0)), actuators=[rtmms.model.Thruster("hull", curve=curve, name="jet")])
    assert (plant.actuators[0].lower, plant.actuators[0].upper) == (-1.0, 1.0)
    for command, thrust in ((0.75, 3.5), (-0.25, -1.0), (0.5, 1.0), (2.0, 6.0), (-2.0, -4.0)):
        plant.reset()
        assert run(plant, [command], 1e-3)["velocity"][0] == pytest.approx(thrust / 2.0 * 1e-3, rel=1e-9)


def test_a_servo_follows_within_its_limit() -> None:
    plant = rtmms.TreePlant(arm(), actuators=[rtmms.model.JointServo("elbow", 50.0, 2.0, limit=0.4, lower=-1, upper=1)])
    maximum = 0.0
    for _ in range(3000):
        plant.step(np.array([0.5]))
        maximum = max(maximum, abs(plant.observe()["joint_torque"][1]))
    assert maximum <= 0.4
    free = rtmms.TreePlant(arm(damping=0.1), actuators=[rtmms.model.JointServo("elbow", 50.0, 0.2)])
    assert run(free, [0.5], 4.0)["joint_position"][1] == pytest.approx(0.5, abs=5e-3)


def test_an_imposed_motion_is_a_filter_of_second_order() -> None:
    plant = rtmms.TreePlant(arm(), actuators=[rtmms.model.JointMotion("shoulder", bandwidth=8.0)])
    assert plant.model.imposed.tolist() == [True, False]
    observed = run(plant, [0.7], 0.3)
    assert observed["joint_position"][0] == pytest.approx(0.7 * (1.0 - (1.0 + 8 * 0.3) * math.exp(-8 * 0.3)), rel=1e-12)
    two = [rtmms.model.JointMotion("shoulder", bandwidth=8.0), rtmms.model.JointMotion("elbow", bandwidth=16.0)]
    observed = run(rtmms.TreePlant(arm(), actuators=two), [0.7, 0.7], 0.3)
    assert observed["joint_position"][1] == pytest.approx(
        0.7 * (1.0 - (1.0 + 16 * 0.3) * math.exp(-16 * 0.3)), rel=1e-12
    )


def test_what_damping_takes_is_what_energy_loses() -> None:
    plant = rtmms.TreePlant(arm(damping=0.05), initial=swung(arm()))
    before, lost = float(plant.observe()["energy"]), 0.0
    for _ in range(1000):
        first = plant.observe()["joint_velocity"]
        plant.step(np.zeros(0))
        second = plant.observe()["joint_velocity"]
        lost += 0.5 * 0.05 * (first @ first + second @ second) * plant.dt
    assert before - float(plant.observe()["energy"]) == pytest.approx(lost, rel=1e-5)
    assert lost > 0.01


def swung(mechanism: rtmms.Mechanism) -> State:
    state: State = rtmms.compile(mechanism).state()
    state.q[:] = 1.0, -0.4
    return state


def test_stops_hold_a_joint_within_its_range() -> None:
    stop = rtmms.model.JointStop("elbow", -0.1, 0.1, 2000.0, 5.0)
    plant = rtmms.TreePlant(arm(), initial=swung_little(), actuators=[stop])
    assert plant.actuators == ()
    reached = [abs(run(plant, [], 0.01)["joint_position"][1]) for _ in range(200)]
    assert 0.1 < max(reached) < 0.12
    loose = rtmms.TreePlant(arm(), initial=swung_little())
    assert max(abs(run(loose, [], 0.01)["joint_position"][1]) for _ in range(200)) > 0.3


def swung_little() -> State:
    state: State = rtmms.compile(arm()).state()
    state.q[:] = 1.0, 0.0
    return state


def test_any_body_can_be_observed() -> None:
    """Its pose and velocity as rtmms.dynamics has them; at rest it feels its weight; what falls feels none."""
    from rtmms import dynamics

    names = [f"lower.{q}" for q in ("position", "quaternion", "velocity", "angular_velocity", "specific_force")]
    plant = rtmms.TreePlant(arm(), initial=swung(arm()), outputs=["joint_position", *names])
    assert [c.name for c in plant.outputs] == ["joint_position", *names]
    last = plant.observe()["lower.velocity"]
    observed = run(plant, [], 0.3)
    rotation, position = dynamics.body_poses(plant.model, plant.state)
    np.testing.assert_allclose(observed["lower.position"], position[2], atol=1e-13)
    w, x, y, z = observed["lower.quaternion"]
    from rtmms.base.spatial import quaternion_matrix

    np.testing.assert_allclose(quaternion_matrix(np.array([w, x, y, z])), rotation[2], atol=1e-13)
    twist = dynamics.body_twists(plant.model, plant.state)[2]
    np.testing.assert_allclose([*observed["lower.velocity"], *observed["lower.angular_velocity"]], twist, atol=1e-13)
    h = plant.dt
    a = observed
    b = run(plant, [], h)
    mean = 0.5 * (a["lower.specific_force"] + b["lower.specific_force"])
    spin = np.cross(0.5 * (a["lower.angular_velocity"] + b["lower.angular_velocity"]),
                    0.5 * (a["lower.velocity"] + b["lower.velocity"]))  # fmt: skip
    moved = (b["lower.velocity"] - a["lower.velocity"]) / h + spin + rotation[2].T @ np.array([0, 0, G])
    np.testing.assert_allclose(mean, moved, atol=0.02)
    assert last is not observed["lower.velocity"]
    falling = rtmms.TreePlant(drone(), outputs=["hull.specific_force"])
    np.testing.assert_allclose(run(falling, [], 0.1)["hull.specific_force"], 0.0, atol=1e-12)
    resting = rtmms.TreePlant(drone(base="fixed"), outputs=["hull.specific_force", "base_wrench"])
    np.testing.assert_allclose(resting.observe()["hull.specific_force"], [0, 0, G], atol=1e-12)


def test_a_neutral_body_floats_and_a_current_takes_it_along() -> None:
    solid = m.Ellipsoid(0.3, 0.1, 0.1, 1000.0)
    skin = m.elliptic_strip(0.1, 0.1, 0.4, 1000.0, m.Placement(), added=(0.0, 1.0, 1.0))
    mass = 1000.0 * 4.0 / 3.0 * math.pi * 0.003
    body = m.Body("float", solids=[solid], fluid_density=1000.0, elements=[skin])
    observed = run(rtmms.TreePlant(rtmms.Mechanism("float", [body])), [], 1.0)
    np.testing.assert_allclose(observed["position"], 0.0, atol=1e-9)
    drifting = rtmms.TreePlant(rtmms.Mechanism("float", [body]), 0.01, flow=rtmms.fluids.Flow((0.0, 0.2, 0.0)))
    assert drifting.model.mass == pytest.approx(mass)
    assert 0.1 < run(drifting, [], 30.0)["velocity"][1] < 0.2


def test_snapshots_go_on_with_the_same_bits_and_know_their_model() -> None:
    def build(**more: Any) -> Any:
        actuators = [
            rtmms.model.Thruster("lower", coefficient=1.0, time_constant=0.1, **more),
            rtmms.model.JointServo("elbow", 5.0, 0.1),
        ]
        return rtmms.TreePlant(arm(base="free"), actuators=actuators)

    plant, other = build(), build()
    run(plant, [1.0, 0.3], 0.05)
    blob = plant.snapshot()
    other.restore(blob)
    for item in (plant, other):
        run(item, [-0.5, 0.1], 0.05)
    assert plant.snapshot() == other.snapshot()
    with pytest.raises(rtmms.ModelError, match="a snapshot of the present model"):
        build(moment=0.1).restore(blob)


@pytest.mark.parametrize(
    ("actuators", "text"),
    [
        (
            [rtmms.model.JointTorque("elbw")],
            r"unknown joint of arm: actuators\[0\] \(JointTorque\) 'elbw'; did you mean elbow",
        ),
        ([rtmms.model.Rotor("lower", spin=0)], r"actuators\[0\] \(Rotor\): spin must be 1 or -1, got 0"),
        ([rtmms.model.Rotor("wing")], r"unknown body of arm: actuators\[0\] \(Rotor\) 'wing'"),
        ([rtmms.model.Thruster("lower")], r"Thruster\): expected coefficient or curve, got neither"),
        ([rtmms.model.Thruster("lower", curve=[(1, 0), (0, 1)])], r"Thruster\): the curve's commands must rise"),
        (
            [rtmms.model.JointTorque("elbow"), rtmms.model.JointTorque("elbow")],
            r"actuators\[1\].*another actuator has the name 'elbow.torque'",
        ),
        ([rtmms.model.JointServo("elbow", -1.0)], r"stiffness must be > 0, got -1"),
        (
            [rtmms.model.JointMotion("elbow"), rtmms.model.JointTorque("elbow")],
            r"joint 'elbow': expected drive='torque'",
        ),
        ([rtmms.model.BodyWrench("lower", ("fq",))], r"unknown component .* 'fq'"),
        (["elbow"], r"arm: actuators\[0\]: expected a JointTorque, .* got 'elbow'"),
        ([rtmms.model.Rotor], r"arm: actuators\[0\]: expected a"),
        (rtmms.model.JointTorque("elbow"), r"actuators: expected a list"),
    ],
)
def test_what_cannot_be_is_refused_by_name(actuators: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        rtmms.TreePlant(arm(), actuators=actuators)


SERVO = rtmms.model.JointServo("elbow", 5.0, name="servo")
SPRING = rtmms.model.JointAffine("elbow", 1.0, stiffness=5.0)
STOP = rtmms.model.JointStop("elbow", -1.0, 1.0, stiffness=10.0)


@pytest.mark.parametrize(
    "pair",
    [(SERVO, replace(SERVO, name="other")), (SERVO, SPRING), (SPRING, SERVO), (STOP, replace(STOP, upper=2.0))],
    ids=["servos", "servo, spring", "spring, servo", "stops"],
)
def test_two_actuators_that_would_set_the_same_numbers_are_refused(pair: Any) -> None:
    first = type(pair[0]).__name__
    with pytest.raises(rtmms.ModelError, match=rf"joint 'elbow': .* actuators\[0\] \({first}\) as well"):
        rtmms.TreePlant(arm(), actuators=pair)


@pytest.mark.parametrize("second", [rtmms.model.JointMotion, rtmms.model.JointSpeed])
@pytest.mark.parametrize("first", [rtmms.model.JointMotion, rtmms.model.JointSpeed])
def test_one_actuator_imposes_a_motion(first: Any, second: Any) -> None:
    with pytest.raises(rtmms.ModelError, match=r"actuators\[1\].* joint 'elbow': expected one actuator of this kind"):
        rtmms.TreePlant(arm(drive="motion"), actuators=[first("elbow", name="a"), second("elbow", name="b")])


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_limits_the_narrowest_counts(order: int) -> None:
    limits = [rtmms.model.JointLimit("elbow", -0.1, 0.1), rtmms.model.JointLimit("elbow", -1.0, 0.3)][::order]
    plant = rtmms.TreePlant(arm(), actuators=[rtmms.model.JointTorque("elbow"), *limits])
    for _ in range(2000):
        plant.step(np.array([5.0]))
    assert float(plant.state.q[plant.model.joint("elbow")]) == pytest.approx(0.1, abs=1e-3)
    apart = [rtmms.model.JointLimit("elbow", -1.0, -0.5), rtmms.model.JointLimit("elbow", 0.5, 1.0)]
    with pytest.raises(rtmms.ModelError, match="expected limits that leave a position"):
        rtmms.TreePlant(arm(), actuators=apart)


def test_other_refusals() -> None:
    with pytest.raises(rtmms.UnknownNameError, match=r"output of arm 'lower.positon'; did you mean lower.position"):
        rtmms.TreePlant(arm(), outputs=["lower.positon"])
    with pytest.raises(rtmms.ModelError, match="dt must be > 0 s, got 0"):
        rtmms.TreePlant(arm(), 0.0)
    with pytest.raises(rtmms.ModelError, match="expected a Mechanism"):
        rtmms.TreePlant("arm")  # type: ignore[arg-type]
    plant = rtmms.TreePlant(arm(), actuators=[rtmms.model.JointTorque("elbow")])
    with pytest.raises(ValueError, match=r"elbow\.torque must be finite"):
        plant.step(np.array([math.nan]))
    with pytest.raises(ValueError, match=r"shape \(1,\), got \(2,\)"):
        plant.step(np.zeros(2))


@pytest.mark.processes
def test_importing_rtmms_loads_neither_numba_nor_scipy() -> None:
    code = "import rtmms, sys; 'TreePlant' in dir(rtmms); sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(("base", "refused"), [("fixed", True), ("free", False)])
def test_a_fixed_base_has_no_velocity(base: str, refused: bool) -> None:
    rod = m.Body("rod", solids=[m.Box(0.4, 0.04, 0.04, 500.0)])
    hub = m.Body("hub", solids=[m.Box(0.1, 0.1, 0.1, 500.0)])
    tree = m.Mechanism("arm", [hub, rod], [m.Joint("elbow", "hub", "rod")], base=base)
    plant = rtmms.TreePlant(tree, 1e-3)
    state = plant.model.state()
    moving = State(state.position, state.orientation, state.q, np.array([1.0, 0, 0, 0, 0, 0]), state.qd)
    for built in (
        lambda: plant.place(velocity=(1, 0, 0)), lambda: plant.place(angular_velocity=(0, 1, 0)),
        lambda: plant.place(moving), lambda: rtmms.TreePlant(tree, 1e-3, initial=moving),
    ):  # fmt: skip
        if refused:
            with pytest.raises(rtmms.ModelError, match="velocity: expected 0 for a fixed base"):
                built()
        else:
            built()
