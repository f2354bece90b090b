"""Plan on the linear model of half strokes of a flapping robot."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.stages import Motion, Stages
from rtmms.base.errors import ModelError
from rtmms.base.spatial import heading, quaternion_matrix, quaternion_product
from rtmms.planning.box_qp import box_step
from rtmms.planning.planner import Plan
from rtmms.plant.coordinates import coordinates_between
from rtmms.plant.optional_protocols import Coordinates

Array = npt.NDArray[np.float64]


# The linear model of a flapping robot about its hovering orbit, from half stroke to half stroke.
#
#     x[k + 1] = A_p x[k] + B_before u[k - 1] + B_between u[k] + B_after u[k + 1] + W_p w,   p = k mod 2
#
# x is the whole state (pose, twist, joints, filters) less that of the orbit at the same phase, w a uniform wind. The
# commands go in straight lines from knot to knot; knots u stand in the middle of the half strokes, so that each half
# stroke sees three of them. Its slopes are those of two stages of a quarter of a stroke (rtmms.analysis.stages), the
# wind's central differences.


WIND_M_S = 0.02
"""Wind of the differences, m/s."""
MAX_CLOSING_ERROR = 1e-6
"""Largest closing error of the orbit after a stroke, of a coordinate's size."""
WINDS = ("wind_x_m_s", "wind_y_m_s", "wind_z_m_s")


@dataclass(frozen=True)
class HalfStroke:
    """Linear model of half a stroke.

    Attributes
    ----------
    a : Array
        (k, k) by the state.
    before, between, after : Array
        (k, n) by the knots before, in the middle of, and after the half stroke.
    wind : Array
        (k, 3) by the wind.
    """

    a: Array
    before: Array
    between: Array
    after: Array
    wind: Array


@dataclass(frozen=True)
class StrokeMap:
    """Linear models of a stroke about a hovering orbit.

    Attributes
    ----------
    halves : tuple[HalfStroke, HalfStroke]
        Both half strokes, the one from the reset's phase first.
    orbit : tuple[Array, Array]
        State of the orbit at the beginning of each, as a Fork has it.
    coordinates : Coordinates
        Coordinates of a state.
    steps : int
        Steps of the model, of each half stroke.
    """

    halves: tuple[HalfStroke, HalfStroke]
    orbit: tuple[Array, Array]
    coordinates: Coordinates
    steps: int

    def off(self, phase: int, state: Array, yaw: float, place: Array) -> Array:
        """Return the coordinates x of a state, relative to a heading and a place.

        Parameters
        ----------
        phase : int
            Half stroke, 0 or 1.
        state : Array
            (w,) as a Fork has it.
        yaw : float
            Heading, rad.
        place : Array
            (3,) place, m, world.

        Returns
        -------
        Array
            (k,).
        """
        coordinates, origin, turned_state = self.coordinates, self.orbit[phase], state.copy()
        p = coordinates.pose
        c, s = math.cos(yaw), math.sin(yaw)
        away = state[p : p + 3] - place
        turned_state[p : p + 3] = c * away[0] + s * away[1], c * away[1] - s * away[0], away[2]
        turned_state[p : p + 3] += self.orbit[0][p : p + 3]
        turned_state[p + 3 : p + 7] = turned(state[p + 3 : p + 7], -yaw)
        return coordinates_between(coordinates, origin, turned_state)

    def after(self, phase: int, x: Array, knots: Array) -> Array:
        """Return x after a half stroke, in still air.

        Parameters
        ----------
        phase : int
            Half stroke, 0 or 1.
        x : Array
            (k,) before it.
        knots : Array
            (3, n): before, between, after.

        Returns
        -------
        Array
            (k,).
        """
        half = self.halves[phase]
        result: Array = half.a @ x + half.before @ knots[0] + half.between @ knots[1] + half.after @ knots[2]
        return result

    def yaw(self, phase: int, state: Array) -> float:
        """Return the heading of a state against the orbit, positive to the left.

        Parameters
        ----------
        phase : int
            Half stroke, 0 or 1.
        state : Array
            (w,) as a Fork has it.

        Returns
        -------
        float
            rad.
        """
        q = slice(self.coordinates.pose + 3, self.coordinates.pose + 7)
        return math.remainder(float(np.subtract(*heading(np.array([state[q], self.orbit[phase][q]])))), math.tau)


def stroke_map(model: Any, steps: int) -> StrokeMap:
    """Compute the linear models about the state of the model at a reset, which must be on a periodic orbit.

    The model is at its reset afterwards.

    Parameters
    ----------
    model : Any
        Plant of a mechanism with a wind among its parameters.
    steps : int
        Steps of half a stroke, an even number.

    Returns
    -------
    StrokeMap
        The models.

    Raises
    ------
    ModelError
        The state after a stroke differs, or a step fails.
    """
    model.reset()
    coordinates: Coordinates = model.coordinates()
    n = len(model.actuators)
    zero = np.zeros((3, n))
    states = [model.present()[0]]
    for _ in range(2):
        for command in lines(zero, steps):
            model.step(command)
        states.append(model.present()[0])
    off = np.abs(coordinates_between(coordinates, states[0], states[2]) / coordinates.size).max()
    if not off < MAX_CLOSING_ERROR:
        raise ModelError(
            "method linear: expected a model in the same state after each stroke, to "
            f"{MAX_CLOSING_ERROR:g}, got a difference of {off:.2g}; change the moth's parameters, "
            "or use another method"
        )
    quarters = Stages(model, steps // 2)
    motion = quarters.roll(np.zeros((5, n)))
    slopes = quarters.slopes(motion)
    winds = [_blown(model, quarters, motion, name) for name in WINDS]
    quarters.close()
    if slopes is None:
        raise ModelError("stroke map: a step fails close to the orbit; use another method")
    halves = []
    for phase in range(2):
        i, j = 2 * phase, 2 * phase + 1
        # q0 = (before + between) / 2 at its beginning, between in its middle, q2 = (between + after) / 2 at its end
        by_first, by_last = slopes.a[j] @ slopes.before[i], slopes.at_end[j]
        by_middle = slopes.a[j] @ slopes.at_end[i] + slopes.before[j]
        wind = np.stack([ends[phase] for ends in winds], axis=1)
        between_both = 0.5 * by_first + by_middle + 0.5 * by_last
        halves.append(HalfStroke(slopes.a[j] @ slopes.a[i], 0.5 * by_first, between_both, 0.5 * by_last, wind))
    model.reset()
    return StrokeMap((halves[0], halves[1]), (states[0], states[1]), coordinates, steps)


def _blown(model: Any, quarters: Stages, calm: Motion, name: str) -> list[Array]:
    """Return the change (k,) of x at the end of each half stroke by that wind."""
    coordinates: Coordinates = model.coordinates()
    ends: list[list[Array]] = []
    for w in (WIND_M_S, -WIND_M_S):
        model.set(**{name: w})
        quarters.follow()
        ends.append([])
        for phase in range(2):
            model.put(calm.states[2 * phase].copy(), 2 * phase * quarters.steps)
            result = quarters.roll(np.zeros((3, len(model.actuators))))
            ends[-1].append(coordinates_between(coordinates, calm.states[2 * phase + 2], result.states[2]))
    model.set(**{name: 0.0})
    model.reset()
    return [(up - down) / (2.0 * WIND_M_S) for up, down in zip(*ends, strict=True)]


def lines(knots: Array, steps: int) -> Array:
    """Return the commands of half a stroke, each at the end of its step, from three knots.

    Parameters
    ----------
    knots : Array
        (3, n): in the middle of the half stroke before, of this one, and of the next.
    steps : int
        Steps of half a stroke.

    Returns
    -------
    Array
        (steps, n).
    """
    part = np.arange(1, steps + 1) / steps
    at = (part + 0.5)[:, None]
    rising = knots[0] + (knots[1] - knots[0]) * at
    falling = knots[1] + (knots[2] - knots[1]) * (at - 1.0)
    result: Array = np.where(part[:, None] <= 0.5, rising, falling)
    return result


def turned(q: Array, angle: float) -> Array:
    """Turn a quaternion about the vertical.

    Parameters
    ----------
    q : Array
        (4,) quaternion.
    angle : float
        Angle, rad.

    Returns
    -------
    Array
        (4,).
    """
    return quaternion_product(np.array([math.cos(0.5 * angle), 0.0, 0.0, math.sin(0.5 * angle)]), q)


# A plan on the linear model of half strokes: a quadratic cost, limits of the commands, a wind that is believed.
#
#     min  sum_j |x_j - xs|_Q^2 + |u_j - us|_R^2 + |u_j+1 - u_j|_C^2  +  |z_N - zs|_V^2,   lower <= u <= upper
#
# z = (x, u_before, u_next). (xs, us) is how the robot stays at the place in that wind: the periodic solution with the
# least knots. V solves the periodic Riccati equation, so that without limits the plan is that of an infinite horizon.
# The states are eliminated; what is left is a quadratic programme in a box (box_qp.py) over all knots.
#
# Rawlings, Mayne and Diehl, Model Predictive Control, 2nd ed., 2017, 1.3 (limits), 1.5 (no offset under disturbances).


MAX_HALF_STROKES = 4000
"""Half strokes of the Riccati recursion."""
MIN_CHANGE = 1e-9
"""Relative change of V over a stroke at which the recursion ends."""
MAX_DISTANCE_M = 0.15
"""Distance beyond which the linear model does not hold, m."""
MAX_TURN_RAD = 0.4
"""Heading error beyond which the linear model does not hold, rad."""
TWIST = slice(6, 12)
WIND_SHARE = 0.7
"""Share of a half stroke's evidence of the wind that the observer adopts at once."""
ERROR_SHARE = 0.1
"""Share of a half stroke's evidence of the remaining error that the observer adopts at once."""
_RATE = 0.02
"""Weight of an angular velocity against a velocity in the wind's estimate, s."""
_KEEP_COST_SCALE = 1e-2
"""Weight of a knot against a coordinate, in the least solution for staying."""


@dataclass(frozen=True)
class Weights:
    """Size that counts as one in the cost.

    Attributes
    ----------
    position : float, default 0.05
        Position, m.
    tilt, yaw : float
        Angles, rad.
    velocity : float, default 0.5
        Velocity, m/s.
    rate : float, default 20.0
        Angular velocity, rad/s.
    knot : float, default 0.2
        Knot, in the actuators' units.
    change : float, default 0.2
        Change of a knot, in the actuators' units.
    """

    position: float = 0.05
    tilt: float = 1.0
    yaw: float = 0.5
    velocity: float = 0.5
    rate: float = 20.0
    knot: float = 0.2
    change: float = 0.2


class WindObserver:
    """Observer of the motion's deviation from the model of still air: a wind, and slowly all other errors.

    Parameters
    ----------
    model : StrokeMap
        The linear models.

    Attributes
    ----------
    wind : (3,) array
        Wind, m/s, in the axes of the orbit.
    remaining_error : tuple of (k,) arrays
        Remaining error of each half stroke.
    """

    def __init__(self, model: StrokeMap) -> None:
        self._model = model
        scale = np.array([1.0, 1.0, 1.0, _RATE, _RATE, _RATE])
        self._by_twist = [np.linalg.pinv(half.wind[TWIST] * scale[:, None]) * scale for half in model.halves]
        self.clear()

    def clear(self) -> None:
        """Assume still air."""
        self.wind = np.zeros(3)
        k = len(self._model.halves[0].a)
        self.remaining_error = (np.zeros(k), np.zeros(k))

    def learn(self, phase: int, observed: Array, flown: Array, linear: Array) -> None:
        """Update the estimate from x at the end of a half stroke.

        Parameters
        ----------
        phase : int
            Half stroke, 0 or 1.
        observed : Array
            (k,) x as measured.
        flown : Array
            (k,) x by the robot's full model in still air.
        linear : Array
            (k,) x by the linear model without any disturbance.
        """
        half = self._model.halves[phase]
        correction = self._by_twist[phase] @ (observed - flown)[TWIST]
        self.wind += WIND_SHARE * (correction - self.wind)
        self.remaining_error[phase][:] += ERROR_SHARE * (
            observed - linear - half.wind @ self.wind - self.remaining_error[phase]
        )

    def disturbance(self, phase: int) -> Array:
        """Return the addition to x in a half stroke.

        Parameters
        ----------
        phase : int
            Half stroke, 0 or 1.

        Returns
        -------
        Array
            (k,).
        """
        result: Array = self._model.halves[phase].wind @ self.wind + self.remaining_error[phase]
        return result


class LinearPlanner:
    """Planner of half strokes.

    Parameters
    ----------
    model : StrokeMap
        The linear models.
    count : int
        Half strokes of a plan.
    lower, upper : Array
        (n,) limits of the knots.
    weights : Weights | None, optional
        Sizes in the cost.

    Raises
    ------
    ModelError
        The robot cannot be held.
    """

    def __init__(
        self, model: StrokeMap, count: int, lower: Array, upper: Array, weights: Weights | None = None
    ) -> None:
        self.model, self.count, self.observer = model, count, WindObserver(model)
        w = Weights() if weights is None else weights
        k, n = model.halves[0].before.shape
        self._k, self._n = k, n
        self._lower, self._upper = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        q = np.zeros(k)
        for at, size in ((slice(0, 3), w.position), (slice(3, 5), w.tilt), (slice(5, 6), w.yaw),
                         (slice(6, 9), w.velocity), (slice(9, 12), w.rate)):  # fmt: skip
            q[at] = 1.0 / size**2
        self._q = np.concatenate([q, np.zeros(2 * n)])
        self._r, self._c = 1.0 / w.knot**2, 1.0 / w.change**2
        self._f, self._g = zip(*(_augmented(half.a, half.before, half.between, half.after) for half in model.halves),
                               strict=True)  # fmt: skip
        self.gain, self._v = self._riccati()
        self._h, self._cross, self._square, self._ways = zip(*(self._condensed(p) for p in range(2)), strict=True)
        self._free = np.array([i for i in range(k) if i not in (0, 1, 2, 5)])
        self._stay = self._staying()
        self.clear()

    def clear(self) -> None:
        """Reset to still air and the orbit's knots."""
        self.observer.clear()
        self.knots = np.zeros((self.count, self._n))
        self.home = np.zeros((self.count, self._n))

    def close(self) -> None:
        """Do nothing: there are no threads."""

    def plan(self, phase: int, state: Array, before: Array, between: Array, place: Array, yaw: float) -> Plan:
        """Make a plan from a state at the beginning of a half stroke.

        Parameters
        ----------
        phase : int
            Half stroke, 0 or 1.
        state : Array
            (w,) as a Fork has it.
        before, between : Array
            (n,) knots that are fixed already: the last one, and the one in the middle of this half stroke.
        place : Array
            (3,) m, world: position to hold.
        yaw : float
            Heading to hold, rad.

        Returns
        -------
        Plan
            Its variables are the knots after the fixed ones.
        """
        begin = time.monotonic()
        model, n = self.model, self._n
        psi = model.yaw(phase, state)
        x = model.off(phase, state, psi, place)
        far = float(np.linalg.norm(x[:3]))
        x[:3] *= min(1.0, MAX_DISTANCE_M / max(far, 1e-12))
        upright = quaternion_matrix(model.orbit[phase][model.coordinates.pose + 3 : model.coordinates.pose + 7])
        x[3:6] += upright.T @ np.array(
            [0.0, 0.0, min(max(math.remainder(psi - yaw, math.tau), -MAX_TURN_RAD), MAX_TURN_RAD)]
        )
        stays = self.staying()
        z = np.concatenate([x, before, between]) - stays[phase]
        steady = np.array([stays[(phase + j + 1) % 2][self._k + n :] for j in range(self.count)])
        first = np.vstack([self.knots[1:], self.knots[-1:]]) - steady
        v = first.ravel().copy()
        gradient = self._cross[phase] @ z
        iterations = box_step(
            self._h[phase], gradient, np.zeros((v.size, 0)), (self._lower - steady).ravel(),
            (self._upper - steady).ravel(), v, np.zeros((v.size, 0)),
        )  # fmt: skip
        least = float(v @ (0.5 * self._h[phase] @ v + gradient) + 0.5 * z @ self._square[phase] @ z)
        good = iterations > 0 and math.isfinite(least) and bool(np.isfinite(v).all())
        if good:
            self.knots = v.reshape(self.count, n) + steady
        else:
            self.knots = np.zeros((self.count, n))
        path = self._path(phase, z, v, stays, psi, place) if good else np.zeros((0, 3))
        seconds = time.monotonic() - begin
        return Plan(self.knots.copy(), good, 1, 0 if good else 1, least, math.nan, path, seconds, max(iterations, 0))

    def staying(self) -> tuple[Array, Array]:
        """Return the state z of both phases that is constant in the estimated wind.

        Returns
        -------
        tuple[Array, Array]
            (k + 2 n,) of each phase.
        """
        k, n, halves = self._k, self._n, self.model.halves
        d = [self.observer.disturbance(phase) for phase in range(2)]
        result = self._stay @ (halves[1].a @ d[0] + d[1])
        x = np.zeros(k)
        x[self._free] = result[: len(self._free)]
        knot = result[-n - 1 : -1]
        first, second = np.concatenate([x, knot, knot]), np.empty(k + 2 * n)
        second[:k] = self._f[0][:k] @ first + self._g[0][:k] @ knot + d[0]
        second[k:] = first[k:]
        return first, second

    def _staying(self) -> Array:
        """Return (., k) of the disturbance over a stroke: coordinates but for place and heading, the knot, and a turn.

        (I - A) x - B u + e s = d: in a wind the robot turns by s a stroke, about the vertical e, unless knots of both
        half strokes differ. That exceeds the limits, so that the heading is left to the feedback.
        """
        (first, second), k = self.model.halves, self._k
        knot = second.a @ (first.before + first.between + first.after) + second.before + second.between + second.after
        vertical = np.zeros((k, 1))
        q = self.model.coordinates.pose + 3
        vertical[3:6, 0] = quaternion_matrix(self.model.orbit[0][q : q + 4])[2]
        whole = np.hstack([(np.eye(k) - second.a @ first.a)[:, self._free], -knot, vertical])
        scale = np.concatenate(
            [np.full(len(self._free), 1.0 / _KEEP_COST_SCALE), np.ones(self._n), np.full(1, 1.0 / _KEEP_COST_SCALE)]
        )
        result: Array = scale[:, None] * np.linalg.pinv(whole * scale, rcond=1e-9)
        return result

    def _riccati(self) -> tuple[list[Array], list[Array]]:
        """Return feedback (n, k + 2 n) and V (k + 2 n, k + 2 n) of both phases, by recursion from the end."""
        last = slice(self._k + self._n, None)
        v: list[Array] = [np.diag(self._q), np.diag(self._q)]
        gain: list[Array] = [np.zeros((self._n, len(self._q)))] * 2
        for sweep in range(MAX_HALF_STROKES):
            phase = 1 - sweep % 2
            f, g, ahead = self._f[phase], self._g[phase], v[1 - phase]
            h = g.T @ ahead @ g + (self._r + self._c) * np.eye(self._n)
            m = g.T @ ahead @ f
            m[:, last] -= self._c * np.eye(self._n)
            gain[phase] = np.linalg.solve(h, m)
            new = np.diag(self._q) + f.T @ ahead @ f - m.T @ gain[phase]
            new[last, last] += self._c * np.eye(self._n)
            new = 0.5 * (new + new.T)
            settled = float(np.abs(new - v[phase]).max()) < MIN_CHANGE * float(np.abs(new).max())
            v[phase] = new
            if not np.isfinite(new).all():
                break
            if settled and phase == 0:
                break
        loop = (self._f[1] - self._g[1] @ gain[1]) @ (self._f[0] - self._g[0] @ gain[0])
        self.poles = np.sort(np.abs(np.linalg.eigvals(loop)))[::-1] if np.isfinite(loop).all() else np.array([np.inf])
        if not self.poles[0] < 1.0:
            raise ModelError("linear plans: the feedback with these actuators is not stable; use another method")
        return gain, v

    def _condensed(self, phase: int) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """Return the cost 1/2 v'H v + v'G z + 1/2 z'S z: H (N n, N n), G, S; the position of each z_j by z and by v."""
        z, n, count = len(self._q), self._n, self.count
        by_z, by_v = np.eye(z), np.zeros((z, count * n))
        h, cross, square = np.zeros((count * n, count * n)), np.zeros((count * n, z)), np.diag(self._q)
        last = slice(z - n, z)
        ways_z, ways_v = [by_z[:3]], [by_v[:3]]
        for j in range(count):
            selection = np.zeros((n, count * n))
            selection[:, j * n : (j + 1) * n] = np.eye(n)
            moved_v, moved_z = selection - by_v[last], -by_z[last]
            h += self._r * selection.T @ selection + self._c * moved_v.T @ moved_v
            cross += self._c * moved_v.T @ moved_z
            square += self._c * moved_z.T @ moved_z
            p = (phase + j) % 2
            by_z, by_v = self._f[p] @ by_z, self._f[p] @ by_v + self._g[p] @ selection
            weight = self._v[(phase + count) % 2] if j == count - 1 else np.diag(self._q)
            h += by_v.T @ weight @ by_v
            cross += by_v.T @ weight @ by_z
            square += by_z.T @ weight @ by_z
            ways_z.append(by_z[:3])
            ways_v.append(by_v[:3])
        return h + h.T, 2.0 * cross, 2.0 * square, (np.array(ways_z), np.array(ways_v))

    def _path(self, phase: int, z: Array, v: Array, stays: tuple[Array, Array], psi: float, place: Array) -> Array:
        """Return the positions (N + 1, 3) m, world."""
        ways_z, ways_v = self._ways[phase]
        away = ways_z @ z + ways_v @ v
        c, s = math.cos(psi), math.sin(psi)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        p = self.model.coordinates.pose
        for j in range(len(away)):
            q = (phase + j) % 2
            origin = self.model.orbit[q]
            local = quaternion_matrix(origin[p + 3 : p + 7]) @ (away[j] + stays[q][:3])
            away[j] = turn @ (local + origin[p : p + 3] - self.model.orbit[0][p : p + 3]) + place
        result: Array = away
        return result


def _augmented(a: Array, before: Array, between: Array, after: Array) -> tuple[Array, Array]:
    """Return F and G of z+ = F z + G u, of z = (x, u_before, u_between), u the knot after."""
    k, n = before.shape
    f, g = np.zeros((k + 2 * n, k + 2 * n)), np.zeros((k + 2 * n, n))
    f[:k] = np.hstack([a, before, between])
    f[k : k + n, k + n :] = np.eye(n)
    g[:k], g[k + n :] = after, np.eye(n)
    return f, g
