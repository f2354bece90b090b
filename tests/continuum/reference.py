"""The same physics from the equations as they stand: (33) to (36) in the sections' own frames, integrated in X by
scipy's Dormand-Prince method of order 8, the head's acceleration by shooting. It shares the parameters alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp


def hat(v: Any) -> Any:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def ad(x: Any) -> Any:
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = hat(x[3:])
    out[:3, 3:] = hat(x[:3])
    return out


@dataclass
class Tube:
    """An elliptic tube in water: length, half-axes, densities, coefficients c1 .. c7 as the eel's."""

    length: float = 2.08
    a: float = 0.065
    b: float = 0.09
    rho: float = 1000.0
    water: float = 1000.0
    c: tuple[float, ...] = (0.01, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    wake: bool = True

    @property
    def inertia(self) -> Any:
        area, a, b = np.pi * self.a * self.b, self.a, self.b
        i2, i3 = area * b * b / 4.0, area * a * a / 4.0
        return self.rho * np.diag([area, area, area, i2 + i3, i2, i3])

    @property
    def added(self) -> Any:
        a, b, c = self.a, self.b, self.c
        ring = (b * b - a * a) ** 2 / 8.0
        return self.water * np.pi * np.diag([0.0, c[4] * b * b, c[5] * a * a, c[6] * ring, 0.0, 0.0])

    def drag(self, r: Any, w: float) -> Any:
        """(6,) force on the body a metre."""
        a, b, c, half = self.a, self.b, self.c, 0.5 * self.water
        lateral = np.hypot(r[1], r[2])
        return -np.array([
            half * c[0] * np.pi * (a + b) / 2.0 * abs(r[0]) * r[0], half * c[1] * 2.0 * b * lateral * r[1],
            half * c[2] * 2.0 * a * lateral * r[2], half * c[3] * (b * b - a * a) ** 2 * abs(w) * w, 0.0, 0.0,
        ])  # fmt: skip


def march(
    tube: Tube, field: Callable[[float], Any], rotation: Any, twist: Any, acceleration: Any, current: Any, gravity: Any,
    at: Any = None,
) -> Any:  # fmt: skip
    """From the head with f(0) = 0: (k, 31) rows R, p, eta, eta_t, f, power so far, at the points `at`."""
    m, mf = tube.inertia, tube.added
    pull = (tube.rho - tube.water) * np.pi * tube.a * tube.b

    def slope(x: float, y: Any) -> Any:
        r, eta, acc, f = y[:9].reshape(3, 3), y[12:18], y[18:24], y[24:30]
        xi, xi_t, xi_tt = field(x)
        u = r.T @ current
        er = eta.copy()
        er[:3] -= u
        relative = acc.copy()
        relative[:3] += np.cross(eta[3:], u)  # the rate of V - R^T U
        fluid = -(mf @ relative - ad(er).T @ (mf @ er)) + tube.drag(er[:3], eta[3])
        fluid[:3] += pull * (r.T @ gravity)
        df = ad(xi).T @ f + m @ acc - ad(eta).T @ (m @ eta) - fluid
        return np.concatenate([
            (r @ hat(xi[3:])).ravel(), r @ xi[:3], -ad(xi) @ eta + xi_t, -ad(xi) @ acc - ad(xi_t) @ eta + xi_tt, df,
            [-f @ xi_t],
        ])  # fmt: skip

    start = np.concatenate([rotation.ravel(), np.zeros(3), twist, acceleration, np.zeros(7)])
    stops = np.array([0.0, tube.length]) if at is None else np.asarray(at)
    result = solve_ivp(slope, (0.0, tube.length), start, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=stops)
    return result.y.T


def tail_force(tube: Tube, end: Any, current: Any) -> Any:
    """(6,) at the tail, corrected."""
    r, eta = end[:9].reshape(3, 3), end[12:18].copy()
    eta[:3] -= r.T @ current
    if not tube.wake or eta[0] > 0.0:
        return np.zeros(6)
    p = tube.added @ eta
    out = p * eta[0]
    out[0] -= 0.5 * eta @ p
    return out


def solve(tube: Tube, field: Any, rotation: Any, twist: Any, current: Any, gravity: Any) -> Any:
    """The head's acceleration (6,), by shooting: f(l) - F_tail is affine in it."""

    def residual(acceleration: Any) -> Any:
        end = march(tube, field, rotation, twist, acceleration, current, gravity)[-1]
        return end[24:30] - tail_force(tube, end, current)

    remaining = residual(np.zeros(6))
    matrix = np.array([residual(e) - remaining for e in np.eye(6)]).T
    return np.linalg.solve(matrix, -remaining)
