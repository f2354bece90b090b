"""Compute the motion of a gait where dynamics decides it: contacts leave some of the base's twist free.

Notes
-----
A eta + B rd = 0 and H^T (M eta' + M_r rdd + bias) = 0 along a given shape (Boyer and Porez 2015, eqs 19 and 20).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.dynamics.ground import ground_dynamics
from rtmms.dynamics.inertia import mass_matrix
from rtmms.locomotion.paths import Path
from rtmms.locomotion.reconstruction import Motion, check_path, is_closed
from rtmms.locomotion.reduced_dynamics import rows
from rtmms.model.compiled import Model
from rtmms.model.ground_rank import RANK
from rtmms.model.layout import BASE_FREE, T_IMPOSED

POSE = slice(0, 7)
TWIST = slice(7, 13)
HEADING = 13
SIZE = 14
DIFFERENCE_S = 1e-3
"""Interval of the differences of the rate, to sixth order, s."""
ERROR = 1e-11


def travel(model: Model, path: Any, cycles: int = 1, steps: int = 256) -> Motion:
    """Compute the motion of some cycles of a path from eta(0) = 0, or the nearest twist that the contacts allow.

    At a corner of the path the rates jump: the momentum along the free motions persists.

    Parameters
    ----------
    model : Model
        Model with contacts; its joints' motion is given, independent of their drives in the description.
    path : Path, array_like or callable
        Path of all joints, see `Path.of`.
    cycles : int, default 1
        Number of cycles.
    steps : int, default 256
        Steps of each smooth piece, at which the motion is returned; the integrator's own steps follow their error.

    Returns
    -------
    Motion
        The motion. `work` is the actuators' positive work, J; `cost` the integral of the power's size, J; `effort`
        their power, W.

    Raises
    ------
    ModelError
        The path is wrong, or the contacts contradict the shape's motion.
    """
    from scipy.integrate import solve_ivp  # type: ignore[attr-defined]

    route = Path.of(path)
    check_path(model, route)
    if not len(model.ground.rows):
        raise ModelError(f"{model.name}: travel: expected contacts (Mechanism.contacts), got none")
    if cycles > 1 and not is_closed(model, route):
        raise ModelError(
            f"{model.name}: expected a closed path for {cycles} cycles, got one that ends elsewhere than it begins"
        )
    item = _PathDynamics(model, route)
    y, samples = np.zeros(SIZE), []
    y[3] = 1.0
    rate = route.motion(np.array([route.breaks[0]]))[1][0]
    y[TWIST] = item.nearest(route.ends[0], rate)
    for cycle in range(cycles):
        for a, b in zip(route.breaks[:-1], route.breaks[1:], strict=True):
            item.piece = (a, b)
            first = item.shape(a)
            y = y.copy()
            y[TWIST] = item.jumped(y[TWIST], first[0], rate, first[1])
            t = np.linspace(a, b, steps + 1)
            done = solve_ivp(item.rates, (a, b), y, "DOP853", t, rtol=ERROR, atol=ERROR)
            if not done.success:
                raise ModelError(
                    f"{model.name}: the motion along the path cannot be integrated beyond t = "
                    f"{done.t[-1]:.6g} s; the mechanism may be singular there"
                )
            samples.append((cycle * route.duration, t, done.y.T))
            y, rate = done.y[:, -1], item.shape(b)[1]
    return item.motion(samples, cycles)


class _PathDynamics:
    """Equations of motion along a path, in one of its smooth pieces (start, end).

    Parameters
    ----------
    model : Model
        Model with contacts.
    way : Path
        The path.
    """

    def __init__(self, model: Model, path: Path) -> None:
        """Let the path drive all joints of the model."""
        topology = model.topology.copy()
        topology[1:, T_IMPOSED] = 1  # all joints by their motion
        topology.flags.writeable = False
        self.model, self.path, self.piece = replace(model, topology=topology), path, path.breaks[:2]

    def shape(self, t: float) -> tuple[Array, Array, Array]:
        """Return shape, rate and acceleration, of this piece alone.

        Parameters
        ----------
        t : float
            s.

        Returns
        -------
        (array, array, array)
            (p,) each.
        """
        a, b = self.piece
        inside = b - 1e-9 * (b - a)
        h = min(DIFFERENCE_S, (inside - a) / 8.0)
        now = min(max(t, a), inside)
        near = min(max(now - 3.0 * h, a), inside - 6.0 * h) + h * np.arange(7)
        r, rd = self.path.motion(np.array([now, *near]))
        x = (near - now) / h
        weights = np.linalg.solve(np.vander(x, increasing=True).T, np.eye(7)[1]) / h
        return r[0], rd[0], weights @ rd[1:]

    def state(self, y: Array, r: Array, rd: Array) -> Any:
        """Return the state of the model.

        Parameters
        ----------
        y : (14,) array
            Pose, twist and heading.
        r, rd : (p,) array
            Shape and rate.

        Returns
        -------
        Any
            State of the model.
        """
        state = self.model.state()
        state.q, state.qd = r.copy(), rd.copy()
        state.orientation, state.twist = y[3:7].copy(), y[TWIST].copy()
        return state

    def rates(self, t: float, y: Array) -> Array:
        """Return the derivative of pose, twist and heading.

        Parameters
        ----------
        t : float
            s.
        y : (14,) array
            Pose, twist and heading.

        Returns
        -------
        (14,) array
            Derivative of y.
        """
        r, rd, rdd = self.shape(t)
        out = np.zeros(SIZE)
        out[:3] = quaternion_matrix(y[3:7]) @ y[7:10]
        w, x, q, z = y[3:7]
        a, b, c = 0.5 * y[10:13]
        out[3:7] = -x * a - q * b - z * c, w * a + q * c - z * b, w * b + z * a - x * c, w * c + x * b - q * a
        out[TWIST] = ground_dynamics(self.model, self.state(y, r, rd), rdd).base_acceleration
        out[HEADING] = y[12]
        return out

    def nearest(self, r: Array, rd: Array) -> Array:
        """Return the smallest twist that the contacts allow, -A^+ B rd.

        Parameters
        ----------
        r, rd : (p,) array
            Shape and rate.

        Returns
        -------
        (6,) array
            Twist of the base.

        Raises
        ------
        ModelError
            The contacts contradict the rates.
        """
        a, b = rows(self.model, r)
        out = np.asarray(-np.linalg.lstsq(a, b @ rd, rcond=RANK)[0], dtype=float)
        if np.abs(a @ out + b @ rd).max() > 1e-8 * max(np.abs(b @ rd).max(), 1e-6):
            raise ModelError(
                f"{self.model.name}: the contacts contradict the shape's motion, whose rates are {rd}; move "
                "the joints by rates that the contacts allow"
            )
        return out

    def jumped(self, twist: Array, r: Array, before: Array, after: Array) -> Array:
        """Return the twist after the rates have jumped: the contacts hold again, and H^T (M eta + M_r rd) persists.

        Parameters
        ----------
        twist : (6,) array
            Twist before.
        r : (p,) array
            Shape.
        before, after : (p,) array
            Rates before and after.

        Returns
        -------
        (6,) array
            Twist after.
        """
        if np.array_equal(before, after):
            return twist
        a, _ = rows(self.model, r)
        state = self.state(np.concatenate([np.zeros(3), [1.0, 0.0, 0.0, 0.0], twist, [0.0]]), r, after)
        whole = mass_matrix(replace(self.model, base_mode=BASE_FREE), state)
        _, s, v = np.linalg.svd(a)
        free = v[int(np.sum(s > RANK * s[0])) :].T
        particular = self.nearest(r, after)
        if not free.shape[1]:
            return particular
        momentum = whole[:6, :6] @ (twist - particular) - whole[:6, 6:] @ (after - before)
        out: Array = particular + free @ np.linalg.solve(free.T @ whole[:6, :6] @ free, free.T @ momentum)
        return out

    def motion(self, samples: list[tuple[float, Array, Array]], cycles: int) -> Motion:
        """Join all pieces, one after the other.

        Parameters
        ----------
        samples : list[tuple[float, array, array]]
            Start, times (k,) and states (k, 14) of each piece.
        cycles : int
            Number of cycles.

        Returns
        -------
        Motion
            The motion.
        """
        shape, rate, power = [], [], []
        work = cost = 0.0
        for k, (_, t, y) in enumerate(samples):
            pieces = len(self.path.breaks) - 1
            self.piece = (self.path.breaks[k % pieces], self.path.breaks[k % pieces + 1])
            powers = []
            for now, row in zip(t, y, strict=True):
                r, rd, rdd = self.shape(now)
                torque = ground_dynamics(self.model, self.state(row, r, rd), rdd).torque
                shape.append(r)
                rate.append(rd)
                powers.append(float(torque @ rd))
            power += powers
            work += float(np.trapezoid(np.maximum(powers, 0.0), t))
            cost += float(np.trapezoid(np.abs(powers), t))
        states = np.concatenate([y for _, _, y in samples])
        pose = states[:, POSE].copy()
        pose[:, 3:] /= np.sqrt(np.sum(pose[:, 3:] ** 2, axis=1))[:, None]
        return Motion(
            np.concatenate([start + t - self.path.breaks[0] for start, t, _ in samples]),
            np.array(shape), np.array(rate),
            pose, states[:, HEADING], states[:, TWIST], np.array(power), work, cost, True, "Power of the joints, W",
        )  # fmt: skip
