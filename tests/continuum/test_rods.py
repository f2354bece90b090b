"""Soft rods as links: elastica, beams, ring, bent arc against published and independent numbers; in motion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.equilibrium import Load, equilibrium
from rtmms.dynamics.inertia import mass_matrix
from rtmms.model import Body, Joint, Mechanism, Rod, RodSection, compile_model, elliptic_section
from rtmms.model.layout import C_STIFFNESS
from tests.continuum.beams import LITTLE, UPWARDS, rod_of, shot, tip_of

UNIT = RodSection(1.0, LITTLE, 1.0, 1.0, 1.0)
PLANE = ("bend_z",)
ELASTICA = {1.0: 0.30172, 5.0: 0.71379, 10.0: 0.81061}


def deflection(n: int, force: float) -> float:
    rod, model = rod_of(n, UNIT, freedoms=PLANE)
    name, place = rod.tip()
    q = equilibrium(model, [Load(name, (0.0, force, 0.0), place=place)], steps=4)
    return float(tip_of(rod, model, q)[0][1])


@pytest.mark.parametrize("force", ELASTICA)
def test_elastica(force: float) -> None:
    """To 1e-3 with 24 elements, at second order."""
    wanted = float(shot([0.0, force, 0.0], np.eye(3), 1.0, np.zeros(3), np.ones(3))[1])
    assert wanted == pytest.approx(ELASTICA[force], abs=1e-5)
    errors = [wanted - deflection(n, force) for n in (12, 24)]
    assert abs(errors[1]) < 1e-3 * wanted
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


def test_a_moment_closes_the_ring() -> None:
    rod, model = rod_of(8, UNIT, freedoms=PLANE)
    q = equilibrium(model, [Load(rod.tip()[0], couple=(0.0, 0.0, 2.0 * math.pi))], steps=4)
    np.testing.assert_allclose(q, 2.0 * math.pi / 8.0, atol=1e-9)
    np.testing.assert_allclose(tip_of(rod, model, q)[0], 0.0, atol=1e-9)


def wavenumbers(n: int, base: str) -> np.ndarray:
    """beta L = (omega^2 rho A L^4 / EI)^(1/4), in the plane."""
    _, model = rod_of(n, UNIT, base=base, freedoms=PLANE)
    mass = mass_matrix(model, model.state())
    if base == "free":
        mass = mass[np.ix_([0, 1, 5, *range(6, 6 + n)], [0, 1, 5, *range(6, 6 + n)])]
    stiff = np.zeros_like(mass)
    stiff[-n:, -n:] = np.diag(model.constant[1:, C_STIFFNESS])
    squares = np.sort(np.abs(np.linalg.eigvals(np.linalg.solve(mass, stiff)).real))
    return np.asarray(squares[3 if base == "free" else 0 :] ** 0.25)


@pytest.mark.parametrize(
    ("base", "wanted"), [("fixed", (1.8751041, 4.6940911, 7.8547574)), ("free", (4.7300407, 7.8532046, 10.9956078))]
)
def test_beams(base: str, wanted: tuple[float, ...]) -> None:
    fine, coarse = wavenumbers(32, base)[:3], wavenumbers(16, base)[:3]
    np.testing.assert_allclose(fine, wanted, rtol=1e-3)
    assert np.all(np.abs(coarse - wanted) > 3.5 * np.abs(fine - wanted))


def test_the_step_that_an_explicit_method_bears() -> None:
    """dt < 0.319 h^2 sqrt(rho A / EI) for Runge and Kutta's, 2 sqrt(2) / omega."""
    n = 12
    assert 2.0 * math.sqrt(2.0) / wavenumbers(n, "fixed")[-1] ** 2 * n * n == pytest.approx(0.319, abs=1e-3)


STEEL = RodSection(1.0, (1.0 / 6.0, 1.0 / 12.0, 1.0 / 12.0), 1e7 / 12.0, 1e7 / 12.0, 1e7 / 12.0)


def bent(n: int, force: float = 600.0) -> Any:
    """Bathe and Bolourchi's bend of 45 degrees, radius 100."""
    arc = {"curvature": (0.0, 0.0, -0.01), "placement": UPWARDS}
    rod, model = rod_of(n, STEEL, 25.0 * math.pi, **arc)
    name, place = rod.tip()
    return tip_of(rod, model, equilibrium(model, [Load(name, (0.0, 0.0, force), place=place)], steps=4))[0]


def test_the_bend_of_45_degrees() -> None:
    """Published: (15.79, 47.23, 53.37) (Simo and Vu-Quoc), (15.9, 47.2, 53.4) (Bathe and Bolourchi)."""
    wanted = shot(
        [0.0, 0.0, 600.0], UPWARDS.rotation, 25.0 * math.pi, np.array([0.0, 0.0, -0.01]), np.full(3, 1e7 / 12)
    )
    np.testing.assert_allclose(wanted, [15.79, 47.23, 53.37], atol=0.12)
    coarse, fine = bent(6), bent(12)
    assert np.linalg.norm(fine - wanted) < 4e-3 * 78.5
    assert np.linalg.norm(coarse - wanted) / np.linalg.norm(fine - wanted) == pytest.approx(3.7, abs=0.8)
    np.testing.assert_allclose(fine + (fine - coarse) / 3.0, wanted, atol=0.1)


@pytest.fixture(scope="module")
def rooted() -> Any:
    """A rod with bending and twist on a body that flaps, as the manta's support does."""
    rod = Rod("fin", "support", 0.3, elliptic_section(0.02, 0.003, 1100.0, 2e11), 6)
    bodies = [Body("base", 1.0, inertia=np.eye(3)), Body("support", 0.05, inertia=1e-4 * np.eye(3))]
    hinge = Joint("flap", "base", "support", axis=(1.0, 0.0, 0.0))
    mechanism = Mechanism("rooted", bodies, [hinge], base="fixed", gravity=(0.0, 0.0, 0.0), rods=[rod])
    return rtmms.TreePlant(mechanism, 1e-3, actuators=[rtmms.model.JointMotion("flap")], method="implicit2")


def test_a_rod_on_a_support_never_blows_up(rooted: Any) -> None:
    """Steps a hundred times what an explicit method bears."""
    model = rooted.model
    free = np.flatnonzero(~model.imposed)
    mass = mass_matrix(model, model.state())[np.ix_(free, free)]
    stiff = np.diag(model.constant[1 + free, C_STIFFNESS])
    fastest = math.sqrt(np.linalg.eigvals(np.linalg.solve(mass, stiff)).real.max())
    assert fastest * rooted.dt > 100.0 * 2.83
    for k in range(300):
        rooted.step(np.array([0.6 * math.sin(0.06 * k)]))
    assert 0.0 < np.abs(rooted.observe()["joint_position"][1:]).max() < 0.1
    for _ in range(2000):
        rooted.step(np.zeros(1))
    assert np.abs(rooted.observe()["joint_position"]).max() < 1e-6


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"section": lambda x: RodSection(1.0 - x, LITTLE, 1.0, 1.0, 1.0 - 1.2 * x)},
            r"section at X = 0.8.*twist_n_m2",
        ),
        ({"section": RodSection(0.0, LITTLE, 1.0, 1.0, 1.0)}, "mass_kg_m must be > 0: a section needs an area"),
        ({"elements": 0}, "elements must be > 0"),
        ({"elements": 2.5}, "elements must be a whole number"),
        ({"freedoms": ("shear",)}, "freedoms must be some of"),
        ({"body": "roof"}, "body 'roof' is not a body; known: wall"),
        ({"damping_s": -1.0}, "damping_s must be >= 0 s"),
        ({"curvature": (0.0, math.nan, 0.0)}, r"curvature at X = 0.05 m must be 3 finite"),
    ],
)
def test_refused(arguments: dict[str, Any], text: str) -> None:
    rod = Rod(**{"name": "rod", "body": "wall", "length_m": 1.0, "section": UNIT, **arguments})
    with pytest.raises(rtmms.ModelError, match=text):
        compile_model(Mechanism("r", [Body("wall")], rods=[rod], base="fixed"))
