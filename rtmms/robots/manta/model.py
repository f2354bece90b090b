"""Compile a manta's parameters to flat arrays, and refuse steps and couplings that would be unstable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError
from rtmms.base.memory import Record
from rtmms.robots.manta import layout as lay
from rtmms.robots.manta.body import (
    BODY,
    DRAG_COMPONENTWISE,
    DRAG_NORM,
    MOMENT_COMPONENTWISE,
    MOMENT_LINEAR,
    MOMENT_NORM,
)
from rtmms.robots.manta.coupling import spectral_radius
from rtmms.robots.manta.fin_layout import ADDED, LANES, LINK_FIELDS, lane_count, pack_links
from rtmms.robots.manta.layout import ITERATED, SEQUENTIAL, SUPPORTS, W_INERTIA
from rtmms.robots.manta.methods import GAMMAS, HALVES, METHODS, STABILITY
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.manta.rods import (
    IDEAL,
    POINT,
    RESPONSES,
    ROLL_MEAN,
    ROLL_ZERO,
    ROTATION,
    SERVO,
    SINGULAR_MARGIN,
    SUPPORT_SIZE,
    servo_responses,
)

Array = npt.NDArray[np.float64]


COUPLINGS = {"sequential": lay.SEQUENTIAL, "iterated": lay.ITERATED, "monolithic": lay.MONOLITHIC}


@dataclass(frozen=True, slots=True)
class MantaModel:
    """Compiled manta.

    Parameters
    ----------
    finned : Record
        Record of layout.FINNED.
    body : Record
        Record of body.BODY.
    param : (2, blocks, ...) array
        Of fin_layout.pack_links.
    links : (LINK_FIELDS, m, n) array
        The same numbers before packing, of a whole fin, for checks and displays.
    station : (n,) array
        Stations of the chains on the support, m.
    fin_mass : float
        Mass of one fin, kg.
    """

    finned: Record
    body: Record
    param: Array
    links: Array
    station: Array
    fin_mass: float


def link_fields(p: MantaParameters) -> tuple[Array, Array, float]:
    """Return the parameters of all links; chains are in order from the back rod.

    Parameters
    ----------
    p : MantaParameters
        Parameters of the manta.

    Returns
    -------
    (array, array, float)
        Parameters (LINK_FIELDS, m, n), stations (n,), m, and mass of one fin, kg.
    """
    m, n = p.links, p.chains
    station = (np.arange(n) + 0.5) * p.support_length_m / n
    width = p.support_length_m / n
    taper = (p.chain_length_front_m - p.chain_length_back_m) * station / p.support_length_m
    length = np.broadcast_to((p.chain_length_back_m + taper) / m, (m, n))
    thickness = np.interp((np.arange(m) + 0.5) / m, [1 / 6, 1 / 2, 5 / 6], p.link_thickness_m)[:, None]
    mass = p.fin_density_kg_m3 * width * length * thickness
    # what a joint bends for: the link that it carries, or half a link to each side, and the root's one side alone
    bends, over, knots = thickness, length, [1 / 6, 1 / 2, 5 / 6]
    if p.bending == "centred":
        bends = np.interp(np.arange(m) / m, knots, p.link_thickness_m)[:, None]
        over = length * np.where(np.arange(m) == 0, 0.5, 1.0)[:, None]
    bending = p.young_modulus_pa * width * bends**3 / 12.0
    strip = p.water_density_kg_m3 * p.added_mass_coefficient * p.support_length_m * width * length
    out = np.empty((LINK_FIELDS, m, n))
    out[0] = length
    out[1] = mass
    # a solid box, width along x, length along d, thickness along n
    out[2] = mass * (length**2 + thickness**2) / 12.0
    out[3] = mass * (width**2 + thickness**2) / 12.0
    out[4] = mass * (width**2 + length**2) / 12.0
    out[5] = 4.0 * bending / over
    out[6] = 0.5 * p.water_density_kg_m3 * p.drag_coefficient * width * length
    out[7] = strip if p.added_mass else 0.0
    out[8] = p.damping_of_a_joint * (length / over)
    return out, station, float(mass.sum())


def difference_limits(p: MantaParameters) -> tuple[float, float]:
    """Return the limit of the commanded difference of a fin's two rods, and that of the stop beyond it.

    Parameters
    ----------
    p : MantaParameters
        Parameters of the manta.

    Returns
    -------
    (float, float)
        rad.

    Notes
    -----
    The support is singular where l^2 = r1^2 + r2^2 - 2 r1 r2 cos(a1 - a2), whatever the angles themselves. The limit is
    at most 0.9 of that difference, and the stop is half-way between.
    """
    r1, r2, length = p.front_rod_m, p.back_rod_m, p.support_length_m
    cosine = (r1 * r1 + r2 * r2 - (1.0 - SINGULAR_MARGIN) * length * length) / (2.0 * r1 * r2)
    singular = float(np.arccos(np.clip(cosine, -1.0, 1.0))) if cosine < 1.0 else 0.0
    limit = min(p.rod_difference_limit_rad, 0.9 * singular)
    return limit, 0.5 * (limit + singular)


def compile_manta(p: MantaParameters, dt: float, coupling: str) -> MantaModel:
    """Return the flat, read-only arrays of a manta; the parameters have been checked already.

    Parameters
    ----------
    p : MantaParameters
        Parameters of the manta.
    dt : float
        Step, s.
    coupling : str
        'sequential', 'iterated' or 'monolithic'.

    Returns
    -------
    MantaModel
        The compiled manta.
    """
    links, station, fin_mass = link_fields(p)
    # an explicit method moves the body with the fins
    euler = p.body_method == "euler" and METHODS[p.integrator].gamma > 0.0
    integrator = list(METHODS).index(p.integrator)
    servo = np.array([
        2.0 * np.pi * p.servo_frequency_hz, p.servo_damping, -p.rod_limit_rad, p.rod_limit_rad,
        p.rod_rate_limit_rad_s, p.rod_acceleration_limit_rad_s2,
    ])  # fmt: skip
    responses = np.zeros(RESPONSES)
    samples = servo_responses(servo[0], servo[1], 0.5 * dt if HALVES[integrator] else dt, responses)
    difference, stop = difference_limits(p)
    body = BODY.make({
        "mass": p.body_mass_kg, "inertia": np.array(p.body_inertia_kg_m2, dtype=float),
        "drag_area": np.multiply(p.body_drag_coefficient, p.body_drag_area_m2),
        # the quadratic laws carry 1/2 rho, the paper's linear one does not
        "moment_coefficient": np.array(p.body_moment_coefficient, dtype=float),
        "buoyancy_centre": np.array(p.buoyancy_centre_m, dtype=float), "weight": p.body_mass_kg * p.gravity_m_s2,
        "density": p.water_density_kg_m3,
        "drag_law": {"norm": DRAG_NORM, "componentwise": DRAG_COMPONENTWISE}[p.body_drag],
        "moment_law": {
            "componentwise": MOMENT_COMPONENTWISE, "norm": MOMENT_NORM, "linear": MOMENT_LINEAR,
        }[p.body_moment],
        "fixed": p.body == "fixed",
    })  # fmt: skip
    finned = lay.FINNED.make({
        "dt": dt, "gamma": METHODS["implicit"].gamma, "support_length": p.support_length_m, "r_front": p.front_rod_m,
        "r_back": p.back_rod_m, "difference": difference, "difference_stop": stop,
        "root": np.array(p.fin_root_m, dtype=float), "current": np.array(p.current_m_s, dtype=float), "servo": servo,
        "tolerance": p.interface_tolerance_m_s2, "relaxation": np.zeros(36),
        "body_matrix": np.diag([p.body_mass_kg] * 3 + list(p.body_inertia_kg_m2)).ravel(),
        "max_iterations": p.interface_passes_max, "roll": {"mean": ROLL_MEAN, "zero": ROLL_ZERO}[p.support_roll],
        "links": p.links, "blocks": lane_count(p.chains) // LANES, "chains": p.chains,
        "actuation": {"servo": SERVO, "ideal": IDEAL}[p.actuation], "coupling": COUPLINGS[coupling],
        "integrator": integrator, "body_method": lay.BODY_EULER if euler else lay.BODY_MATCHED,
        "normal": {"link": lay.NORMAL_LINK, "neighbour": lay.NORMAL_NEIGHBOUR}[p.fin_normal], "samples": samples,
        "responses": responses,
    })  # fmt: skip
    param = np.stack([pack_links(links, station, lost) for lost in (p.left_chains_lost, p.right_chains_lost)])
    param.flags.writeable = False
    return MantaModel(finned, body, param, links, station, fin_mass)


def largest_step(links: np.ndarray, limit: float, tip_speed: float = 1.0) -> float:
    """Return the largest dt at which an explicit method is stable for every chain, straight and with its root at rest.

    Parameters
    ----------
    links : (LINK_FIELDS, m, n) array
        Parameters of the links.
    limit : float
        Bound of |lambda| dt within which the method is stable (rtmms.mechanism.methods).
    tip_speed : float, default 1.0
        Speed of the tip through the water, for the drag's contribution, m/s.

    Returns
    -------
    float
        s.
    """
    length, mass, j_x, _, _, stiffness, drag, added, damping = links
    m, n = length.shape
    worst = 0.0
    for chain in range(n):
        at = np.concatenate([[0.0], np.cumsum(length[:, chain])])
        middle = 0.5 * (at[1:] + at[:-1])
        lever = np.clip(middle[:, None] - at[None, :-1], 0.0, None) * np.tri(m)
        turn = np.tri(m)
        inertia = lever.T @ np.diag(mass[:, chain] + added[:, chain]) @ lever + turn.T @ np.diag(j_x[:, chain]) @ turn
        slope = 2.0 * drag[:, chain] * tip_speed * middle / at[-1]
        c = np.diag(damping[:, chain]) + lever.T @ np.diag(slope) @ lever
        k = np.diag(stiffness[:, chain] / 4.0)
        inverse = np.linalg.inv(inertia)
        a = np.block([[np.zeros((m, m)), np.eye(m)], [-inverse @ k, -inverse @ c]])
        worst = max(worst, float(np.max(np.abs(np.linalg.eigvals(a)))))
    return limit / worst


def check_step(model: MantaModel, dt: float) -> None:
    """Check that an explicit method is stable for the chains at this step.

    Parameters
    ----------
    model : MantaModel
        Compiled manta.
    dt : float
        Step, s.

    Raises
    ------
    ModelError
        The step is too long; the message has the bound.
    """
    name = list(METHODS)[model.finned.integrator]
    limit = STABILITY[name]
    if limit is not None:
        largest = largest_step(model.links, limit)
        if dt > largest:
            raise ModelError(
                f"dt: integrator {name} needs dt <= {largest:.3g} s for these chains, got {dt:g} s; "
                "the implicit integrator has no such limit"
            )


def fins_inertia(model: MantaModel, state: Array, work: Array) -> Array:
    """Return the inertia of both fins on the body at the stage just computed, about the body's mass centre.

    Parameters
    ----------
    model : MantaModel
        Compiled manta.
    state : array
        State of the manta.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.

    Returns
    -------
    (6, 6) array
        kg, kg m, kg m2.
    """
    finned = model.finned
    total = np.zeros((6, 6))
    for f in range(2):
        s = state[SUPPORTS + f * SUPPORT_SIZE :]
        rotation = s[ROTATION : ROTATION + 9].reshape(3, 3)
        x, y, z = finned.root + s[POINT : POINT + 3]
        hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        to_support = np.block([[rotation.T, -rotation.T @ hat], [np.zeros((3, 3)), rotation.T]])
        mirror = np.diag([1.0, 1.0 - 2 * f, 1.0, 1.0 - 2 * f, 1.0, 1.0 - 2 * f])
        inertia = work[W_INERTIA + 36 * f : W_INERTIA + 36 * (f + 1)].reshape(6, 6)
        total += mirror @ to_support.T @ inertia @ to_support @ mirror
    return total


def check_coupling(model: MantaModel, state: Array, work: Array, account: Callable[[float], None]) -> None:
    """Set the iterated coupling's relaxation, and check that a sequential coupling is stable.

    Parameters
    ----------
    model : MantaModel
        Compiled manta.
    state : array
        State of the manta.
    work : array
        Scratch with the offsets W_* of `rtmms.robots.manta.layout`.
    account : Callable[[float], None]
        Function of g, s, that leaves in `work` a stage of the linearly implicit equations over g at the present state.
        For larger g the damped joints act more as locked; 0 for an explicit method.

    Raises
    ------
    ModelError
        The sequential coupling would be unstable; the message has the spectral radius.
    """
    finned = model.finned
    body = finned.body_matrix.reshape(6, 6)
    if finned.coupling == ITERATED:
        current = finned.current.copy()
        finned.current[:] = 0.0  # in still water: a slope of drag is no inertia, however long the step
        account(1e6)  # locked joints: an implicit step of infinite length
        finned.current[:] = current
        locked = fins_inertia(model, state, work)
        finned.relaxation[:] = np.linalg.inv(body + 0.5 * (locked + locked.T)).ravel()
    if finned.coupling == SEQUENTIAL and not model.body.fixed:
        account(float(GAMMAS[finned.integrator] * finned.dt))
        radius = spectral_radius(body, fins_inertia(model, state, work))
        if radius >= 1.0:
            off = "turn added_mass off or " if model.links[ADDED].any() else ""
            raise ModelError(
                "coupling sequential: the fins have too much inertia for this body: the spectral "
                f"radius of (body inertia)^-1 (fin inertia) must be below 1, got {radius:.3g}; use "
                f"coupling iterated or monolithic, or {off}make the body heavier"
            )
