"""A chain of rigid links with half-length end links becomes the continuous eel, at second order."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rtmms.dynamics.hybrid import hybrid_dynamics
from rtmms.mechanism.flow import fluid_wrench
from rtmms.model import Body, Joint, Mechanism, Model, Rod, RodSection, State, at, compile_model, elliptic_strip
from rtmms.model.links import links_of
from rtmms.robots import continuous_eel
from tests.continuum.test_cosserat import reference

A = 0.065
B = 0.09
LENGTH = 2.08


def chain(n: int) -> Model:
    """n + 1 bodies, joints about z at (j - 1/2) l / n; x from head to tail."""
    h = LENGTH / n
    joints, bodies = [], []
    for j in range(n + 1):
        length = h if 0 < j < n else 0.5 * h
        mass = 1000.0 * math.pi * A * B * length
        current = mass * np.diag(
            [(A * A + B * B) / 4.0, B * B / 4.0 + length**2 / 12.0, A * A / 4.0 + length**2 / 12.0]
        )
        strip = elliptic_strip(A, B, length, 1000.0, at(0.5 * length))
        bodies.append(Body.about_centre(f"b{j}", mass, (0.5 * length, 0.0, 0.0), current, elements=[strip]))
        if j:
            place = at(0.5 * h if j == 1 else h)
            joints.append(Joint(f"q{j}", f"b{j - 1}", f"b{j}", placement=place, drive="motion"))
    return compile_model(Mechanism("chain", bodies, joints, gravity=(0.0, 0.0, 0.0)))


def test_second_order() -> None:
    plant = continuous_eel.in_paper_frame(wake="off", dt=4e-3, gravity_m_s2=0.0, nodes=129)
    for _ in range(150):
        plant.step(plant.neutral)
    _, field, _, twist, _, _ = reference(plant)
    errors: list[Any] = []
    for n in (16, 32, 64):
        model, h = chain(n), LENGTH / n
        bends = np.array([field((j + 0.5) * h)[:, 5] * h for j in range(n)]).T
        state = State(plant.state[:3].copy(), plant.state[3:7].copy(), bends[0].copy(), twist, bends[1].copy())
        result = hybrid_dynamics(model, state, bends[2], wrench=fluid_wrench(model, state, strip_nodes=6))
        errors.append(np.abs(result.base_acceleration - plant.acceleration).max())
    rates = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert errors[-1] < 0.02 * np.abs(plant.acceleration).max()
    assert all(abs(rate - 2.0) < 0.15 for rate in rates), (errors, rates)


def links_in_space(n: int) -> Model:
    """The same from the links of a soft rod, whose joints bend and twist: their motion is given."""
    density = 1000.0 * math.pi * A * B
    section = RodSection(
        density, (density * (A * A + B * B) / 4.0, density * B * B / 4.0, density * A * A / 4.0), 1.0, 1.0, 1.0
    )
    rod = Rod(
        "rod", "head", LENGTH, section, n, skin=lambda x, size, place: elliptic_strip(A, B, size, 1000.0, place)
    )  # fmt: skip
    bodies, joints = links_of(rod)
    moved = [joint if joint.type == "fixed" else replace(joint, drive="motion", stiffness=0.0) for joint in joints]
    return compile_model(Mechanism("chain", [Body("head"), *bodies], moved, gravity=(0.0, 0.0, 0.0)))


def test_second_order_in_space() -> None:
    """Bending and twist at once: the turns of a joint in an order that alternates."""
    plant = continuous_eel.in_paper_frame(preset="spatial", wake="off", dt=4e-3, gravity_m_s2=0.0, nodes=129)
    for _ in range(150):
        plant.step(plant.neutral)
    _, field, _, twist, _, _ = reference(plant)
    errors: list[Any] = []
    for n in (16, 32):
        model, h = links_in_space(n), LENGTH / n
        bends = np.zeros((3, model.n))
        for k, name in enumerate(model.joint_names):
            _, j, freedom = name.split(".")
            column = 3 + ("twist", "bend_y", "bend_z").index(freedom)
            bends[:, k] = field((int(j) - 0.5) * h)[:, column] * h
        state = State(plant.state[:3].copy(), plant.state[3:7].copy(), bends[0].copy(), twist, bends[1].copy())
        result = hybrid_dynamics(model, state, bends[2], wrench=fluid_wrench(model, state, strip_nodes=6))
        errors.append(np.abs(result.base_acceleration - plant.acceleration).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2), errors
    assert errors[-1] < 0.02 * np.abs(plant.acceleration).max()
