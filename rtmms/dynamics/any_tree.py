"""The three passes on any compiled tree, rigid or with modal bodies, from Python: which kernels a model takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.modal_motion import MODAL, configure_modal, outward_modal
from rtmms.dynamics.modal_passes import solve_modal
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.memory import Record
from rtmms.model.compiled import Model


def modal_record(model: Model, dtype: Any = float) -> Record:
    """A model's modal bodies for kernels, with scratch of their own."""
    modes = model.modes
    values = {"book": modes.book, "members": modes.members, "shape": modes.shape}
    kind = complex if np.dtype(dtype).kind == "c" else float
    return MODAL.make(values, {"modal_room": max(modes.room, 1)}, dtype=kind)


def stand(model: Model, position: Any, orientation: Any, q: Any, s: Any) -> None:
    """Transforms of all rows, gravity in their frames, world poses."""
    if len(model.modes):
        configure_modal(model.topology, model.constant, modal_record(model, s.dtype), orientation, model.gravity, q, s)
    else:
        configure(model.topology, model.constant, orientation, model.gravity, q, s)
    place(model.topology, position, orientation, s)


def move(model: Model, twist: Any, q: Any, qd: Any, s: Any) -> Any:
    """Twists of all rows, after `stand`; the modal bodies' record, for `solve_any`, None for rigid trees."""
    if not len(model.modes):
        outward(model.topology, twist, qd, s)
        return None
    modal = modal_record(model, s.dtype)
    outward_modal(model.topology, modal, twist, q, qd, s)
    return modal


def solve_any(
    model: Model, modal: Any, base_mode: int, imposed: Any, drive: Any, q: Any, qd: Any, s: Any, qdd: Any, torque: Any
) -> None:
    """After `move` and whatever adds to S_WRENCH; see `solve`."""
    work = np.zeros((6, 6), s.dtype)
    tree = (model.topology, model.constant)
    if modal is None:
        solve(*tree, base_mode, imposed, drive, q, qd, 0.0, s, work, qdd, torque)
    else:
        solve_modal(*tree, modal, base_mode, imposed, drive, q, qd, 0.0, s, work, qdd, torque)
