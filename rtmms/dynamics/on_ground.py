"""Dynamics of a mechanism that the ground holds, at one state, as people call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.dynamics.ground import GROUND, add_change, solve_on_ground, stop_slip
from rtmms.dynamics.prepare import prepared, vector
from rtmms.dynamics.row_sets import LEAST, RANKED
from rtmms.memory import Record
from rtmms.model.compiled import Model, State
from rtmms.model.layout import S_ACCELERATION
from rtmms.spatial import Array


@dataclass(frozen=True, slots=True)
class OnGround:
    """What the recursion yields of a mechanism with contacts.

    base_acceleration  (6,) m/s2, rad/s2   component derivative of the base twist, base frame
    qdd (n,), torque (n,)                  as for `hybrid_dynamics`
    reaction           (m,) of each row, N; rows that depend on others and come later bear none
    rank               of the rows on base and passive joints; least: the least part of a row that others did not imply
    """

    base_acceleration: Array
    qdd: Array
    torque: Array
    reaction: Array
    rank: int
    least: float


def ground_record(model: Model) -> Record:
    """A model's rows of contact for kernels, with scratch for one evaluation at a time."""
    ground = model.ground
    values = {"rows": ground.rows, "first": ground.first, "joint": ground.joint, "length": ground.length}
    return GROUND.make(values, {"n": model.n})


def ground_dynamics(model: Model, state: State, drive: Any, *, wrench: Any = None) -> OnGround:
    """Accelerations where torques are given, torques where accelerations are given, on the ground.

    drive   (n,) the acceleration of each imposed joint, the torque of each other
    wrench  (bodies, 6) from outside on each described body. Raises ModelError for a wrong shape.
    Whether the imposed accelerations contradict the contacts is not looked at (rtmms.locomotion.reduced does).
    """
    n, ground = model.n, ground_record(model)
    drive, s = vector(drive, (n,), f"{model.name}: drive"), prepared(model, state, wrench)
    qdd, torque = np.zeros(n), np.zeros(n)
    solve_on_ground(
        model.topology, model.constant, ground, model.imposed, drive, state.q, state.qd, 0.0, s, qdd, torque
    )  # fmt: skip
    last = ground.room[-1]
    base = s[0, S_ACCELERATION : S_ACCELERATION + 6].copy()
    return OnGround(base, qdd, torque, ground.reaction, round(last[RANKED]), float(last[LEAST]))


def stopped(model: Model, state: State) -> State:
    """The state after an inelastic impact with the ground: the rows hold, imposed joints keep their rates."""
    n, ground, s = model.n, ground_record(model), prepared(model, state)
    stop_slip(model.topology, model.constant, ground, model.imposed, state.qd, s, np.zeros(n))
    y = np.concatenate([np.zeros(7), state.q, state.twist, state.qd])
    add_change(y, s, model.imposed, ground.change)
    return State(state.position, state.orientation, state.q, y[7 + n : 13 + n], y[13 + n :])
