"""The whole state of a robot from its pose and twist, and a few candidates of a plan for viewers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.rollouts import Rollout
from rtmms.base.errors import DivergedError, RtmmsError

Array = npt.NDArray[np.float64]


# The whole state of a robot of which sensors measure pose and twist alone, and the current that it drifts in.
#
# Joints, rods and fins go by the model under the commands that were sent; pose and twist come from the plant's states.
# How far such a model ends from the robot's own is `distance_apart`.


REPLAYED_S, EACH_S, GAIN = 1.6, 0.4, 0.25
"""What is replayed, how often, and the share of a Newton step that is taken."""
_TRIED, _DAMPED, _FASTEST = 0.05, 0.05, 0.3
"""m/s by which the current is varied; what damps the step; the fastest that is believed."""


class Shadow:
    """A model that goes where the robot goes.  model  a plant with place, present and put
    (rtmms.plant.protocol.HasFork)"""

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def state(self) -> Array:
        """As the model's forks have it."""
        found: Array = self.model.present()[0]
        return found

    def put(self, state: Array) -> None:
        """Stand there."""
        self.model.put(state, 0)

    def go(self, commands: Array) -> bool:
        """Steps of the model; False where it fails: it is at rest then, at its last reported pose."""
        try:
            for command in commands:
                self.model.step(command)
        except DivergedError:
            self.model.reset()
            return False
        return True

    def place(self, **values: Any) -> None:
        """Pose and twist from the outputs, by their names."""
        try:
            self.model.place(**values)
        except RtmmsError:
            self.model.reset()  # rods or joints that nothing can stand at
            self.model.place(**values)


class CurrentObserver:
    """The uniform current, from how far the robot is from where replays of the last seconds end: a damped Newton step
    now and then on displacement and velocity. It takes up what else the model leaves out as well.

    model   a plant of its own with a parameter current_m_s;  tick_s  s, from one `follow` to the next
    """

    def __init__(self, model: Any, tick_s: float) -> None:
        self.shadow, self.current = Shadow(model), np.zeros(3)  # m/s, world
        self._ticks, self._each = max(1, round(REPLAYED_S / tick_s)), max(1, round(EACH_S / tick_s))
        self._span = self._ticks * tick_s
        self.clear()

    def clear(self) -> None:
        """The robot is elsewhere: what went before does not count."""
        self._count = 0
        self._states: deque[Array] = deque(maxlen=self._ticks + 1)
        self._sent: deque[Array] = deque(maxlen=self._ticks)

    def follow(self, state: Array, sent: Array | None, position: Array, world_velocity: Array) -> bool:
        """The state now, the commands (steps, n) since the last one; True where the current is another now."""
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
                tried[k - 1] += _TRIED
            self.shadow.model.set(current_m_s=tuple(tried.tolist()))
            self.shadow.put(self._states[0])
            if not self.shadow.go(commands):
                self.clear()
                return False
            observed = self.shadow.model.observe()
            ends.append(self._measure(observed["position"], _world(observed["quaternion"], observed["velocity"])))
        off = self._measure(position, world_velocity) - ends[0]
        slope = np.array([(end - ends[0]) / _TRIED for end in ends[1:]]).T
        step = np.linalg.solve(slope.T @ slope + _DAMPED**2 * np.eye(2), slope.T @ off)
        self.current[:2] = np.clip(self.current[:2] + GAIN * step, -_FASTEST, _FASTEST)
        return True

    def _measure(self, position: Array, velocity: Array) -> Array:
        return np.concatenate([np.asarray(position) * (2.0 / self._span), np.asarray(velocity)])


def distance_apart(coarse: Any, fine: Any, words: Any, horizon_s: float) -> float:
    """m, between the positions of both at the end of one horizon under the home words, each from rest in its own steps
    (to the nearest whole one of `fine`); nan where one of them fails.

    coarse, fine   plants with compiled steps, both reset;  words  see rtmms.planning.planner.Words"""
    ends = []
    for model in (coarse, fine):
        model.reset()
        steps = max(1, round(horizon_s / model.dt))
        commands, _ = words.commands(words.home[None], words.start(), 0.0, steps, model.dt)
        with Rollout(model, 1) as pool:
            runs = pool(commands, outputs=("position",), every=steps)
        ends.append(runs.outputs["position"][0, -1] if runs.status[0] == 0 else np.full(3, math.nan))
        model.reset()
    return float(np.linalg.norm(ends[0] - ends[1]))


def _world(q: Array, v: Array) -> Array:
    w, u = q[0], q[1:]
    t = 2.0 * np.cross(u, v)
    found: Array = v + w * t + np.cross(u, t)
    return found


# A few of a plan's candidates for viewers: their paths, and these as a text short enough for a figure of a peer.


PATHS, POINTS = 4, 3
"""Candidates that are shown beside the plan, and points of each after its beginning."""
MAX_TEXT = 128
"""Characters of a figure's text (docs/protocol.md)."""
_FARTHEST = 1e4
"""m, of what is reported."""


def places(samples: int) -> Any:
    """Which samples of a path are shown, evenly from after its beginning to its end."""
    return np.round(np.linspace(0.0, samples - 1.0, POINTS + 1))[1:].astype(int)


def chosen(costs: Sequence[float] | Array, share: float = 0.5) -> list[int]:
    """Candidates beside the best, evenly by their rank from it to the one that `share` of them are better than; none
    that cost no number."""
    order = [int(k) for k in np.argsort(costs, kind="stable") if np.isfinite(costs[k])]
    ranks = np.round(np.linspace(0.0, share * max(0, len(order) - 1), PATHS + 1))[1:]
    return [order[k] for k in dict.fromkeys(ranks.astype(int).tolist()) if k]


def as_text(begin: Array, paths: Array) -> str:
    """'x,y,z x,y,z x,y,z;...': steps from point to point in whole cm, world, the first from `begin`, m.

    paths   (k, points, 3) m. The ends alone, then fewer paths, where these are too many characters."""
    paths = paths[np.isfinite(paths).all(axis=(1, 2)) & (np.abs(paths).max(axis=(1, 2), initial=0.0) < _FARTHEST)]
    for some in (paths, *(paths[:k, -1:] for k in range(len(paths), 0, -1))):
        words = ";".join(_steps(np.vstack([begin, path])) for path in some)
        if len(words) <= MAX_TEXT:
            return words
    return ""


def _steps(path: Array) -> str:
    whole = np.round(100.0 * path).astype(int)
    return " ".join(",".join(str(x) for x in row) for row in np.diff(whole, axis=0).tolist())


def of_text(words: str, begin: Array) -> list[Array]:
    """The paths of such a text, (n, 3) m, each from `begin` on; none where it is no such text."""
    try:
        steps = [np.array([[float(x) for x in word.split(",")] for word in path.split()]) for path in words.split(";")]
    except ValueError:
        return []
    if any(one.ndim != 2 or one.shape[1] != 3 or not np.abs(one).max() < 100.0 * _FARTHEST for one in steps):
        return []
    return [np.vstack([begin, begin + 0.01 * np.cumsum(one, axis=0)]) for one in steps]
