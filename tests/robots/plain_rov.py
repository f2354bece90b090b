"""The BlueROV2 in plain Python, after Fossen (2021), equation 6.1: NED, body axes forward, right, down, Euler's angles.

    M nu' + C(nu) nu + D(nu) nu + g(eta) = tau,  eta' = J(eta) nu

It is written from the equations and shares only the parameters with the package. C is Fossen's parametrisation by M
(theorem 3.2). scipy integrates it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

Array = np.ndarray
AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
LINEAR = ("n_s_m",) * 3 + ("n_m_s",) * 3
QUADRATIC = ("kg_m",) * 3 + ("kg_m2",) * 3
ADDED = ("kg",) * 3 + ("kg_m2",) * 3


def cross_matrix(v: Array) -> Array:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def rotation(phi: float, theta: float, psi: float) -> Array:
    """Body to NED, Fossen (2.31)."""
    cphi, sphi, cth, sth, cpsi, spsi = (f(a) for a in (phi, theta, psi) for f in (np.cos, np.sin))
    return np.array([
        [cpsi * cth, -spsi * cphi + cpsi * sth * sphi, spsi * sphi + cpsi * cphi * sth],
        [spsi * cth, cpsi * cphi + sphi * sth * spsi, -cpsi * sphi + sth * spsi * cphi],
        [-sth, cth * sphi, cth * cphi],
    ])  # fmt: skip


def rates(phi: float, theta: float) -> Array:
    """Body rates to rates of Euler's angles, Fossen (2.41)."""
    return np.array([
        [1.0, np.sin(phi) * np.tan(theta), np.cos(phi) * np.tan(theta)], [0.0, np.cos(phi), -np.sin(phi)],
        [0.0, np.sin(phi) / np.cos(theta), np.cos(phi) / np.cos(theta)],
    ])  # fmt: skip


class PlainRov:
    """p: parameters by name."""

    def __init__(self, p: dict[str, Any]) -> None:
        def diagonal(kind: str, units: tuple[str, ...]) -> Array:
            return np.array([p[f"{kind}_{axis}_{unit}"] for axis, unit in zip(AXES, units, strict=True)])

        inertia = [p["mass_kg"]] * 3 + [p[f"i{axis}{axis}_kg_m2"] for axis in "xyz"]
        self.mass = np.diag(np.array(inertia) + diagonal("added", ADDED))
        self.linear, self.quadratic = diagonal("linear", LINEAR), diagonal("quadratic", QUADRATIC)
        self.weight = p["mass_kg"] * p["gravity_m_s2"]
        self.buoyancy = (p["mass_kg"] + p["net_buoyancy_kg"]) * p["gravity_m_s2"]
        self.centre = np.array([0.0, 0.0, -p["buoyancy_above_m"]])

    def coriolis(self, nu: Array) -> Array:
        m, out = self.mass, np.zeros((6, 6))
        out[:3, 3:] = out[3:, :3] = -cross_matrix(m[:3] @ nu)
        out[3:, 3:] = -cross_matrix(m[3:] @ nu)
        return out

    def damping(self, nu: Array) -> Array:
        return (self.linear + self.quadratic * np.abs(nu)) * nu

    def restoring(self, phi: float, theta: float) -> Array:
        """-g(eta), of weight at the origin and buoyancy at `centre`."""
        down = rotation(phi, theta, 0.0).T @ np.array([0.0, 0.0, 1.0])
        lift = -self.buoyancy * down
        return np.concatenate([self.weight * down + lift, np.cross(self.centre, lift)])

    def rate(self, eta: Array, nu: Array, tau: Array) -> Array:
        phi, theta, psi = eta[3:]
        force = tau + self.restoring(phi, theta) - self.coriolis(nu) @ nu - self.damping(nu)
        return np.concatenate(
            [rotation(phi, theta, psi) @ nu[:3], rates(phi, theta) @ nu[3:], np.linalg.solve(self.mass, force)]
        )

    def run(self, eta: Array, nu: Array, tau: Callable[[float], Array], seconds: float) -> tuple[Array, Array]:
        """(eta, nu) after so many seconds."""
        end = solve_ivp(
            lambda t, x: self.rate(x[:6], x[6:], tau(t)), (0.0, seconds), np.concatenate([eta, nu]), method="DOP853",
            rtol=1e-10, atol=1e-12, max_step=0.05,
        ).y[:, -1]  # fmt: skip
        return end[:6], end[6:]


FLIP = np.array([1.0, -1.0, -1.0])
"""Forward, left, up from forward, right, down; the same turns NED into a world with z up."""


def to_frd(v: Array) -> Array:
    """(6,) of linear and angular parts, from one frame to the other; its own inverse."""
    return np.concatenate([FLIP, FLIP]) * v
