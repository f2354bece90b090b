"""Where the energy of a tree in a fluid goes, term by term (see rtmms.fluids.energy_terms); of trees that ask for it.

d/dt (kinetic + elastic + fluid + gravity) = actuators' + flow + wake + drag + damping power, exactly, at every state.
"""

from __future__ import annotations

from typing import Any

from rtmms.fluids.ambient import SAMPLE
from rtmms.fluids.energy_terms import DAMPERS, DRAG, FLOW, HELD, SPRINGS, TERMS, WAKE, energy_terms
from rtmms.jit import kernel
from rtmms.mechanism.body_actuators import spin_energy
from rtmms.mechanism.tendons import tendon_energy, tendon_loss
from rtmms.model.layout import C_COULOMB, C_DAMPING, C_RIGID, C_ROTOR, S_TWIST
from rtmms.spatial import times

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
