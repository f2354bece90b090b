"""Whole state of a robot of which sensors measure pose and twist alone, and the current that it drifts in.

Joints, rods and fins go by the model under the commands that were sent; pose and twist come from the plant's states.
How far such a model ends from the robot's own is `distance_apart`.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.rollouts import Rollout
from rtmms.base.errors import DivergedError, RtmmsError

Array = npt.NDArray[np.float64]

REPLAYED_S = 1.6
"""Replayed time, s."""
REPLAY_INTERVAL_S = 0.4
"""Interval of the replays, s."""
NEWTON_SHARE = 0.25
"""Share of a Newton step."""
_VARIATION_M_S = 0.05
"""Variation of the current, m/s."""
_DAMPING = 0.05
"""Damping of the step."""
_MAX_CURRENT_M_S = 0.3
"""Accepted current, m/s."""


class ReconstructedState:
    """State of a model that follows the robot's motion.

    Parameters
    ----------
    model : Any
        Plant with place, present and put (rtmms.plant.HasFork).
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def state(self) -> Array:
        """Present state, as the model's forks have it."""
        result: Array = self.model.present()[0]
        return result

    def put(self, state: Array) -> None:
        """Put the model into a state.

        Parameters
        ----------
        state : Array
            (w,) as a Fork has it.
        """
        self.model.put(state, 0)

    def go(self, commands: Array) -> bool:
        """Step the model.

        Parameters
        ----------
        commands : Array
            (steps, n) commands.

        Returns
        -------
        bool
            False where a step fails: the model is then at its reset.
        """
        try:
            for command in commands:
                self.model.step(command)
        except DivergedError:
            self.model.reset()
            return False
        return True

    def place(self, **values: Any) -> None:
        """Place the model at pose and twist.

        Parameters
        ----------
        **values : Any
            Outputs by name.
        """
        try:
            self.model.place(**values)
        except RtmmsError:
            self.model.reset()  # rods or joints that nothing can stand at
            self.model.place(**values)


class CurrentObserver:
    """Observer of a uniform current, from the robot's distance to the ends of replays of the last seconds.

    Each `REPLAY_INTERVAL_S` it takes a damped Newton step on displacement and velocity. The estimate also
    absorbs other errors of the model.

    Parameters
    ----------
    model : Any
        A plant of its own with a parameter current_m_s.
    tick_s : float
        Time from one `follow` to the next, s.

    Attributes
    ----------
    current : (3,) array
        Velocity of the current, m/s, world.
    """

    def __init__(self, model: Any, tick_s: float) -> None:
        self.reconstructed, self.current = ReconstructedState(model), np.zeros(3)  # m/s, world
        self._ticks, self._each = max(1, round(REPLAYED_S / tick_s)), max(1, round(REPLAY_INTERVAL_S / tick_s))
        self._span = self._ticks * tick_s
        self.clear()

    def clear(self) -> None:
        """Delete the history, as the robot is at another place."""
        self._count = 0
        self._states: deque[Array] = deque(maxlen=self._ticks + 1)
        self._sent: deque[Array] = deque(maxlen=self._ticks)

    def follow(self, state: Array, sent: Array | None, position: Array, world_velocity: Array) -> bool:
        """Read the present state, and update the current if a replay is due.

        Parameters
        ----------
        state : Array
            (w,) state now, as a Fork has it.
        sent : Array | None
            (steps, n) commands since the last call.
        position : Array
            (3,) position, m, world, measured.
        world_velocity : Array
            (3,) velocity, m/s, world, measured.

        Returns
        -------
        bool
            True where the current has changed.
        """
        self._states.append(state)
        if sent is not None:
            self._sent.append(sent)
        self._count += 1
        if len(self._states) <= self._ticks or len(self._sent) < self._ticks or self._count % self._each:
            return False
        commands = np.concatenate(list(self._sent))
        ends = []
        for k in range(3):  # along x and y of the world: depth is measured, not drifted through
            tried = self.current.copy()
            if k:
                tried[k - 1] += _VARIATION_M_S
            self.reconstructed.model.set(current_m_s=tuple(tried.tolist()))
            self.reconstructed.put(self._states[0])
            if not self.reconstructed.go(commands):
                self.clear()
                return False
            observed = self.reconstructed.model.observe()
            ends.append(self._measure(observed["position"], _world(observed["quaternion"], observed["velocity"])))
        off = self._measure(position, world_velocity) - ends[0]
        slope = np.array([(end - ends[0]) / _VARIATION_M_S for end in ends[1:]]).T
        step = np.linalg.solve(slope.T @ slope + _DAMPING**2 * np.eye(2), slope.T @ off)
        self.current[:2] = np.clip(self.current[:2] + NEWTON_SHARE * step, -_MAX_CURRENT_M_S, _MAX_CURRENT_M_S)
        return True

    def _measure(self, position: Array, velocity: Array) -> Array:
        return np.concatenate([np.asarray(position) * (2.0 / self._span), np.asarray(velocity)])


def distance_apart(coarse: Any, fine: Any, variables: Any, horizon_s: float) -> float:
    """Return the distance of a coarse and a fine model after one horizon under the home variables, each from rest.

    Parameters
    ----------
    coarse, fine : Any
        Plants with compiled steps, both reset. Each uses its own steps, with the end at the nearest whole one.
    variables : Any
        See rtmms.planning.planner.PlanVariables.
    horizon_s : float
        Horizon, s.

    Returns
    -------
    float
        m; nan where one of them fails.
    """
    ends = []
    for model in (coarse, fine):
        model.reset()
        steps = max(1, round(horizon_s / model.dt))
        commands, _ = variables.commands(variables.home[None], variables.start(), 0.0, steps, model.dt)
        with Rollout(model, 1) as pool:
            runs = pool(commands, outputs=("position",), every=steps)
        ends.append(runs.outputs["position"][0, -1] if runs.status[0] == 0 else np.full(3, math.nan))
        model.reset()
    return float(np.linalg.norm(ends[0] - ends[1]))


def _world(q: Array, v: Array) -> Array:
    w, u = q[0], q[1:]
    t = 2.0 * np.cross(u, v)
    result: Array = v + w * t + np.cross(u, t)
    return result
