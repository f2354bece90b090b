"""Tendons on rods by strain modes: virtual work, and the same motion as of a rod of links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.continuum.soft_tree import SoftTree
from rtmms.continuum.strain_modes import legendre

PATH = [("base", (0.0, 0.0, 0.03)), *(("arm", (x, 0.005, 0.02)) for x in (0.0625, 0.125, 0.25))]
SECTION = m.RodSection(0.3, (2e-4, 1e-4, 1e-4), 0.04, 0.04, 0.03)


def tree(base: str, rods: tuple[m.Rod, ...] = ()) -> m.Mechanism:
    body = m.Body("base", 0.5, inertia=2e-3 * np.eye(3))
    return m.Mechanism("tentacle", [body], base=base, gravity=(0.0, 0.0, 0.0), rods=rods)


def arm(elements: int = 1) -> m.Rod:
    place = m.at(0.02, pitch=0.3)
    return m.Rod("arm", "base", 0.25, SECTION, elements, place, damping_s=0.02)


def soft(base: str = "fixed", **more: Any) -> SoftTree:
    return SoftTree(tree(base), [arm()], legendre(3), 1e-3, actuators=[m.Tendon("pull", PATH, **more)])


def slope(plant: SoftTree, n: int) -> np.ndarray:
    """dl/dq at the present strains."""
    y, h, result = plant.state, 1e-5, np.zeros(n)
    for k in range(n):
        ends = []
        for by in (h, -2.0 * h):
            y[7 + k] += by
            ends.append(float(plant.observe()["tendon_length"][0]))
        y[7 + k] += h
        result[k] = (ends[0] - ends[1]) / (2.0 * h)
    return result


@pytest.mark.full
def test_strains_at_rest_bear_the_tension() -> None:
    """K q = -T dl/dq, by virtual work: there nothing moves."""
    plant, pull = soft(), 1.5
    n, stiff = len(plant.system.soft.shapes[0]), plant.system.soft.stiffs[0]
    assert plant.observe()["tendon_length"] == pytest.approx(plant.neutral if plant.neutral[0] else 0.278152, rel=1e-5)
    for _ in range(60):
        plant.state[7 : 7 + n] = -pull * np.linalg.solve(stiff, slope(plant, n))
    assert np.abs(plant.state[7 : 7 + n]).max() > 0.3
    plant.system.pulled.command[0] = 0.0
    free = np.abs(plant.look()[12 + n :]).max()
    plant.system.pulled.command[0] = pull
    assert np.abs(plant.look()[12 + n :]).max() < 1e-7 * free
    plant.state[13 + n :] = np.linspace(1.0, -1.0, n)
    outputs = plant.observe()
    assert outputs["tendon_rate"][0] == pytest.approx(float(slope(plant, n) @ plant.state[13 + n :]), abs=1e-9)
    assert outputs["tendon_tension"][0] == pull


@pytest.mark.full
@pytest.mark.parametrize("command", ["tension", "length"])
def test_it_moves_as_a_rod_of_links_does(command: str) -> None:
    """On a free body, with friction; both go on from a snapshot with the same bits."""
    values: dict[str, Any] = {"friction": 0.2, "slip": 0.01, "command": command}
    values |= {"time_constant": 0.05} if command == "tension" else {"stiffness": 200.0, "damping": 0.5}
    plant = soft("free", **values)
    links = rtmms.TreePlant(
        tree("free", (arm(12),)), 1e-3, actuators=[m.Tendon("pull", PATH, **values)], method="implicit2"
    )
    assert plant.neutral == pytest.approx(links.neutral, rel=1e-12)
    pulled = plant.neutral + (1.5 if command == "tension" else -0.01)
    for k in range(300):
        if k == 200:
            stored = plant.snapshot()
        plant.step(pulled)
        links.step(pulled)
    observed, wanted = plant.observe(), links.observe()
    moved = float(np.linalg.norm(wanted["position"]))
    assert moved > 3e-4
    np.testing.assert_allclose(observed["position"], wanted["position"], atol=0.03 * moved)
    assert observed["tendon_length"] == pytest.approx(wanted["tendon_length"], rel=2e-3)
    assert observed["tendon_tension"] == pytest.approx(wanted["tendon_tension"], rel=0.05)
    assert float(observed["dissipated_energy"]) > 3e-5
    assert observed["dissipated_energy"] == pytest.approx(wanted["dissipated_energy"], rel=0.05)
    plant.restore(stored)
    for _ in range(100):
        plant.step(pulled)
    np.testing.assert_array_equal(plant.observe()["tip"], observed["tip"])


def test_a_point_beyond_the_rod_is_refused() -> None:
    with pytest.raises(rtmms.ModelError, match="X must be within rod 'arm'"):
        SoftTree(tree("fixed"), [arm()], legendre(3), actuators=[m.Tendon("t", [PATH[0], ("arm", (0.3, 0, 0))])])
