"""What tells A and B of a step by the structure of the equations, where it is known: of any plant."""

from __future__ import annotations

from typing import Any

from rtmms.analysis.abilities import Structure, Structured
from rtmms.jit import COMPILED
from rtmms.mechanism.running import Running
from rtmms.spatial import Array


def structure_of(plant: Any, by: Array) -> Structure | None:
    """The plant's own (rtmms.analysis.abilities.Structured), or that of a tree; None where differences have to serve.

    by  (k + n,) how far coordinates and commands are displaced to either side, where they are
    """
    if isinstance(plant, Structured):
        return plant.structure(by)
    if COMPILED and isinstance(plant, Running):
        from rtmms.analysis.tree_jacobian.structure import TreeJacobian, covered  # its kernels are for who asks

        if covered(plant):
            return TreeJacobian(plant, by)
    return None
