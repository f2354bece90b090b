"""Modal wings: one mode against many links, the rigid limit, energy, lift; and the figure of a stroke."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rtmms import dynamics
from rtmms.analysis.trim import trim
from rtmms.base.spatial import Array
from rtmms.mechanism.plant import TreePlant
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Joint, Mechanism, Modal
from rtmms.model.modal import sections_along, stiffness_of, twisting
from rtmms.robots import modal_moth
from rtmms.robots.modal_moth import ModalMoth
from rtmms.studies.boyer2017_claims import WINGS
from rtmms.view.tables import canvas, save
from rtmms.view.verdict import Row, rows_of

PERIOD_S = 1.0 / 26.0
STEPS = 80
SETTLE = 10
LINKS = 400


def one_mode_over_links() -> float:
    """Return the twist of the mode sin(pi X / 2 l) over that of a chain of links.

    The root turns about the span at a constant acceleration.

    Returns
    -------
    float
        The ratio.
    """
    p = ModalMoth()
    wave = math.pi / (2.0 * p.span_m)
    stiffness = stiffness_of([lambda x: wave * math.cos(wave * x)], lambda x: p.twist_rigidity_n_m2, p.span_m)
    density = p.wing_kg / p.span_m

    def piece(name: str, x: float, share: float) -> Body:
        inertia = density * share * p.chord_m**2 / 12.0 * np.diag([1.0, 1.0, 0.0])
        return Body.about_centre(name, density * share, np.array([0.0, 0.0, -0.5 * p.chord_m]), inertia)

    pieces = sections_along("wing", p.span_m, 8, piece, {"twist": twisting(lambda x: math.sin(wave * x))})
    wing = Body("wing", modal=Modal(["twist"], stiffness, pieces))
    root = Joint("root", "wall", "wing", axis=(1.0, 0.0, 0.0), drive="motion")
    wall = Body("wall", 1.0, inertia=np.eye(3))
    model = compile_model(Mechanism("one mode", [wall, wing], [root], "fixed", (0.0, 0.0, 0.0)))
    item = -float(dynamics.inverse_dynamics(model, model.state(), np.array([1.0, 0.0])).torque[1]) / float(
        stiffness[0, 0]
    )
    h, about = p.span_m / LINKS, density * p.span_m * p.chord_m**2 / 3.0 / LINKS
    bodies, joints = [wall], []
    for k in range(LINKS + 1):
        share = 0.5 if k in (0, LINKS) else 1.0
        bodies.append(Body(f"link{k}", share * about, inertia=share * about * np.diag([1.0, 0.5, 0.5])))
        joints.append(Joint(f"twist{k}", "wall" if k == 0 else f"link{k - 1}", f"link{k}", axis=(1.0, 0.0, 0.0)))
    chain = compile_model(Mechanism("many links", bodies, joints, "fixed", (0.0, 0.0, 0.0)))
    turned = np.zeros(LINKS + 1)
    turned[0] = 1.0
    torque = dynamics.inverse_dynamics(chain, chain.state(), turned).torque[1:]
    return item / float(np.sum(-torque * h / p.twist_rigidity_n_m2))


def strokes(modes: int = 1) -> tuple[Array, dict[str, Array], TreePlant]:
    """Run some strokes with the thorax held.

    Parameters
    ----------
    modes : int, default 1
        Number of modes of a wing.

    Returns
    -------
    tuple[Array, dict[str, Array], TreePlant]
        Time (s) and outputs of the last stroke, and the plant.
    """
    plant = modal_moth.load(PERIOD_S / STEPS, "fixed", modes=modes)
    for _ in range(STEPS * SETTLE):
        plant.step(plant.neutral)
    stored = [plant.observe()]
    for _ in range(STEPS):
        plant.step(plant.neutral)
        stored.append(plant.observe())
    names = ("joint_position", "base_wrench", "tip_twist", "work")
    series = {name: np.array([row[name] for row in stored]) for name in names}
    return PERIOD_S * np.arange(STEPS + 1) / STEPS, series, plant


def numbers(result: tuple[Array, dict[str, Array], TreePlant]) -> dict[str, float]:
    """Return the numbers by the keys of WINGS.

    Parameters
    ----------
    result : tuple[Array, dict[str, Array], TreePlant]
        Result of `strokes`.

    Returns
    -------
    dict[str, float]
        Numbers by key.
    """
    _, series, plant = result
    weight = plant.model.mass * plant.parameters.gravity_m_s2
    lift = weight - series["base_wrench"][:-1, 2]
    peak, other = np.max(np.abs(series["tip_twist"])), np.max(np.abs(strokes(3)[1]["tip_twist"]))
    return {
        "twist": one_mode_over_links(), "modes": float(peak / other), "peak": float(np.degrees(peak)),
        "lift": float(np.mean(lift) / weight),
        "power": float((series["work"][-1] - series["work"][0]) / PERIOD_S / plant.model.mass),
        "hover": _hover(), "wing_energy": _vacuum(), "rigid": _rigid(), "wing_time": _time(plant),
    }  # fmt: skip


def _hover() -> float:
    """Return the factor on the amplitudes of the stroke that closes, by shooting on the period map."""
    plant = modal_moth.load(PERIOD_S / 39)
    return float(trim(plant, plant.trim_options["close"], unknown="amplitude").amplitude)


def _vacuum() -> float:
    """Return energy less work, of the largest kinetic energy; no air, no weight, no damping."""
    plant = modal_moth.load(2e-4, air_density_kg_m3=0.0, gravity_m_s2=0.0, damping_ratio=0.0, step_s=1e-4)
    start, maximum, end = float(plant.observe()["energy"]), 0.0, plant.observe()
    for _ in range(500):
        plant.step(plant.neutral)
        end = plant.observe()
        maximum = max(maximum, float(end["energy"]))
    return abs(float(end["energy"]) - start - float(end["work"])) / maximum


def _rigid() -> float:
    """Return the error of the base's acceleration at a moving state with modes held at 0, against fixed sections."""
    whole = modal_moth.describe(ModalMoth())
    bodies, joints = [], list(whole.joints)
    for body in whole.bodies:
        bodies.append(replace(body, modal=None))
        for section in body.modal.sections if body.modal else ():
            bodies.append(section.body)
            name = section.body.name
            joints.append(Joint(f"fix {name}", body.name, name, type="fixed", placement=section.placement))
    rigid, model = compile_model(replace(whole, bodies=bodies, joints=joints)), compile_model(whole)
    state, other = model.state(), rigid.state()
    for k, name in enumerate(("right.flap", "right.feather", "left.flap", "left.feather")):
        for item, tree in ((state, model), (other, rigid)):
            item.q[tree.joint(name)], item.qd[tree.joint(name)] = 0.2 * (k + 1), 40.0 - 15.0 * k
    held = np.ones(model.n, dtype=bool)
    ours = dynamics.hybrid_dynamics(model, state, np.zeros(model.n), imposed=held).base_acceleration
    theirs = dynamics.inverse_dynamics(rigid, other, np.zeros(rigid.n)).base_acceleration
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def _time(plant: Any) -> float:
    """Return the time of an evaluation, us, from steps with four evaluations each: the least of some batches."""
    evaluations, best = 4 * plant.substeps, math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(100):
            plant.step(plant.neutral)
        best = min(best, time.perf_counter() - start)
    return float(best / 100.0 / evaluations * 1e6)


def draw(result: tuple[Array, dict[str, Array], TreePlant], out: Path, paper: str) -> list[Path]:
    """Draw angles and lift over a stroke.

    Parameters
    ----------
    result : tuple[Array, dict[str, Array], TreePlant]
        Result of `strokes`.
    out : Path
        Folder of the figures.
    paper : str
        Name of the paper, for the files.

    Returns
    -------
    list[Path]
        Files of the figures.
    """
    clock, series, plant = result
    figure, axes = canvas(2, 1, (7.0, 6.0))
    joints = plant.model.joint_names
    for name in ("right.flap", "right.feather"):
        axes[0].plot(clock * 1e3, np.degrees(series["joint_position"][:, joints.index(name)]), label=name)
    axes[0].plot(clock * 1e3, np.degrees(series["tip_twist"][:, 0]), label="twist of the right tip")
    axes[0].set(ylabel="deg", title="Modal moth, thorax held: a stroke")
    axes[0].legend()
    weight = plant.model.mass * plant.parameters.gravity_m_s2
    axes[1].plot(clock * 1e3, (weight - series["base_wrench"][:, 2]) / weight)
    axes[1].set(xlabel="t (ms)", ylabel="vertical force over weight")
    return [save(figure, out, f"{paper}-stroke")]


def part(out: Path | None, paper: str = "boyer2017") -> tuple[list[Row], list[Path]]:
    """Compute the rows, and draw the figures.

    Parameters
    ----------
    out : Path | None
        Folder of figures; None: no figures.
    paper : str, default 'boyer2017'
        Name of the paper, for the files.

    Returns
    -------
    tuple[list[Row], list[Path]]
        Rows of the table, and files of the figures.
    """
    result = strokes()
    return rows_of(WINGS, numbers(result)), draw(result, out, paper) if out is not None else []
