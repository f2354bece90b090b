"""How Python enters a step of body and fins: by the address of one record (rtmms.memory), so that a call makes nothing.

What a manta may lack goes in beside it, None or any word, so that the kernels are compiled without it.
"""

from __future__ import annotations

from rtmms.jit import kernel
from rtmms.memory import Record
from rtmms.robots.manta.coupling.account import account
from rtmms.robots.manta.coupling.layout import manta_at
from rtmms.robots.manta.coupling.settle import settle
from rtmms.robots.manta.coupling.step import step


@kernel(fused=False)
def enter_step(address: int, many: int | None, drift: int | None, normals: int | None) -> int:
    """One step of the manta whose record stands at `address`; its status."""
    return step(manta_at(address, (many, drift, normals)))


@kernel
def enter_account(address: int, many: int | None, drift: int | None, normals: int | None, g: float) -> int:
    """All outputs of its state; the status of their stage."""
    return account(manta_at(address, (many, drift, normals)), g)


@kernel
def enter_settle(address: int, many: int | None, drift: int | None, normals: int | None) -> int:
    """What follows from the coordinates of its state, in order; its status."""
    return settle(manta_at(address, (many, drift, normals)))


def arguments(manta: Record) -> tuple[int, int | None, int | None, int | None]:
    """Of a record of MANTA, for all of them."""
    absent = (manta.many is None, manta.drift is None, manta.normals is None)
    many, drift, normals = (None if lacks else 1 for lacks in absent)
    return manta.address, many, drift, normals
