"""Rods by strain modes: published numbers with few shapes, links and modes held to each other, momentum, energy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.linearise import linearise
from rtmms.base.spatial import quaternion_matrix, rotation_z
from rtmms.continuum.strain_modes import COMPONENTS, Shapes, legendre, rod_table
from rtmms.continuum.strain_rod import StrainRod
from rtmms.model import Body, Mechanism, Placement, Rod, RodSection, Strip
from tests.continuum.beams import LITTLE, UPWARDS, shot

UNIT = RodSection(1.0, LITTLE, 1.0, 1.0, 1.0)
PLANE = ("bend_z",)


def plane(order: int, **more: Any) -> StrainRod:
    return StrainRod(Rod("rod", "wall", 1.0, UNIT, freedoms=PLANE), legendre(order, PLANE), **more)


def test_elastica_and_ring_with_four_shapes() -> None:
    rod = plane(4)
    for force, wanted in ((1.0, 0.30172), (5.0, 0.71379), (10.0, 0.81061)):
        rod.reset()
        rod.equilibrium([0.0, force, 0.0, 0.0, 0.0, 0.0])
        assert rod.tip()[1] == pytest.approx(wanted, abs=1.2e-5)
    rod.reset()
    rod.equilibrium([0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * math.pi])
    np.testing.assert_allclose(rod.tip(), 0.0, atol=1e-12)


def test_beams_with_six_shapes() -> None:
    for base, wanted in (("fixed", (1.8751041, 4.6940911, 7.8547574)), ("free", (4.7300407, 7.8532046))):
        rod = plane(6, base=base)
        mass = rod.mass_matrix()
        keep = range(6) if base == "fixed" else [0, 1, 5, *range(6, 12)]
        mass, stiff = mass[np.ix_(keep, keep)], np.zeros((len(keep), len(keep)))
        stiff[-6:, -6:] = rod.stiffness
        squares = np.sort(np.abs(np.linalg.eigvals(np.linalg.solve(mass, stiff))))
        result = squares[len(keep) - 6 :][: len(wanted)] ** 0.25
        np.testing.assert_allclose(result, wanted, rtol=3e-4)


STEEL = RodSection(1.0, (1 / 6, 1 / 12, 1 / 12), 1e7 / 12, 1e7 / 12, 1e7 / 12, 1e7, 5e6, 5e6)


@pytest.mark.parametrize("exact", [False, True])
def test_the_bend_of_45_degrees(exact: bool) -> None:
    """Three shapes a strain, without and with stretch and shear, to 1e-3 of the tip's way; four to 1e-4."""
    shear = np.array([1e7, 5e6, 5e6]) if exact else None
    components = COMPONENTS if exact else COMPONENTS[3:]
    wanted = shot(
        [0.0, 0.0, 600.0], UPWARDS.rotation, 25.0 * math.pi, np.array([0, 0, -0.01]), np.full(3, 1e7 / 12), shear
    )  # fmt: skip
    for order, error in ((3, 1e-3), (4, 1e-4)):
        rod = StrainRod(
            Rod("rod", "wall", 25.0 * math.pi, STEEL, placement=UPWARDS, curvature=(0.0, 0.0, -0.01)),
            legendre(order, components),
        )
        rod.equilibrium([0.0, 0.0, 600.0, 0.0, 0.0, 0.0])
        np.testing.assert_allclose(rod.tip(), wanted, atol=error * 59.0)


SOFT = RodSection(1.0, (2e-3, 1e-3, 1e-3), 1.0, 1.0, 0.7)


def push_at(t: float) -> Any:
    f = math.sin(5.0 * t) ** 2
    return np.array([0.0, 0.3 * f, 0.4 * f * math.sin(10.0 * t), 0.1 * f, 0.0, 0.0])


def of_links(n: int, dt: float, steps: int) -> Any:
    """(3,) tip of a rod of n elements after `steps` under `push_at`."""
    rod = Rod("rod", "wall", 1.0, SOFT, n)
    name, place = rod.tip()
    mechanism = Mechanism("r", [Body("wall")], rods=[rod], base="fixed", gravity=(0.0, 0.0, 0.0))
    plant = rtmms.TreePlant(
        mechanism, dt, actuators=[rtmms.model.BodyWrench(name, placement=place)], method="implicit2",
        outputs=[f"{name}.position", f"{name}.quaternion"],
    )  # fmt: skip
    for k in range(steps):
        back, load = quaternion_matrix(plant.observe()[f"{name}.quaternion"]).T, push_at((k + 0.5) * dt)
        plant.step(np.concatenate([back @ load[:3], back @ load[3:]]))
    outputs = plant.observe()
    return outputs[f"{name}.position"] + quaternion_matrix(outputs[f"{name}.quaternion"]) @ place.position


def test_links_and_modes_move_alike() -> None:
    """Bent and twisted in space by a push that comes and goes: links of 8 and 16 elements, at second order."""
    rod = StrainRod(Rod("rod", "wall", 1.0, SOFT), legendre(6), dt=1e-3)
    for k in range(400):
        rod.step(push_at((k + 0.5) * 1e-3))
    wanted = rod.tip()
    assert np.linalg.norm(wanted - [1.0, 0.0, 0.0]) > 0.04
    coarse, fine = (np.abs(of_links(n, 1e-3, 400) - wanted).max() for n in (8, 16))
    assert fine < 4e-5
    assert coarse / fine > 3.0


def test_a_free_rod_keeps_momentum_and_energy() -> None:
    """The impulse of a push on its end is its momentum; left alone, its energy stays but for what the step takes."""
    energies = []
    for dt in (2e-3, 1e-3):
        rod = StrainRod(Rod("rod", "none", 1.0, SOFT), legendre(3), base="free", dt=dt)
        for _ in range(round(0.1 / dt)):
            rod.step(np.array([0.5, 1.0, -0.7, 0.0, 0.0, 0.0]))
        assert rod.observe()["energy"] > 0.01
        start = float(rod.observe()["energy"])
        for _ in range(round(0.2 / dt)):
            rod.step(np.zeros(6))
        mass, y, n = rod.mass_matrix(), rod.state, rod.n
        momentum = mass[:3] @ np.concatenate([y[7 + n : 13 + n], y[13 + n :]])
        np.testing.assert_allclose(
            quaternion_matrix(y[3:7]) @ momentum, [0.05, 0.1, -0.07], atol=2e-4 * (dt / 1e-3) ** 2
        )
        energies.append(abs(float(rod.observe()["energy"]) - start))
    assert energies[1] < 0.3 * energies[0]


def fish(**more: Any) -> Rod:
    def skin(x: float, length: float, place: Placement) -> Strip:
        return Strip(length, drag=(0.0, 15.0, 5.0), roll_drag=1e-3, added=(1e-4, 2.0, 0.5), placement=place)

    place = Placement(rotation_z(0.3), np.array([0.1, 0.02, 0.0]))
    return Rod("tail", "head", 0.5, SOFT, placement=place, damping_s=5e-3, skin=skin, **more)


HEAD = Body.about_centre("head", 0.8, (0.05, 0.0, -0.01), np.diag([2e-3, 3e-3, 4e-3]), displaced=0.5)


def test_a_soft_tail_on_a_free_head_in_water() -> None:
    """A head with a tail in a stream, falling slowly, pushed at the tail: by modes and by links."""
    item = StrainRod(fish(), legendre(5), "free", HEAD, dt=1e-3, gravity=2.0, current=(0.2, 0.3, 0.0))
    load = np.array([0.3, 0.4, 0.2, 0.0, 0.0, 0.0])
    for _ in range(300):
        item.step(load)
    wanted = item.tip()
    ends = []
    for n in (8, 16):
        rod = fish(elements=n)
        name, place = rod.tip()
        plant = rtmms.TreePlant(
            Mechanism("fish", [HEAD], rods=[rod], gravity=(0.0, 0.0, -2.0)), 1e-3, method="implicit2",
            actuators=[rtmms.model.BodyWrench(name, placement=place)], flow=rtmms.fluids.Flow((0.2, 0.3, 0.0)),
            outputs=[f"{name}.position", f"{name}.quaternion"],
        )  # fmt: skip
        for _ in range(300):
            turn = quaternion_matrix(plant.observe()[f"{name}.quaternion"])
            plant.step(np.concatenate([turn.T @ load[:3], np.zeros(3)]))
        outputs = plant.observe()
        ends.append(outputs[f"{name}.position"] + quaternion_matrix(outputs[f"{name}.quaternion"]) @ place.position)
    route = np.linalg.norm(wanted - fish().placement.position - fish().placement.rotation @ [0.5, 0.0, 0.0])
    assert route > 0.05
    coarse, fine = (np.abs(end - wanted).max() for end in ends)
    assert fine < min(coarse, 5e-4 * route), (coarse, fine)


def test_linearised() -> None:
    rod = StrainRod(fish(), legendre(2), "free", HEAD, dt=1e-3)
    stored = rod.snapshot()
    result = linearise(rod)
    assert rod.snapshot() == stored
    assert result.a.shape == (24, 24)
    assert result.b.shape == (24, 6)
    # a push moves the whole by its mass, added mass too, whatever the tail does: impulse is momentum
    mass = rod.mass_matrix()
    moved = result.b[[*range(6, 12), *range(18, 24)], 0] / rod.dt
    np.testing.assert_allclose(mass[:3] @ moved, rotation_z(0.3).T[:, 0], atol=1e-6)


def test_more_shapes_have_more_points_and_too_few_are_refused():
    """Of degree 11, 25 points have the stiffness wrong by half; of degree 3 by nothing."""
    rod = Rod("rod", "w", 1.0, UNIT, freedoms=PLANE)
    result = [rod_table(rod, legendre(n, PLANE), None, 5, 25) for n in (4, 12)]
    assert len(result[0].grid.x) == 25
    assert 45 < len(result[1].grid.x) < 90
    for n, table in zip((4, 12), result, strict=True):
        exact = np.diag(1.0 / (2.0 * np.arange(n) + 1.0)) * table.stiff[0, 0]
        size = np.sqrt(np.diag(exact))
        assert np.max(np.abs(table.stiff - exact) / np.outer(size, size)) < 0.011
    with pytest.raises(rtmms.ModelError, match=r"nodes: 25 are too few for 12 shapes: expected \d\d or more"):
        StrainRod(rod, legendre(12, PLANE), nodes=25)
    kinked = Shapes({"bend_z": [lambda u: 1.0, lambda u: float(np.sign(u - 0.7001))]})
    assert len(rod_table(rod, kinked, None, 5, 9).grid.x) > 9


HOLED = Shapes({"bend_z": [lambda u: math.nan if u == 0.5 else u]})
TWICE = Shapes({"bend_z": [lambda u: u, lambda u: 2.0 * u]})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StrainRod(Rod("rod", "w", 1.0, UNIT), HOLED, nodes=9, points=3),
         "shape 0 of bend_z at X = 0.5 m"),
        (lambda: StrainRod(Rod("rod", "w", 1.0, UNIT), TWICE), "linearly independent"),
        (lambda: StrainRod(Rod("rod", "w", 1.0, UNIT), legendre(2, ("stretch",))), "X = 0 m: stretch_n must be > 0"),
        (lambda: StrainRod(Rod("rod", "w", 1.0, UNIT), legendre(2, ("length",))), "expected some of stretch"),
        (lambda: StrainRod(Rod("rod", "w", 1.0, lambda x: RodSection(1.0 - x, LITTLE, 1, 1, 1))), "X = 1 m: mass_kg_m"),
        (lambda: StrainRod(Rod("rod", "w", 1.0, UNIT, freedoms=("bend_y",)), legendre(2)),
         r"expected strains among the rod's freedoms \(bend_y\), got twist"),
        (lambda: StrainRod(Rod("rod", "w", 1.0, UNIT), base="hung"), "base must be one of fixed, free"),
    ],
)  # fmt: skip
def test_refused(make: Any, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        make()


def test_bits_and_commands() -> None:
    rod = plane(3)
    for _ in range(5):
        rod.step(np.ones(6))
    stored = rod.snapshot()
    rod.step(np.ones(6))
    once = rod.snapshot()
    rod.restore(stored)
    with pytest.raises(ValueError, match=r"tip.fy must be finite"):
        rod.step(np.array([0.0, math.nan, 0.0, 0.0, 0.0, 0.0]))
    rod.restore(stored)
    rod.step(np.ones(6))
    assert rod.snapshot() == once
    with pytest.raises(rtmms.ModelError, match="expected a snapshot of the present model, step, version"):
        plane(4).restore(stored)
    assert isinstance(rod, rtmms.plant.protocol.Plant)


def test_a_rollout_has_the_bits_of_single_steps() -> None:
    rod = plane(3)
    commands = np.random.default_rng(2).normal(size=(3, 20, 6))
    runs = rtmms.rollout(rod, commands, outputs=("joint_velocity", "joint_position"), every=20)
    for run, command in enumerate(commands):
        rod.reset()
        for item in command:
            rod.step(item)
        outputs = rod.observe()
        for name in ("joint_velocity", "joint_position"):
            np.testing.assert_array_equal(runs.outputs[name][run, -1], outputs[name])


def test_a_step_that_fails_leaves_the_last_state_without_a_load() -> None:
    rod = plane(3, dt=10.0)
    stored = rod.state.copy()
    with pytest.raises(rtmms.DivergedError, match="joint_velocity grew without bound"):
        rod.step(np.full(6, 1e300))
    np.testing.assert_array_equal(rod.state, stored)
    assert not rod.push.any()
