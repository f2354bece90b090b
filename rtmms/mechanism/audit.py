"""The energy of a tree in a fluid, term by term; motion of joints that no stage of a method sees."""

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

# Where the energy of a tree in a fluid goes, term by term (see rtmms.fluids.immersed); of trees that ask for it.
#
# d/dt (kinetic + elastic + fluid + gravity) = actuators' + flow + wake + drag + damping power, exactly, at every state.


A_KINETIC, A_ELASTIC, A_FLUID, A_FLOW, A_WAKE, A_DRAG, A_DAMPING = range(7)
AUDIT = 7
"""J in bodies and rotors, in springs, in the fluid; W from the flow, to the wake, to drag, to dampers (those < 0)."""
WORKS = ("flow", "wake", "drag", "damping")
"""What their powers come to over a run is kept, in this order, behind the joints' work."""
SPENT = 5
"""Numbers of work of a tree that is audited; what tendons lose stands behind them, or behind the work of one that is
not. As many stand there twice more for what extrapolation keeps apart."""


@kernel
def damping_power(constant: Any, qd: Any) -> Any:
    """W (<= 0) of dampers and friction in joints."""
    power = 0.0
    for j in range(qd.shape[0]):
        c, size = constant[j + 1, C_DAMPING], abs(qd[j])
        power -= c * size * size + constant[j + 1, C_COULOMB] * size
    return power


@kernel
def terms_of(system: Any) -> Any:
    """(TERMS,) of the evaluation just made, in room that the flow's samples have."""
    out = system.fluid.ambient[0, SAMPLE : SAMPLE + TERMS]
    energy_terms(system.fluid, system.work.s, out)
    return out


@kernel
def audit(system: Any, elastic: float, out: Any) -> None:
    """out (AUDIT,) of the evaluation just made, joints' springs holding `elastic` J."""
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
    """Add the powers of WORKS at the evaluation just made, times h, behind spent[0]."""
    terms = terms_of(system)
    spent[1] += h * terms[FLOW]
    spent[2] += h * terms[WAKE]
    spent[3] += h * terms[DRAG]
    spent[4] += h * (terms[DAMPERS] + damping_power(system.tree.constant, system.work.qd))


# What a method does not see of the motion that joints are given.
#
# An imposed joint stands at each step's end where its law has it, exactly, whatever happened in between. The bodies and
# the work meet that motion only at the method's stages, t + c_i h, with weights b_i: a filter that settles between two
# of
# them moves the joint and is in no stage. Half steps may miss it just as well, so it is found from the law itself,
#
#     Delta q - h sum_i b_i qd(t + c_i h)


def nodes(method: Method, substeps: int) -> tuple[Array, Array]:
    """(times, weights) (k,) of a whole step's stages, in steps: extrapolation and substeps included; the weights that
    the work is summed with."""
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
    """(n, k) rad/s at times start + since: the rates of `joint_laws.reference`, of all joints.

    law     a record of joint_laws.LAW;  servo (n, 4), target (n, 2): at start
    slew, goal  (n,) how fast targets go, and where to: see joint_laws.HOLD; None where they go at once
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
            offset[j] = [one[1] for one in moved]
    gain = 1.0 + value[:, 1]
    return np.asarray(rate[:, 1] * f * wave + gain * (fd * wave + f * turning) + offset)
