"""The manta's fins as soft rods, beside the pseudo-rigid chains: what three rigid links leave out.

One fin on a support that rolls and pitches as the manta's rods make it, in still water: strips side by side, each a
chain of links with the springs, drag and dampers of the manta's own (rtmms.robots.manta.model), or a soft rod of the
same material, with the chain's plane bending alone, with twist, and with bending across as well. Thrust, power and tip
over the last period; the reference is the rod with all freedoms and twice the elements.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np

import rtmms
from rtmms.mechanism.joint_laws import Law
from rtmms.model import Body, Joint, Mechanism, Placement, Rod, RodSection, Strip, at
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.spatial import Array

STRIPS, FREQUENCY, AMPLITUDE, LEAD = 5, 1.0, 0.6, 0.7
"""Strips of a fin; Hz, rad and rad of the rods, as the README's first controller has them."""
OUTWARD = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""A rod's x out of the body (y), its y aft, its z up: it bends about its own y."""
OMEGA = 2.0 * math.pi * FREQUENCY
CASES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("rod, 3 elements, bending", 3, ("bend_y",)),
    ("rod, 10 elements, bending", 10, ("bend_y",)),
    ("rod, 10 elements, bending and twist", 10, ("bend_y", "twist")),
    ("rod, 10 elements, all freedoms", 10, ("bend_y", "bend_z", "twist")),
)


def thickness(p: MantaParameters, u: float) -> float:
    """m, at u of a chain's length."""
    return float(np.interp(u, [1 / 6, 1 / 2, 5 / 6], p.link_thickness_m))


def strip_of(p: MantaParameters, k: int) -> tuple[float, float, float]:
    """Where strip k stands on the support, its width and its length, m."""
    width = p.support_length_m / STRIPS
    x = (k + 0.5) * width
    taper = (p.chain_length_front_m - p.chain_length_back_m) * x / p.support_length_m
    return x, width, p.chain_length_back_m + taper


def water(p: MantaParameters, width: float, length: float, placement: Placement, added: bool) -> Strip:
    """What the water sees of a link: a flat plate, along its normal; and against rolling, as wide as it is."""
    rho, half = p.water_density_kg_m3, 0.5 * width
    across = rho * p.added_mass_coefficient * p.support_length_m * width if added else 0.0
    return Strip(
        length, drag=(0.0, 0.0, 0.5 * rho * p.drag_coefficient * width),
        roll_drag=0.5 * rho * p.drag_coefficient * 0.5 * half**4, added=(across * width**2 / 12.0, 0.0, across),
        placement=placement,
    )  # fmt: skip


def damping(p: MantaParameters, elements: int) -> float:
    """N m s of a joint, of the fin's material whatever the mesh."""
    return p.joint_damping_n_m_s * (30.0 / STRIPS) * elements / 3.0


def soft(p: MantaParameters, k: int, elements: int, freedoms: tuple[str, ...], added: bool) -> Rod:
    """Strip k as a soft rod."""
    x, width, length = strip_of(p, k)
    shear = p.young_modulus_pa / 3.0  # as rubber: no change of volume

    def section(at_x: float) -> RodSection:
        t = thickness(p, at_x / length)
        mass = p.fin_density_kg_m3 * width * t
        thin = 1.0 - 0.63 * t / width  # of a flat rectangle's torsion
        return RodSection(
            mass, (mass * (width**2 + t**2) / 12.0, mass * t**2 / 12.0, mass * width**2 / 12.0),
            p.young_modulus_pa * width * t**3 / 12.0, p.young_modulus_pa * t * width**3 / 12.0,
            shear * width * t**3 / 3.0 * thin,
        )  # fmt: skip

    def slow(at_x: float) -> float:
        return damping(p, elements) / (section(at_x).bend_y_n_m2 * elements / length)

    return Rod(
        f"strip{k}", "support", length, section, elements, Placement(OUTWARD, np.array([x, 0.0, 0.0])),
        damping_s=slow, freedoms=freedoms, skin=lambda _, size, place: water(p, width, size, place, added),
    )  # fmt: skip


def rigid(p: MantaParameters, k: int, added: bool) -> tuple[list[Body], list[Joint]]:
    """Strip k as the manta's chain of links of equal length."""
    x, width, length = strip_of(p, k)
    link, parent, place = length / p.links, "support", Placement(OUTWARD, np.array([x, 0.0, 0.0]))
    bodies, joints = [], []
    for j in range(p.links):
        t, name = thickness(p, (j + 0.5) / p.links), f"strip{k}.{j + 1}"
        mass = p.fin_density_kg_m3 * width * link * t
        inertia = mass / 12.0 * np.diag([width**2 + t**2, link**2 + t**2, width**2 + link**2])
        skin = water(p, width, link, at(0.5 * link), added)
        bodies.append(Body.about_centre(name, mass, (0.5 * link, 0.0, 0.0), inertia, elements=[skin]))
        over, bends = link, t
        if p.bending == "centred":  # half a link to each side of a joint, the root's one side alone
            over, bends = link * (0.5 if j == 0 else 1.0), thickness(p, j / p.links)
        stiffness = p.young_modulus_pa * width * bends**3 / 12.0 / over
        joints.append(Joint(
            f"{name}.bend_y", parent, name, placement=place, axis=(0.0, 1.0, 0.0), stiffness=stiffness,
            damping=damping(p, p.links) * link / over,
        ))  # fmt: skip
        parent, place = name, at(link)
    return bodies, joints


def support(p: MantaParameters) -> Array:
    """(2, 3) offset, cosine, sine of roll and pitch: the rods' mean, and the way between their ends over its length."""
    front = AMPLITUDE * np.array([0.0, math.sin(LEAD), math.cos(LEAD)])
    back = np.array([0.0, 0.0, AMPLITUDE])
    pitch = (p.back_rod_m * back - p.front_rod_m * front) / p.support_length_m
    return np.array([0.5 * (front + back), pitch])


def swing(fin: dict[str, Any], dt: float, periods: int = 4) -> dict[str, float]:
    """Over the last period: mean thrust N, mean power W, range of the tip of the strip in the middle (m, degrees)."""
    p = fin["parameters"]
    bodies = [Body("body", 1.0, inertia=np.eye(3)), Body("roll", 1e-3, inertia=1e-6 * np.eye(3))]
    bodies.append(Body("support", 1e-3, inertia=1e-6 * np.eye(3)))
    joints = [
        Joint("roll", "body", "roll", axis=(1.0, 0.0, 0.0), drive="motion"),
        Joint("pitch", "roll", "support", axis=(0.0, 1.0, 0.0), drive="motion"),
    ]
    mechanism = Mechanism(
        "fin", bodies + fin["bodies"], joints + fin["joints"], base="fixed", gravity=(0, 0, 0), rods=fin["rods"]
    )  # fmt: skip
    tip, out = fin["tip"], fin["end"]
    model = rtmms.compile(mechanism)
    motion = np.zeros((model.n, 3))
    motion[:2] = support(p)
    plant = rtmms.TreePlant(
        model, dt, Law(motion, OMEGA, 1.0 / FREQUENCY), method="implicit2", nodes={"strip_nodes": 4},
        outputs=["base_wrench", "work", "joint_position", "support.position", "support.quaternion", f"{tip}.position",
                 f"{tip}.quaternion"],
    )  # fmt: skip
    per = round(1.0 / FREQUENCY / dt)
    for _ in range((periods - 1) * per):
        plant.step(np.zeros(0))
    force, bend, twist = [], [], []
    begin = float(plant.observe()["work"])
    for _ in range(per):
        plant.step(np.zeros(0))
        seen = plant.observe()
        force.append(-seen["base_wrench"][0])
        root, own = _matrix(seen["support.quaternion"]) @ OUTWARD, _matrix(seen[f"{tip}.quaternion"])
        inside = root.T @ (seen[f"{tip}.position"] + own[:, 0] * out - seen["support.position"])
        bend.append(inside[2])
        relative = root.T @ own
        twist.append(math.degrees(math.atan2(relative[2, 1], relative[2, 2])))
    work = float(plant.observe()["work"]) - begin
    return {
        "thrust_n": float(np.mean(force)), "power_w": work * FREQUENCY, "bend_mm": 1e3 * float(np.ptp(bend)),
        "twist_deg": float(np.ptp(twist)),
    }  # fmt: skip


def _matrix(quaternion: Array) -> Array:
    from rtmms.spatial import quaternion_matrix

    return quaternion_matrix(quaternion)


def of_rods(p: MantaParameters, elements: int, freedoms: tuple[str, ...], added: bool) -> dict[str, Any]:
    """The fin as soft rods."""
    rods = [soft(p, k, elements, freedoms, added) for k in range(STRIPS)]
    middle, place = rods[STRIPS // 2].tip()
    return {
        "parameters": p, "bodies": [], "joints": [], "rods": rods, "tip": middle, "end": float(place.position[0])
    }  # fmt: skip


def of_chains(p: MantaParameters, added: bool) -> dict[str, Any]:
    """The fin as chains of rigid links."""
    parts = [rigid(p, k, added) for k in range(STRIPS)]
    middle = STRIPS // 2
    return {
        "parameters": p, "bodies": [b for bodies, _ in parts for b in bodies],
        "joints": [j for _, joints in parts for j in joints], "rods": (), "tip": f"strip{middle}.{p.links}",
        "end": strip_of(p, middle)[2] / p.links,
    }  # fmt: skip


def measure(added: bool, young: float) -> dict[str, dict[str, float]]:
    """Each way of building the fin; young Pa, 0 for the manta's own."""
    p = MantaParameters() if young == 0.0 else MantaParameters(young_modulus_pa=young)
    found = {"chain of 3 rigid links (PRB)": swing(of_chains(p, added), 2e-3)}
    found["the same, bending=centred"] = swing(of_chains(replace(p, bending="centred"), added), 2e-3)
    for name, elements, freedoms in CASES:
        found[name] = swing(of_rods(p, elements, freedoms, added), 2e-3)
    found["rod, 20 elements, all freedoms"] = swing(of_rods(p, 20, CASES[-1][2], added), 2e-3)
    return found


def run(as_json: bool = False, added: bool = False, young: float = 0.0) -> int:
    """Measure and print; 0."""
    result = measure(added, young)
    if as_json:
        print(json.dumps(result))
        return 0
    print(f"{'one fin, ' + str(STRIPS) + ' strips':38} thrust, N   power, W   bend, mm   twist, deg")
    for name, one in result.items():
        print(
            f"{name:38} {one['thrust_n']:9.4f} {one['power_w']:10.4f} {one['bend_mm']:10.2f} {one['twist_deg']:12.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(run("--json" in sys.argv))
