"""First and second derivatives of a cost by the coordinates of a state and by the command, sample by sample.

A cost sees outputs: those of a pose are displaced in its chart, others number by number, all with their curvature. What
does not stand in the state comes in by its slope alone (Gauss and Newton's approximation). Hessians are made positive
semidefinite: negative eigenvalues are set to 0. What a cost remembers of earlier samples is taken as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rtmms.analysis.stages import Motion, Stages
from rtmms.coordinates import rotations
from rtmms.errors import ModelError
from rtmms.planning.cost import Cost

Array = npt.NDArray[np.float64]

STEP = 1e-3
"""Of a coordinate's size: for second differences, whose rounding is 1e-16 / STEP^2."""


class CostSlopes:
    """Of one cost of a plant's stages; the cost's outputs are among theirs."""

    def __init__(self, cost: Cost, stages: Stages) -> None:
        self.cost, self._stages = cost, stages
        told, places = stages.coordinates, stages.places
        self._k, self._n = len(told.names), len(stages.reach)
        at = {int(word): i for i, word in enumerate(told.words) if told.pose < 0 or i >= 6}
        pose = range(told.pose, told.pose + 7) if told.pose >= 0 else range(0)
        self._posed: list[tuple[str, int]] = []  # outputs within the pose, and where each begins there
        self._single: list[tuple[str, int]] = []  # output, which of its numbers
        self._rows: list[int] = []  # of the coordinates
        self._told: list[tuple[str, int]] = []
        steps: list[float] = []
        for name in cost.outputs:
            size = int(np.prod(stages.shapes[name], dtype=np.int64))
            if name not in places:
                self._told += [(name, i) for i in range(size)]
                continue
            begin = places[name][0]
            if begin in pose:
                self._posed.append((name, begin - told.pose))
                continue
            for i in range(size):
                if begin + i in at:
                    self._single.append((name, i))
                    self._rows.append(at[begin + i])
                    steps.append(STEP * float(told.size[at[begin + i]]))
        first = list(STEP * told.size[:6]) if self._posed else []
        self._steps = np.array([*first, *steps, *[STEP] * len(self._told), *(STEP * stages.reach)])
        self._six = len(first)
        self._directions()

    def _directions(self) -> None:
        """Rows of displacements: none, each to both sides, each pair to both sides."""
        m = len(self._steps)
        own = np.diag(self._steps)
        self._pairs = list(itertools.combinations(range(m), 2))
        both = np.array([own[i] + own[j] for i, j in self._pairs]).reshape(-1, m)
        self._moves = np.concatenate([np.zeros((1, m)), own, -own, both, -both])
        if self._six:  # turns as quaternions (cos, sin axis) of half the angle
            turned = self._moves[:, 3:6]
            angle = np.linalg.norm(turned, axis=1)
            share = np.where(angle > 0.0, np.sin(0.5 * angle) / np.where(angle > 0.0, angle, 1.0), 0.5)
            self._turns = np.concatenate([np.cos(0.5 * angle)[:, None], share[:, None] * turned], axis=1)

    def remembered(self, outputs: Mapping[str, Array], commands: Array, times: Array) -> Array:
        """(s, memory) before each sample."""
        cost = self.cost
        kept, now = np.zeros((len(commands), max(1, cost.memory))), np.zeros((1, max(1, cost.memory)))
        if cost.memory:
            never = np.zeros(1, dtype=np.bool_)
            for t in range(len(commands)):
                kept[t] = now[0]
                cost.each({name: outputs[name][t : t + 1] for name in cost.outputs}, commands[t : t + 1],
                          times[t : t + 1], now, 0.0, never)  # fmt: skip
        return kept

    def __call__(self, motion: Motion, dt: float, told: Mapping[str, Array]) -> tuple[Array, Array]:
        """Gradient (s, k + n) and Hessian (s, k + n, k + n) of each sample's share of J.

        motion  the samples are the ends of its stages;  dt  s of a stage
        told    {name: (s, numbers, k)} slopes of outputs that do not stand in the state
        """
        outputs, commands = motion.outputs, motion.knots[1:]
        count, p, m = len(commands), len(self._moves), len(self._steps)
        times: Array = dt * np.arange(1, count + 1, dtype=np.float64)
        memories = np.repeat(self.remembered(outputs, commands, times), p, axis=0)
        lasts = np.repeat(np.arange(count) == count - 1, p)
        given = {name: np.repeat(outputs[name], p, axis=0) for name in self.cost.outputs}
        moves = np.tile(self._moves, (count, 1))
        if self._posed:
            at = self._stages.coordinates.pose + 3
            self._displace(given, motion.states[1:, at : at + 4])
        for i, (name, number) in enumerate([*self._single, *self._told]):
            given[name].reshape(len(moves), -1)[:, number] += moves[:, self._six + i]
        pushed = np.repeat(commands, p, axis=0) + moves[:, m - self._n :]
        costs = self.cost.each(given, pushed, np.repeat(times, p), memories, float(count), lasts).reshape(count, p)
        if not np.isfinite(costs).all():
            raise ModelError(
                f"cost '{self.cost.__name__}': it is no number close to the plan; bound what it divides by"
            )
        return self._spread(*self._differences(costs / count), told)

    def _displace(self, given: dict[str, Array], attitude: Array) -> None:
        """p = p_ref + R_ref e, q = q_ref (cos, sin axis) of half the angle; attitude (s, 4) q_ref."""
        for name, begin in self._posed:
            if begin == 0:
                given[name] += (self._moves[:, :3] @ rotations(attitude).transpose(0, 2, 1)).reshape(-1, 3)
            else:
                given[name] = (self._turns @ _before(attitude).transpose(0, 2, 1)).reshape(-1, 4)

    def _differences(self, costs: Array) -> tuple[Array, Array]:
        """Gradient (s, m) and Hessian (s, m, m) in what is displaced, from the costs (s, moves)."""
        m, h = len(self._steps), self._steps
        none, up, down = costs[:, :1], costs[:, 1 : 1 + m], costs[:, 1 + m : 1 + 2 * m]
        gradient = (up - down) / (2.0 * h)
        hessian = np.zeros((len(costs), m, m))
        hessian[:, range(m), range(m)] = (up - 2.0 * none + down) / (h * h)
        pairs = len(self._pairs)
        if pairs:
            i, j = np.array(self._pairs).T
            ahead, behind = costs[:, 1 + 2 * m : 1 + 2 * m + pairs], costs[:, 1 + 2 * m + pairs :]
            mixed = (ahead + behind + 2.0 * none - up[:, i] - up[:, j] - down[:, i] - down[:, j]) / (2.0 * h[i] * h[j])
            hessian[:, i, j] = hessian[:, j, i] = mixed
        scaled = hessian * h[:, None] * h  # so that rounding of one does not pass for curvature of another
        values, vectors = np.linalg.eigh(scaled)
        worst = values[:, 0] < 0.0
        if worst.any():
            kept = np.maximum(values[worst], 0.0)
            hessian[worst] = (vectors[worst] * kept[:, None]) @ vectors[worst].transpose(0, 2, 1) / (h[:, None] * h)
        return gradient, hessian

    def _spread(self, gradient: Array, hessian: Array, told: Mapping[str, Array]) -> tuple[Array, Array]:
        """Into the coordinates of the state and the commands."""
        count, m, k, n = len(gradient), len(self._steps), self._k, self._n
        rows = np.array([*range(self._six), *self._rows], dtype=np.int64)
        if not self._told:
            at = np.concatenate([rows, k + np.arange(n)])
            g, h = np.zeros((count, k + n)), np.zeros((count, k + n, k + n))
            g[:, at] = gradient
            h[:, at[:, None], at] = hessian
            return g, h
        by = np.zeros((count, m, k + n))
        by[:, range(len(rows)), rows] = 1.0
        for i, (name, number) in enumerate(self._told):
            by[:, len(rows) + i, :k] = told[name][:, number]
        by[:, range(m - n, m), range(k, k + n)] = 1.0
        across = by.transpose(0, 2, 1)
        return np.einsum("smz,sm->sz", by, gradient), across @ hessian @ by


def _before(q: Array) -> Array:
    """(s, 4, 4) that take a quaternion r to q r."""
    w, x, y, z = q.T
    return np.stack([w, -x, -y, -z, x, w, -z, y, y, z, w, -x, z, -y, x, w], axis=1).reshape(-1, 4, 4)
