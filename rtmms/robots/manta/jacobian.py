"""Provide A and B of a manta's step by its structure, for `rtmms.analysis.derivatives`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rtmms.analysis.block_matrices import Bordered
from rtmms.base.memory import Record
from rtmms.plant.optional_protocols import Coordinates
from rtmms.robots.manta import layout as lay
from rtmms.robots.manta.chain_jacobian import GROUP, MAX_TRACED_LINKS
from rtmms.robots.manta.fin_layout import LANES
from rtmms.robots.manta.jacobian_layout import (
    ACCEL_AT,
    ACCEL_LATER_AT,
    AFTER_LATER,
    ATTITUDE_AT,
    BODY,
    COMMAND_AT,
    INPUTS,
    MOTIONS,
    ROD_WORDS,
    RODS,
    RODS_AT,
    TRACED,
)
from rtmms.robots.manta.methods import METHODS
from rtmms.robots.manta.model import Array, MantaModel
from rtmms.robots.manta.step_jacobian import traced_jacobian


def has_manta_structure(model: MantaModel, varying: bool) -> bool:
    """Return whether the structured derivatives apply to such a manta.

    They need the sequential or the monolithic coupling, chains whose derivatives are generated, and a body that moves.
    They also need the linearly implicit method, drag along each link's own normal, and no current that varies.

    Parameters
    ----------
    model : MantaModel
        Compiled manta.
    varying : bool
        Whether the current varies in space or time.

    Returns
    -------
    bool
        Whether they apply.
    """
    finned = model.finned
    return (
        finned.coupling in (lay.SEQUENTIAL, lay.MONOLITHIC) and int(finned.links) <= MAX_TRACED_LINKS
        and not model.body.fixed and not varying and list(METHODS)[finned.integrator] == "implicit"
        and finned.normal == lay.NORMAL_LINK
    )  # fmt: skip


class MantaJacobian:
    """Derivatives of a manta's step (rtmms.analysis.chart.Structure).

    Parameters
    ----------
    memory : Record
        The jacobian's own record of the manta.
    coordinates : Coordinates
        Coordinates of the state.
    by : (k + 4,) array
        Differences to either side, of the coordinates and the commands.

    Attributes
    ----------
    a : Bordered
        A of the last step.
    """

    def __init__(self, memory: Record, coordinates: Coordinates, by: Array) -> None:
        finned = memory.finned
        links, chains, k = int(finned.links), int(finned.chains), len(coordinates.names)
        width = 2 * links
        count = width * 2 * chains
        heads = k - count
        body, bound = heads - RODS, 12 if finned.coupling == lay.MONOLITHIC else 0
        chain_indices = by[heads:k].reshape(2, 2, links, chains)[:, 0, :, 0].ravel()  # the same for all chains
        after = np.array([0] * 6 + list(range(7, 7 + BODY - 6)), dtype=np.int64)
        values = {
            "places": coordinates.state_indices[:heads].copy(), "places_after": after,
            "by": np.concatenate([by[:heads], by[k:], chain_indices]),
        }  # fmt: skip
        sizes = {
            "wide": memory.state.size, "heads": heads, "width": width, "count": count, "groups": 2 * chains,
            "blocks": int(finned.blocks), "rows": memory.rows.shape[0], "links": links, "parts": 2 * int(finned.blocks),
            "bound": bound, "tiles": 4 if bound else 3, "lanes": 2 * int(finned.blocks) * (LANES // GROUP),
        }  # fmt: skip
        values |= {"targets": _targets(body, bound), "every": np.arange(2 * MOTIONS, dtype=np.int64)}
        self._links, self._room = (0,) * links, TRACED.make(values, sizes)
        self._memory = memory
        members = np.arange(count).reshape(2, 2, links, chains).transpose(0, 2, 1, 3).reshape(width, 2 * chains)
        room = self._room
        self._bound, spread, projection = bound, None, None
        if bound:
            spread, projection = room.below[heads + INPUTS : heads + INPUTS + bound].T, np.zeros((bound, k))
        self.a = Bordered(
            room.head[:heads].T,
            room.right[:body],
            room.below[:heads].T,
            room.chain_blocks,
            members.copy(),
            spread,
            projection,
        )
        self.b_head, self.b_below = room.head[heads:].T, room.below[heads : heads + INPUTS].T

    def take(self, state: Array, command: Array, reference: Array, time: float) -> bool:
        """Compute `a` and `b` of the step from a state.

        Parameters
        ----------
        state : (w,) array
            State of the manta.
        command : (4,) array
            Command held over the step, rad.
        reference : (7,) array
            Pose to which the final pose is relative.
        time : float
            Without effect.

        Returns
        -------
        bool
            False where the step fails.
        """
        room, memory = self._room, self._memory
        room.origin[:], room.commands[:], room.reference[:] = state, command, reference
        if traced_jacobian(memory, memory.many, self._links, room) == lay.OK:
            if self.a.projection is not None:
                heads = len(self.a.head)
                self.a.projection[:, :heads], self.a.projection[:, heads:] = (
                    room.projection[:heads].T,
                    room.right[AFTER_LATER:],
                )
            return True
        memory.clear()
        return False

    @property
    def b(self) -> Array:
        """(k, 4) copy of B."""
        below = self.b_below
        if self.a.spread is not None:
            below = below + self.a.spread @ self._room.projection[len(self.a.head) :].T
        return np.concatenate([self.b_head, below])


def _targets(body: int, bound: int) -> npt.NDArray[np.int64]:
    """Return (2, ways): the row of `below` for each way to move a fin's support; the last row is unused."""
    ways = ACCEL_LATER_AT + (6 if bound else 0)
    heads = body + RODS
    targets = np.full((2, ways), heads + INPUTS + bound, dtype=np.int64)
    for f in range(2):
        targets[f, :6] = range(6, 12)
        targets[f, RODS_AT : RODS_AT + 2 * ROD_WORDS] = body + 2 * ROD_WORDS * f + np.arange(2 * ROD_WORDS)
        targets[f, COMMAND_AT : COMMAND_AT + 2] = heads + 2 * f + np.arange(2)
        targets[f, ATTITUDE_AT : ATTITUDE_AT + 3] = range(3, 6)
        if bound:
            targets[f, ACCEL_LATER_AT:] = heads + INPUTS + np.arange(6)
            targets[f, ACCEL_AT : ACCEL_AT + 6] = heads + INPUTS + 6 + np.arange(6)
        else:
            targets[f, ACCEL_AT : ACCEL_AT + 6] = range(12, 18)
    return targets


assert AFTER_LATER == 12
