"""Checks of modal bodies: each refusal names the body, the mode or the section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.model import layout as at
from rtmms.model.description import Body, Modal, Section
from rtmms.model.modal_rows import M_COUNT, M_FIRST, M_SHAPE, Modes
from rtmms.model.solids import Placement
from rtmms.spatial import PACKED_SIZE, Array, adjoint, unpack_inertia


def all_bodies(bodies: Sequence[Body]) -> list[Body]:
    """The bodies and their sections'."""
    return [one for body in bodies for one in (body, *_of_sections(body))]


def parts_of(bodies: Sequence[Body]) -> dict[str, set[str]]:
    """Of each body its name and its sections'."""
    return {body.name: {body.name, *(one.name for one in _of_sections(body))} for body in bodies}


def _of_sections(body: Body) -> list[Body]:
    return [] if body.modal is None else [section.body for section in body.modal.sections]


def check_modal(bodies: Sequence[Body]) -> None:
    """What stands where another thing belongs, and bodies within sections that bend themselves."""
    for body in bodies:
        modal, place = body.modal, f"body '{body.name}': modal"
        if modal is None:
            continue
        if not isinstance(modal, Modal):
            raise ModelError(f"{place}: expected a Modal, got {modal!r}")
        if isinstance(modal.names, str) or not modal.names or len(set(modal.names)) < len(modal.names):
            raise ModelError(f"{place}: expected names of modes, each once, got {modal.names!r}")
        for k, section in enumerate(modal.sections):
            if not isinstance(section, Section) or not isinstance(section.body, Body):
                raise ModelError(f"{place}: sections[{k}]: expected a Section, got {section!r}")
            if not isinstance(section.placement, Placement):
                raise ModelError(f"{place}: section '{section.body.name}': placement: got {section.placement!r}")
            if section.body.modal is not None:
                raise ModelError(f"{place}: section '{section.body.name}' must be rigid, got one that is modal")


def modal_numbers(modal: Modal, place: str) -> tuple[Array, Array]:
    """Stiffness and damping (modes,)."""
    found = []
    for name in ("stiffness", "damping"):
        try:
            value = np.array(getattr(modal, name), dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"{place}: {name} must be numbers, got {getattr(modal, name)!r}") from None
        count = len(modal.names)
        if value.shape == (count, count):
            off = value - np.diag(np.diag(value))
            if np.max(np.abs(off), initial=0.0) > 1e-12 * np.max(np.abs(value), initial=0.0):
                raise ModelError(
                    f"{place}: {name} couples modes, got {value.tolist()}; take the body's own (rtmms.model.modal."
                    "own_modes)"
                )
            value = np.diag(value)
        value = value + np.zeros(count) if value.shape == () else value
        if value.shape != (count,) or not np.all(np.isfinite(value)) or np.any(value < 0.0):
            raise ModelError(f"{place}: {name} must be {count} finite numbers >= 0, got {value.tolist()}")
        found.append(value)
    return found[0], found[1]


def check_modes(topology: Any, constant: Array, modes: Modes, names: Sequence[str], where: str) -> None:
    """Refuse modes that move no mass, or move it as the whole body or another mode moves: in plain numpy, at r = 0."""
    for row in np.flatnonzero(modes.book[:, M_COUNT]):
        first, count = modes.book[row, [M_FIRST, M_COUNT]]
        members = modes.members[first : first + count]
        total = np.zeros((6 + count, 6 + count))
        total[:6, :6] += _inertia(constant[row])
        for j in np.flatnonzero((modes.book[:, M_SHAPE] >= 0) & (topology[:, at.T_PARENT] == row)):
            own = modes.shape[modes.book[j, M_SHAPE] :][: 3 + 6 * count]
            rotation = constant[j, at.C_ROT : at.C_ROT + 9].reshape(3, 3)
            position = constant[j, at.C_POS : at.C_POS + 3]
            table, arm = own[3:].reshape(count, 6), position - own[:3]
            moved = np.hstack([table[:, :3] + np.cross(table[:, 3:], arm), table[:, 3:]])
            turn = np.kron(np.eye(2), rotation.T)
            j_all = np.hstack([adjoint(rotation, position), turn @ moved.T])
            total += j_all.T @ _inertia(constant[j]) @ j_all
        own_names = [names[mode - 1] for mode in members]
        for k, name in enumerate(own_names):
            if total[6 + k, 6 + k] <= 0.0:
                raise ModelError(f"{where}: mode '{name}' moves no mass; its sections' shapes are 0, or massless")
        size = np.sqrt(np.where(np.diag(total) > 0.0, np.diag(total), 1.0))
        scaled = total / np.outer(size, size)
        # what is left of the modes once the whole body's motion is taken out
        left = scaled[6:, 6:] - scaled[6:, :6] @ np.linalg.pinv(scaled[:6, :6], rcond=1e-10) @ scaled[:6, 6:]
        values, vectors = np.linalg.eigh(left)
        if values[0] < 1e-9:
            worst = own_names[int(np.argmax(np.abs(vectors[:, 0])))]
            raise ModelError(
                f"{where}: mode '{worst}' moves as the whole body does, or as its other modes do: the shape does not "
                "meet its boundary, where it must be 0 (clamped), or is not independent"
            )


def _inertia(constant: Array) -> Array:
    return unpack_inertia(constant[at.C_INERTIA : at.C_INERTIA + PACKED_SIZE])
