"""Soft rods by links and by strain modes: what they cost, how accurate they are, and PyElastica in the same run.

Elastica and the bend of 45 degrees against shooting's numbers, beams by their wavenumbers, the flying spaghetti (a free
rod pushed and turned at one end for 2.5 s) against strain modes of high order.
"""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import numba
import numpy as np

import rtmms
from rtmms.analysis.equilibrium import Load, equilibrium
from rtmms.continuum.shapes import COMPONENTS, legendre
from rtmms.continuum.soft_tree import SoftTree
from rtmms.continuum.strain_rod import StrainRod
from rtmms.dynamics.kinematics import body_poses
from rtmms.mechanism.entry import enter_step
from rtmms.model import Body, Joint, Mechanism, Placement, Rod, RodSection, State, compile_model, elliptic_section
from rtmms.spatial import Array, quaternion_matrix

from . import elastica_peer as peer

LITTLE = (1e-9, 1e-9, 1e-9)
UNIT = RodSection(1.0, LITTLE, 1.0, 1.0, 1.0)
PLANE = ("bend_z",)
ELASTICA, LOAD = 0.8106090, 10.0
"""Tip of the elastica at P l^2 / EI = 10."""
BEND = np.array([15.6850782, 47.1512944, 53.4685984])
"""Tip of Bathe and Bolourchi's bend without stretch and shear, by shooting (tests/continuum/beams.py)."""
UPWARDS = Placement(np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
ARC: dict[str, Any] = {"placement": UPWARDS, "curvature": (0.0, 0.0, -0.01)}
STEEL = RodSection(1.0, (1 / 6, 1 / 12, 1 / 12), 1e7 / 12, 1e7 / 12, 1e7 / 12)
TARGET_US = 5.0

SPAGHETTI = RodSection(1.0, (20.0, 10.0, 10.0), 500.0, 500.0, 500.0, 1e4, 1e4, 1e4)
ENDS = (np.array([0.0, 8.0, 0.0]), np.array([6.0, 0.0, 0.0]))
LAID = Placement(np.array([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]]), ENDS[0])
TIMES = np.array([2.0, 4.0, 6.0])


def pushed(t: float) -> tuple[Array, Array]:
    """Force and couple on the spaghetti's end, world."""
    on = 1.0 if t < 2.5 else 0.0
    return np.array([8.0 * on, 0.0, 0.0]), np.array([0.0, 0.0, -80.0 * on])


def tip_of(rod: Rod, model: Any, q: Array) -> Array:
    """(3,) m."""
    state = State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), q, np.zeros(6), np.zeros(model.n))
    rotations, positions = body_poses(model, state)
    name, place = rod.tip()
    k = model.body(name)
    end: Array = positions[k] + rotations[k] @ place.position
    return end


def resting(rod: Rod, load: Array) -> Array:
    """(3,) tip of a rod of links on a wall."""
    model = compile_model(Mechanism("r", [Body("wall")], rods=[rod], base="fixed", gravity=(0.0, 0.0, 0.0)))
    name, place = rod.tip()
    return tip_of(rod, model, equilibrium(model, [Load(name, load, place=place)], steps=4))


def statics() -> dict[str, Any]:
    """Relative errors of the tip by elements and by shapes."""
    out: dict[str, Any] = {"elastica": {}, "bend": {}}
    for n in (8, 16, 32):
        tip = resting(Rod("rod", "wall", 1.0, UNIT, n, freedoms=PLANE), np.array([0.0, LOAD, 0.0]))
        out["elastica"][f"{n} links"] = abs(tip[1] - ELASTICA) / ELASTICA
        tip = resting(Rod("rod", "wall", 25.0 * math.pi, STEEL, n, **ARC), np.array([0.0, 0.0, 600.0]))
        out["bend"][f"{n} links"] = float(np.abs(tip - BEND).max() / np.linalg.norm(BEND))
    for n in (2, 3, 4):
        one = StrainRod(Rod("rod", "wall", 1.0, UNIT, freedoms=PLANE), legendre(n, PLANE))
        one.rest([0.0, LOAD, 0.0, 0.0, 0.0, 0.0])
        out["elastica"][f"{n} shapes"] = abs(one.tip()[1] - ELASTICA) / ELASTICA
        one = StrainRod(Rod("rod", "wall", 25.0 * math.pi, STEEL, **ARC), legendre(n))
        one.rest([0.0, 0.0, 600.0, 0.0, 0.0, 0.0])
        out["bend"][f"{n} shapes"] = float(np.abs(one.tip() - BEND).max() / np.linalg.norm(BEND))
    return out


def ends_of_modes(order: int, dt: float, components: tuple[str, ...]) -> tuple[Array, float]:
    """(k, 2, 3) both ends of the spaghetti, s."""
    rod = StrainRod(Rod("rod", "air", 10.0, SPAGHETTI, placement=LAID), legendre(order, components), "free", dt=dt)
    found, steps = [], round(TIMES[-1] / dt)
    wanted, spent = {round(t / dt) for t in TIMES}, 0.0
    for k in range(steps):
        load = np.concatenate(pushed((k + 0.5) * dt))
        start = time.perf_counter()
        rod.step(load)
        spent += time.perf_counter() - start
        if k + 1 in wanted:
            found.append([rod.state[:3].copy(), rod.tip()])
    return np.array(found), spent


def ends_of_links(n: int, dt: float) -> tuple[Array, float]:
    """The same of links, without stretch and shear."""
    rod = Rod("rod", "end", 10.0, SPAGHETTI, n, freedoms=PLANE, placement=Placement(LAID.rotation))
    name, place = rod.tip()
    start_at = State(LAID.position, np.array([1.0, 0, 0, 0]), np.zeros(n), np.zeros(6), np.zeros(n))
    plant = rtmms.TreePlant(
        Mechanism("spaghetti", [Body("end")], rods=[rod], gravity=(0.0, 0.0, 0.0)), dt, method="implicit2",
        actuators=[rtmms.model.BodyWrench(name, placement=place)], initial=start_at,
        outputs=["position", f"{name}.position", f"{name}.quaternion"],
    )  # fmt: skip
    found, spent, steps = [], 0.0, round(TIMES[-1] / dt)
    wanted, seen = {round(t / dt) for t in TIMES}, plant.observe()
    for k in range(steps):
        back = quaternion_matrix(seen[f"{name}.quaternion"]).T
        force, couple = pushed((k + 0.5) * dt)
        command = np.concatenate([back @ force, back @ couple])
        start = time.perf_counter()
        plant.step(command)
        spent += time.perf_counter() - start
        seen = plant.observe()
        if k + 1 in wanted:
            end = seen[f"{name}.position"] + quaternion_matrix(seen[f"{name}.quaternion"]) @ place.position
            found.append([seen["position"], end])
    return np.array(found), spent


def flight() -> dict[str, Any]:
    """Of each way: largest error of either end, m over the length, and s of wall clock for 6 s."""
    exact, _ = ends_of_modes(7, 1e-3, ("stretch", "shear_y", "bend_z"))
    out: dict[str, Any] = {}

    def add(name: str, found: tuple[Array, float]) -> None:
        out[name] = {"error": float(np.abs(found[0] - exact).max()) / 10.0, "seconds": found[1]}

    for n in (10, 20):
        add(f"{n} links, dt 5 ms", ends_of_links(n, 5e-3))
    for order in (4, 6):
        add(f"{order} shapes of bending, dt 5 ms", ends_of_modes(order, 5e-3, ("bend_z",)))
    add("6 shapes of bending and stretch, dt 5 ms", ends_of_modes(6, 5e-3, ("stretch", "bend_z")))
    if peer.installed():
        for n in (10, 20, 40):
            add(f"PyElastica, {n} elements, dt 1 ms", peer.fly(n, ENDS, (500.0, 1e4, 1e4, 10.0), pushed, TIMES, 1e-3))
    return out


@numba.njit
def _loop(times: int, address: int) -> int:
    status = 0
    for _ in range(times):
        status += enter_step(address)
    return status


def costs() -> dict[str, float]:
    """us of a step of a rod of 10 elements on a support that flaps, as the manta's do; by freedoms and method."""
    out: dict[str, float] = {}
    for freedoms in (("bend_y",), ("bend_y", "twist"), ("bend_y", "bend_z", "twist")):
        rod = Rod(
            "fin", "support", 0.3, elliptic_section(0.02, 0.003, 1100.0, 2e6), 10, damping_s=1e-3, freedoms=freedoms
        )
        bodies = [Body("base", 1.0, inertia=np.eye(3)), Body("support", 0.05, inertia=1e-4 * np.eye(3))]
        hinge = Joint("flap", "base", "support", axis=(1.0, 0.0, 0.0))
        for method in ("implicit1", "implicit2"):
            mechanism = Mechanism("rooted", bodies, [hinge], base="fixed", gravity=(0.0, 0.0, 0.0), rods=[rod])
            plant = rtmms.TreePlant(mechanism, 1e-3, actuators=[rtmms.model.JointMotion("flap")], method=method)
            for k in range(200):
                plant.step(np.array([0.5 * math.sin(0.01 * k)]))
            _loop(2, plant._address)
            best = float("inf")
            for _ in range(30):
                start = time.perf_counter()
                _loop(200, plant._address)
                best = min(best, time.perf_counter() - start)
            out[f"{' '.join(freedoms)}, {method}"] = best / 200 * 1e6
    return out


def modes_cost() -> dict[str, float]:
    """us of a step, from Python, of a rod by strain modes on the same support; by shapes a strain."""
    out: dict[str, float] = {}
    bodies = [Body("base", 1.0, inertia=np.eye(3)), Body("support", 0.05, inertia=1e-4 * np.eye(3))]
    hinge = Joint("flap", "base", "support", axis=(1.0, 0.0, 0.0), drive="motion")
    mechanism = Mechanism("rooted", bodies, [hinge], base="fixed", gravity=(0.0, 0.0, 0.0))
    for order in (2, 4):
        rod = Rod("fin", "support", 0.3, elliptic_section(0.02, 0.003, 1100.0, 2e6), damping_s=1e-3)
        plant = SoftTree(mechanism, [rod], legendre(order), 1e-3, nodes=13)
        best = float("inf")
        for _ in range(300):
            start = time.perf_counter()
            plant.step(plant.neutral)
            best = min(best, time.perf_counter() - start)
        out[f"{order} shapes a strain, implicit2"] = best * 1e6
    return out


def measure() -> dict[str, Any]:
    """All of it."""
    result: dict[str, Any] = {
        "step_us": costs() | modes_cost(),
        "target_us": TARGET_US,
        "statics": statics(),
        "flight": flight(),
    }
    if peer.installed():
        for n in (8, 16, 32):
            found, seconds = peer.rest(n, LOAD, 1.5e-3 / n, 6.0)
            result["statics"]["elastica"][f"PyElastica, {n} elements ({seconds:.1f} s)"] = (
                abs(found - ELASTICA) / ELASTICA
            )
    result["components"] = list(COMPONENTS)
    return result


def run(as_json: bool = False) -> int:
    """Measure and print; 0."""
    result = measure()
    if as_json:
        print(json.dumps(result))
        return 0
    print("a step of a rod of 10 elements on a support that flaps, us (target 5):")
    for name, us in result["step_us"].items():
        print(f"  {name:34} {us:6.2f}   {1e3 / us:6.0f} x real time at 1 ms")
    for case, errors in result["statics"].items():
        print(f"{case}: error of the tip, relative")
        for name, error in errors.items():
            print(f"  {name:34} {error:9.2e}")
    print("flying spaghetti, 6 s: error of either end over the length, and wall clock")
    for name, one in result["flight"].items():
        print(f"  {name:34} {one['error']:9.2e}   {one['seconds']:7.3f} s")
    if not peer.installed():
        print("PyElastica is not installed (pip install pyelastica): nothing of it here")
    return 0


if __name__ == "__main__":
    sys.exit(run("--json" in sys.argv))
