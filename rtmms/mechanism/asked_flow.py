"""A flow that is a function of place and time, asked once a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtmms.dynamics.any_tree import stand
from rtmms.fluids.immersed import CENTRE, held_flow
from rtmms.mechanism.group import displace
from rtmms.model.layout import S_WORLD_POS, S_WORLD_ROT
from rtmms.spatial import Array, quaternion_matrix

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.fluids.ambient import Flow
    from rtmms.fluids.immersed import Immersed
    from rtmms.model.compiled import Model

    class InWater(Protocol):
        """What is asked for: its model, its fluid and the flow."""

        model: Model
        flow: Flow
        immersed: Immersed


def moved_on(vector: Array, n: int, ahead: float) -> Array:
    """The state (13 + 2 n,) `ahead` seconds on, at its present velocity."""
    rate, y = np.zeros(12 + 2 * n), np.empty_like(vector)
    rate[:3] = quaternion_matrix(vector[3:7]) @ vector[7 + n : 10 + n]
    rate[3:6], rate[6 : 6 + n] = vector[10 + n : 13 + n], vector[13 + n :]
    displace(vector, rate, ahead, y)
    return y


def element_places(plant: InWater, vector: Array, s: Array) -> Array:
    """(e, 3) m, world: where the elements' centres stand in a state (13 + 2 n,)."""
    immersed = plant.immersed
    stand(plant.model, vector[:3], vector[3:7], vector[7 : 7 + plant.model.n], s)
    rows = s[immersed.rows]
    rotation = rows[:, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(-1, 3, 3)
    centre = immersed.common[:, CENTRE : CENTRE + 3]
    out: Array = rows[:, S_WORLD_POS : S_WORLD_POS + 3] + np.einsum("eij,ej->ei", rotation, centre)
    return out


def ask_flow(plant: InWater, vector: Array, time: float, ahead: float, s: Array, held: Array) -> None:
    """Ask the flow's function, `ahead` seconds from `time`, where the elements will then be at their present speed:
    half a step ahead, what is held over the step is right to second order.

    vector (13 + 2 n,) state; s the model's scratch; held (e, 3) m/s, written
    """
    y = moved_on(vector, plant.model.n, ahead)
    stand(plant.model, y[:3], y[3:7], y[7 : 7 + plant.model.n], s)
    held[:] = held_flow(plant.model, plant.flow, s, plant.immersed, time + ahead)
