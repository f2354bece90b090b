"""Spinning rotors: against a rotor that is a body on a joint, and the angular momentum of the whole; highest rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms import model as m

J = 2e-3
TRANSVERSE = 1.2e-3
MASS = 0.2
HULL = np.diag([2e-2, 3e-2, 4e-2])
PLACE = m.at(0.1, 0.05, 0.08, roll=0.4, pitch=-0.7)
TAU = 0.05


def as_a_rotor(kind: str, method: str = "rk4") -> rtmms.TreePlant:
    """The rotor's mass stands in the hull, as if it did not spin."""
    turn, place = PLACE.rotation, PLACE.position
    current = turn @ np.diag([TRANSVERSE, TRANSVERSE, J]) @ turn.T
    about = current + MASS * (place @ place * np.eye(3) - np.outer(place, place))
    hull = m.Body("hull", 1.0 + MASS, MASS * place, HULL + about)
    rotor: Any = m.ReactionWheel("hull", J, PLACE, TAU)
    if kind == "rotor":
        rotor = m.Rotor("hull", PLACE, 1e-30, 0.0, -1, TAU, inertia=J)
    elif kind == "thruster":
        rotor = m.Thruster("hull", PLACE @ m.at(pitch=-np.pi / 2.0), 0.0, time_constant=TAU, inertia=J)
    tree = rtmms.Mechanism("one", [hull], gravity=(0, 0, 0))
    return rtmms.TreePlant(tree, 1e-3, actuators=[rotor], method=method)


def as_a_body() -> rtmms.TreePlant:
    """The same with a body on a joint whose rate follows with the same lag."""
    hull = m.Body("hull", 1.0, inertia=HULL)
    disc = m.Body("disc", MASS, inertia=np.diag([TRANSVERSE, TRANSVERSE, J]))
    joint = m.Joint("spin", "hull", "disc", placement=PLACE, axis=(0, 0, 1))
    tree = rtmms.Mechanism("two", [hull, disc], [joint], gravity=(0, 0, 0))
    return rtmms.TreePlant(tree, 1e-3, actuators=[m.JointSpeed("spin", bandwidth=1.0 / TAU)])


def spun(plant: rtmms.TreePlant, sign: float, change: bool = True) -> dict[str, Any]:
    plant.place(velocity=[0.3, -0.2, 0.1], angular_velocity=[0.5, -1.0, 0.8])
    for k in range(400):
        plant.step([sign * (300.0 if k < 200 or not change else 120.0)])
    outputs: dict[str, Any] = plant.observe()
    return outputs


@pytest.fixture(scope="module")
def peer() -> dict[str, Any]:
    return spun(as_a_body(), 1.0)


@pytest.mark.parametrize(("kind", "sign"), [("wheel", 1.0), ("rotor", -1.0), ("thruster", 1.0)])
def test_a_rotor_does_what_a_body_on_a_joint_does(kind: str, sign: float, peer: dict[str, Any]) -> None:
    """Gyroscopic torque and reaction, while it spins up and slows down. The rotor's spin is -1."""
    plant = as_a_rotor(kind)
    if kind == "rotor":  # -1 about z: the same as a wheel that is commanded backwards
        mirrored = spun(as_a_rotor("wheel"), -1.0)
        observed = spun(plant, 1.0)
        for name in ("position", "quaternion", "velocity", "angular_velocity"):
            np.testing.assert_allclose(observed[name], mirrored[name], atol=1e-12)
        return
    observed = spun(plant, sign)
    for name in ("position", "quaternion", "velocity", "angular_velocity"):
        np.testing.assert_allclose(observed[name], peer[name], atol=1e-9)
    assert np.abs(observed["angular_velocity"]).max() > 2.0
    for name in ("energy", "work", "power"):
        np.testing.assert_allclose(observed[name], peer[name], rtol=1e-6)
    assert float(observed["work"]) > 10.0


def test_angular_momentum_of_the_whole_stays() -> None:
    plant = as_a_rotor("wheel")
    plant.place(angular_velocity=[0.5, -1.0, 0.8])
    before = dynamics.momentum(plant.model, plant.state, about="centre")[3:]
    for _ in range(300):
        plant.step([250.0])
    observed, state = plant.observe(), plant.state
    current = J * float(observed["motor"][0]) * PLACE.rotation[:, 2]
    after = dynamics.momentum(plant.model, state, about="centre")[3:] + state.rotation @ current
    np.testing.assert_allclose(after, before, atol=1e-8)
    assert np.linalg.norm(current) > 0.4


@pytest.mark.parametrize("method", ["abam", "implicit2"])
def test_what_motors_give_to_a_spin_is_its_energy(method: str) -> None:
    plant = as_a_rotor("wheel", method)
    plant.place(angular_velocity=[0.5, -1.0, 0.8])
    before = float(plant.observe()["energy"])
    for _ in range(300):
        plant.step([250.0])
    outputs = plant.observe()
    values = float(outputs["energy"]) - before
    assert values > 30.0
    np.testing.assert_allclose(outputs["work"], values, rtol=1e-3)


def test_without_inertia_nothing_changes() -> None:
    """The default is a robot without the kernels of rotors that spin."""
    hull = m.Body("hull", 1.0, inertia=HULL)
    plant = rtmms.TreePlant(rtmms.Mechanism("one", [hull]), 1e-3, actuators=[m.Rotor("hull", time_constant=0.1)])
    assert plant.system.pushes.momentum is None
    assert plant.system.tendons is None
    with pytest.raises(rtmms.ModelError, match="a rotor with inertia needs time_constant > 0 s, got 0"):
        rtmms.TreePlant(rtmms.Mechanism("one", [hull]), actuators=[m.Rotor("hull", inertia=1e-3)])


def arm(drive: str, max_rate: float = 2.0) -> rtmms.TreePlant:
    link = m.Box(0.3, 0.03, 0.03, 1000.0, m.at(x=0.15))
    bodies = [m.Body("mount", solids=[m.Box(0.2, 0.2, 0.2, 1000.0)]), m.Body("link", solids=[link])]
    joint = m.Joint("shoulder", "mount", "link", axis=(0, 1, 0))
    actuator: Any = {
        "torque": m.JointTorque("shoulder", 20.0, max_rate=max_rate),
        "servo": m.JointServo("shoulder", 50.0, 1.0, max_rate=max_rate),
        "motion": m.JointMotion("shoulder", max_rate=max_rate),
    }[drive]
    tree = rtmms.Mechanism("arm", bodies, [joint], base="fixed")
    return rtmms.TreePlant(tree, 1e-3, actuators=[actuator])


@pytest.mark.parametrize("drive", ["torque", "servo", "motion"])
def test_a_highest_rate_of_an_actuator_holds(drive: str) -> None:
    plant, fast = arm(drive), 0.0
    for k in range(600):
        plant.step([20.0 if k < 300 else -20.0])
        fast = max(fast, abs(float(plant.observe()["joint_velocity"][0])))
    assert 1.8 < fast < 2.0 + 2e-5  # a millionth of what the torque would do within the braking time, 4 ms
    assert plant.joint_limits["shoulder"]["velocity"] == 2.0
    with pytest.raises(rtmms.ModelError, match="max_rate must be > 0, got -1"):
        arm(drive, -1.0)


def test_the_rate_is_listed(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from click.testing import CliRunner

    from rtmms.cli.list import list_

    (tmp_path / "mine.py").write_text(
        "import rtmms\nfrom rtmms import model as m\n\n\ndef robot(dt=1e-3):\n"
        "    bodies = [m.Body('mount', 1.0), m.Body('link', 1.0, inertia=[[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])]\n"
        "    joint = m.Joint('shoulder', 'mount', 'link', axis=(0, 1, 0))\n"
        "    pull = m.Tendon('biceps', [('mount', (0, 0, 0.1)), ('link', (0.1, 0, 0))], upper=30.0)\n"
        "    servo = m.JointServo('shoulder', 5.0, max_rate=1.5)\n"
        "    return rtmms.TreePlant(rtmms.Mechanism('arm', bodies, [joint], 'fixed'), dt, actuators=[servo, pull])\n"
    )
    output = CliRunner().invoke(list_, [f"{tmp_path}/mine.py:robot"])
    assert output.exit_code == 0, output.output
    message = output.output + capsys.readouterr().out
    assert "velocity at most 1.5" in message
    assert "biceps.tension" in message
    assert "N, from 0 to 30" in message
    assert "dissipated_energy" in message
