"""Compute the energy balance of a tree in a fluid, and prescribed motion that no stage of a method evaluates.

For trees with `audited`, d/dt (kinetic + elastic + fluid + gravity) = actuators' + flow + wake + drag + damping power,
exactly, at every state (see rtmms.fluids.immersed).

An imposed joint is at each step's end where its law has it, exactly, whatever happened in between. The bodies and the
work depend on that motion only at the method's stages, t + c_i h, with weights b_i. A filter that settles between two
of them moves the joint and is in no stage. Half steps may miss it just as well, so it is computed from the law itself,

    Delta q - h sum_i b_i qd(t + c_i h)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, times
from rtmms.fluids.ambient import SAMPLE
from rtmms.fluids.immersed import DAMPERS, DRAG, FLOW, HELD, SPRINGS, TERMS, WAKE, energy_terms
from rtmms.mechanism.body_actuators import spin_energy
from rtmms.mechanism.joint_laws import slewed
from rtmms.mechanism.methods import Method
from rtmms.mechanism.tendons import tendon_energy, tendon_loss
from rtmms.model.layout import C_COULOMB, C_DAMPING, C_RIGID, C_ROTOR, S_TWIST

A_KINETIC, A_ELASTIC, A_FLUID, A_FLOW, A_WAKE, A_DRAG, A_DAMPING = range(7)
AUDIT = 7
"""Terms: energy (J) of bodies and rotors, springs, fluid; power (W) from the flow, to wake, drag and dampers."""
WORKS = ("flow", "wake", "drag", "damping")
"""Terms whose powers are integrated over a run, in this order, behind the joints' work."""
SPENT = 5
"""Numbers of work of an audited tree.

The losses of tendons are behind them, or behind the work of a tree without audit. Twice as many further places hold the
intermediate sums of extrapolation.
"""


@kernel
def damping_power(constant: Any, qd: Any) -> Any:
    """Return the power of dampers and friction in joints.

    Parameters
    ----------
    constant : (rows, C_WIDTH) array
        Constants of the model.
    qd : (n,) array
        Joint rates, rad/s or m/s.

    Returns
    -------
    float
        W, <= 0.
    """
    power = 0.0
    for j in range(qd.shape[0]):
        c, size = constant[j + 1, C_DAMPING], abs(qd[j])
        power -= c * size * size + constant[j + 1, C_COULOMB] * size
    return power


@kernel
def terms_of(system: Any) -> Any:
    """Return the energy terms of the evaluation just made, in scratch that the flow's samples use.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.

    Returns
    -------
    (TERMS,) array
        See `rtmms.fluids.immersed.energy_terms`.
    """
    out = system.fluid.ambient[0, SAMPLE : SAMPLE + TERMS]
    energy_terms(system.fluid, system.work.s, out)
    return out


@kernel
def audit(system: Any, elastic: float, out: Any) -> None:
    """Write the energy terms of the evaluation just made.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    elastic : float
        Energy in the joints' springs, J.
    out : (AUDIT,) array
        Terms A_*, J and W.
    """
    constant, s, qd = system.tree.constant, system.work.s, system.work.qd
    terms = terms_of(system)
    kinetic = 0.0
    for j in range(s.shape[0]):
        a, b, c = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
        d, e, f = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        p0, p1, p2, p3, p4, p5 = times(constant, j, C_RIGID, a, b, c, d, e, f)
        kinetic += 0.5 * (p0 * a + p1 * b + p2 * c + p3 * d + p4 * e + p5 * f)
    for j in range(qd.shape[0]):
        kinetic += 0.5 * constant[j + 1, C_ROTOR] * qd[j] * qd[j]
    kinetic += spin_energy(system.pushes, system.pushes.momentum, s)
    out[A_KINETIC], out[A_FLUID] = kinetic, terms[HELD]
    out[A_ELASTIC] = elastic + terms[SPRINGS] + tendon_energy(system.tendons)
    out[A_FLOW], out[A_WAKE], out[A_DRAG] = terms[FLOW], terms[WAKE], terms[DRAG]
    out[A_DAMPING] = terms[DAMPERS] + damping_power(constant, qd) - tendon_loss(system.tendons)


@kernel
def spend_terms(system: Any, h: float, spent: Any) -> None:
    """Add the powers of WORKS at the evaluation just made, times h, behind spent[0].

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    h : float
        Weighted length of the step, s.
    spent : (k,) array
        Sums of work, J.
    """
    terms = terms_of(system)
    spent[1] += h * terms[FLOW]
    spent[2] += h * terms[WAKE]
    spent[3] += h * terms[DRAG]
    spent[4] += h * (terms[DAMPERS] + damping_power(system.tree.constant, system.work.qd))


def nodes(method: Method, substeps: int) -> tuple[Array, Array]:
    """Return the times and weights of a whole step's stages, with extrapolation and substeps.

    Parameters
    ----------
    method : Method
        Method of the step.
    substeps : int
        Number of method steps in a plant's step.

    Returns
    -------
    (array, array)
        Times (k,), in steps, and the weights (k,) with which the work is summed.
    """
    times: dict[float, float] = {}
    tableau = method.tableau
    c, b = (0.0, 1.0) if method.multistep else tableau.c, (0.5, 0.5) if method.multistep else tableau.b
    over = 1.0 if method.multistep else tableau.over
    for parts, mix in zip(method.parts, method.mix, strict=True):
        count = parts * substeps
        for part in range(count):
            for node, weight in zip(c, b, strict=True):
                at = (part + node) / count
                times[at] = times.get(at, 0.0) + mix * weight / over / count
    return np.array(list(times)), np.array(list(times.values()))


def given_rates(
    law: Any, servo: Array, target: Array, bandwidth: Array, start: float, since: Array,
    slew: Array | None = None, goal: Array | None = None,
) -> Array:  # fmt: skip
    """Return the rates of `joint_laws.reference` of all joints at several times.

    Parameters
    ----------
    law : Record
        Record of `joint_laws.LAW`.
    servo : (n, 4) array
        Filter states at `start`.
    target : (n, 2) array
        Targets at `start`.
    bandwidth : (n,) array
        rad/s; negative for commanded rates.
    start : float
        Time at which the step begins, s.
    since : (k,) array
        Times after `start`, s.
    slew, goal : (n,) array, optional
        Rates and ends of targets that move at a limited rate (joint_laws.HOLD); None for none.

    Returns
    -------
    (n, k) array
        rad/s or m/s.
    """
    motion, omega, length = law.motion, law.omega, law.ramp
    time = start + since
    x = np.clip(time / length, 0.0, 1.0) if length > 0.0 else np.ones_like(time)
    f = x**3 * (10.0 + x * (6.0 * x - 15.0))
    fd = 30.0 * (x * (1.0 - x)) ** 2 / length if length > 0.0 else np.zeros_like(time)
    c, s = np.cos(omega * time), np.sin(omega * time)
    wave = motion[:, :1] + motion[:, 1:2] * c + motion[:, 2:3] * s
    turning = omega * (motion[:, 2:3] * c - motion[:, 1:2] * s)
    w = np.abs(bandwidth)[:, None]
    e = np.exp(-w * since)
    a = servo[:, 0:3:2, None] - target[:, :, None]  # of offset and gain: settle()
    b = servo[:, 1:4:2, None] + w[:, None] * a
    led = a + b * since
    value, rate = target[:, :, None] + led * e[:, None], (b - w[:, None] * led) * e[:, None]
    coasting = target[:, :1] + (servo[:, 1:2] - target[:, :1]) * e
    offset = np.where(bandwidth[:, None] < 0.0, coasting, rate[:, 0])
    if slew is not None and goal is not None:
        for j in np.flatnonzero(np.isfinite(slew)):
            moved = [slewed(servo[j, 0], servo[j, 1], target[j, 0], goal[j], slew[j], bandwidth[j], t) for t in since]
            offset[j] = [item[1] for item in moved]
    gain = 1.0 + value[:, 1]
    return np.asarray(rate[:, 1] * f * wave + gain * (fd * wave + f * turning) + offset)
