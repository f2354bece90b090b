"""The linear model of a flapping robot about its hovering orbit, from half stroke to half stroke.

    x[k + 1] = A_p x[k] + B_before u[k - 1] + B_between u[k] + B_after u[k + 1] + W_p w,   p = k mod 2

x is the whole state (pose, twist, joints, filters) less that of the orbit at the same phase, w a uniform wind. The
commands go in straight lines from knot to knot; knots u stand in the middle of the half strokes, so that each half
stroke sees three of them. Its slopes are those of two stages of a quarter of a stroke (rtmms.analysis.stages), the
wind's central differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.stages import Motion, Stages
from rtmms.coordinates import between
from rtmms.errors import ModelError
from rtmms.plant import Coordinates
from rtmms.spatial import heading, quaternion_product

Array = npt.NDArray[np.float64]

WIND_M_S = 0.02
"""Of the wind's differences."""
CLOSED = 1e-6
"""Of a coordinate's size: as far as the orbit may be from itself after a stroke."""
WINDS = ("wind_x_m_s", "wind_y_m_s", "wind_z_m_s")


@dataclass(frozen=True)
class HalfStroke:
    """a (k, k), before, between, after (k, n), wind (k, 3)."""

    a: Array
    before: Array
    between: Array
    after: Array
    wind: Array


@dataclass(frozen=True)
class StrokeMap:
    """halves  both half strokes, the one from the reset's phase first;  steps  of the model, of each
    orbit   a state of the hovering orbit at the beginning of each, as a Fork has it;  told  its coordinates"""

    halves: tuple[HalfStroke, HalfStroke]
    orbit: tuple[Array, Array]
    told: Coordinates
    steps: int

    def off(self, phase: int, state: Array, yaw: float, place: Array) -> Array:
        """(k,) x of a state, seen along a heading and from a place (3,) m, world."""
        told, origin, seen = self.told, self.orbit[phase], state.copy()
        p = told.pose
        c, s = math.cos(yaw), math.sin(yaw)
        away = state[p : p + 3] - place
        seen[p : p + 3] = c * away[0] + s * away[1], c * away[1] - s * away[0], away[2]
        seen[p : p + 3] += self.orbit[0][p : p + 3]
        seen[p + 3 : p + 7] = turned(state[p + 3 : p + 7], -yaw)
        return between(told, origin, seen)

    def after(self, phase: int, x: Array, knots: Array) -> Array:
        """(k,) x after a half stroke, in still air, with knots (3, n): before, between, after."""
        half = self.halves[phase]
        found: Array = half.a @ x + half.before @ knots[0] + half.between @ knots[1] + half.after @ knots[2]
        return found

    def yaw(self, phase: int, state: Array) -> float:
        """rad, that a state is turned to the left from the orbit."""
        q = slice(self.told.pose + 3, self.told.pose + 7)
        return math.remainder(float(np.subtract(*heading(np.array([state[q], self.orbit[phase][q]])))), math.tau)


def stroke_map(model: Any, steps: int) -> StrokeMap:
    """About the state of the model at a reset, which must lie on a periodic orbit.

    model  a plant of a mechanism with a wind among its parameters;  steps  of half a stroke, an even number
    ModelError where it is elsewhere after a stroke. The model is at its reset after.
    """
    model.reset()
    told: Coordinates = model.coordinates()
    n = len(model.actuators)
    zero = np.zeros((3, n))
    states = [model.present()[0]]
    for _ in range(2):
        for command in lines(zero, steps):
            model.step(command)
        states.append(model.present()[0])
    off = np.abs(between(told, states[0], states[2]) / told.size).max()
    if not off < CLOSED:
        raise ModelError(
            f"stroke map: expected a model on a periodic orbit, got one that is {off:.2g} off after a stroke"
        )
    quarters = Stages(model, steps // 2)
    motion = quarters.roll(np.zeros((5, n)))
    slopes = quarters.slopes(motion)
    winds = [_blown(model, quarters, motion, name) for name in WINDS]
    quarters.close()
    if slopes is None:
        raise ModelError("stroke map: a step fails close to the orbit")
    halves = []
    for phase in range(2):
        i, j = 2 * phase, 2 * phase + 1
        # q0 = (before + between) / 2 at its beginning, between in its middle, q2 = (between + after) / 2 at its end
        by_first, by_last = slopes.a[j] @ slopes.before[i], slopes.own[j]
        by_middle = slopes.a[j] @ slopes.own[i] + slopes.before[j]
        wind = np.stack([ends[phase] for ends in winds], axis=1)
        between_both = 0.5 * by_first + by_middle + 0.5 * by_last
        halves.append(HalfStroke(slopes.a[j] @ slopes.a[i], 0.5 * by_first, between_both, 0.5 * by_last, wind))
    model.reset()
    return StrokeMap((halves[0], halves[1]), (states[0], states[1]), told, steps)


def _blown(model: Any, quarters: Stages, calm: Motion, name: str) -> list[Array]:
    """(k,) of each half stroke: how x at its end changes with that wind."""
    told: Coordinates = model.coordinates()
    ends: list[list[Array]] = []
    for w in (WIND_M_S, -WIND_M_S):
        model.set(**{name: w})
        quarters.follow()
        ends.append([])
        for phase in range(2):
            model.put(calm.states[2 * phase].copy(), 2 * phase * quarters.steps)
            found = quarters.roll(np.zeros((3, len(model.actuators))))
            ends[-1].append(between(told, calm.states[2 * phase + 2], found.states[2]))
    model.set(**{name: 0.0})
    model.reset()
    return [(up - down) / (2.0 * WIND_M_S) for up, down in zip(*ends, strict=True)]


def lines(knots: Array, steps: int) -> Array:
    """(steps, n) commands of half a stroke, each at the end of its step, from three knots (3, n): that in the middle of
    the half stroke before, of this one, and of the next."""
    part = np.arange(1, steps + 1) / steps
    at = (part + 0.5)[:, None]
    rising = knots[0] + (knots[1] - knots[0]) * at
    falling = knots[1] + (knots[2] - knots[1]) * (at - 1.0)
    found: Array = np.where(part[:, None] <= 0.5, rising, falling)
    return found


def turned(q: Array, angle: float) -> Array:
    """A quaternion turned about the vertical, rad."""
    return quaternion_product(np.array([math.cos(0.5 * angle), 0.0, 0.0, math.sin(0.5 * angle)]), q)
