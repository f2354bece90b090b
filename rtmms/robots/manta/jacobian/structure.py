"""A and B of a manta's step by its structure, as `rtmms.analysis.derivatives` asks for them."""

from __future__ import annotations

import numpy as np

from rtmms.analysis.bordered import Bordered
from rtmms.memory import Record
from rtmms.plant import Coordinates
from rtmms.robots.manta.coupling import layout as lay
from rtmms.robots.manta.coupling.tableaus import METHODS
from rtmms.robots.manta.jacobian.layout import BODY, HEAD, INPUTS, JACOBIAN, ROD_WORDS
from rtmms.robots.manta.jacobian.step import jacobian
from rtmms.robots.manta.jacobian.traced import LINKS as TRACED
from rtmms.robots.manta.model import Array, MantaModel

__all__ = ["MantaJacobian", "covered"]


def covered(model: MantaModel, varying: bool) -> bool:
    """Whether the structure is that of a step of such a manta: the sequential coupling, a body that moves, the linearly
    implicit method, drag along each link's own normal, and no current that varies."""
    finned = model.finned
    return (
        finned.coupling == lay.SEQUENTIAL and not model.body.fixed and not varying
        and list(METHODS)[finned.integrator] == "implicit" and finned.normal == lay.NORMAL_LINK
    )  # fmt: skip


class MantaJacobian:
    """See rtmms.analysis.abilities.Structure.

    memory   a record of the manta of its own
    by       (k + 4,) steps to either side, of the coordinates and the commands
    """

    def __init__(self, memory: Record, told: Coordinates, by: Array) -> None:
        finned = memory.finned
        links, chains, k = int(finned.links), int(finned.chains), len(told.names)
        width, count = 2 * links, k - HEAD
        own = by[HEAD:k].reshape(2, 2, links, chains)[:, 0, :, 0].ravel()  # the same for all chains
        after = np.array([0] * 6 + list(range(7, 7 + BODY - 6)), dtype=np.int64)
        values = {
            "places": told.words[:HEAD].copy(), "places_after": after, "by": np.concatenate([by[:HEAD], by[k:], own])
        }  # fmt: skip
        sizes = {
            "wide": memory.state.size, "head": HEAD + INPUTS, "width": width, "count": count, "groups": 2 * chains,
            "blocks": int(finned.blocks), "rows": memory.rows.shape[0], "links": links, "parts": 2 * int(finned.blocks),
        }  # fmt: skip
        self._memory, self._room = memory, JACOBIAN.make(values, sizes)
        self._links = (0,) * links if links in TRACED else None
        members = np.arange(count).reshape(2, 2, links, chains).transpose(0, 2, 1, 3).reshape(width, 2 * chains)
        room = self._room
        self.a = Bordered(room.head[:HEAD].T, room.right, room.below[:HEAD].T, room.own, members.copy())
        self.b_head, self.b_below = room.head[HEAD:].T, room.below[HEAD:].T

    def take(self, state: Array, command: Array, reference: Array, time: float) -> bool:
        """`a` and `b` of the step from there, with the pose after told from `reference` (7,); False where it fails.
        time: of no matter to it."""
        room = self._room
        room.origin[:], room.commands[:], room.reference[:] = state, command, reference
        if jacobian(self._memory, self._memory.many, self._links, room) == lay.OK:
            return True
        self._memory.clear()
        return False

    @property
    def b(self) -> Array:
        """(k, 4), a copy."""
        return np.concatenate([self.b_head, self.b_below])


assert HEAD == BODY + 4 * ROD_WORDS
