"""A and B of a step of a tree by its structure, as `rtmms.analysis.derivatives` asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.analysis.bordered import Bordered
from rtmms.analysis.tiles import COLUMNS
from rtmms.analysis.tree_jacobian.layout import COMMAND, FOLLOWED, JOINTS, RATE, TARGET, TREE_JACOBIAN, VALUE
from rtmms.analysis.tree_jacobian.step import tree_accelerations, tree_jacobian
from rtmms.mechanism.body_actuators import CHANNEL, LAG
from rtmms.mechanism.chart import RATE_RAD_S
from rtmms.mechanism.joint_bounds import BOUNDED, limited
from rtmms.mechanism.joint_laws import GAIN, OFFSET, TORQUE
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.running import Running
from rtmms.model.layout import BASE_FREE, C_COULOMB
from rtmms.spatial import Array


def covered(plant: Running) -> bool:
    """Whether the structure is that of a step of such a tree.

    Rigid bodies, one-step methods, no contacts, tendons, limits or stops of joints, sections' couples, commanded
    rates, or Coulomb friction of a free joint.
    """
    system, method, free = plant.system, METHODS[plant.method], ~plant.model.imposed
    tree = system.tree
    owned = [
        (drive.kind, j) for drive in plant.drives if drive.kind in (TORQUE, OFFSET, GAIN)
        for j in (range(plant.model.n) if drive.joint < 0 else [drive.joint])
    ]  # fmt: skip
    return bool(
        not method.multistep and plant.flow.field is None
        and tree.ground is None and tree.modal is None and system.hold.coast is None
        and not np.any(limited(tree.bounds)[free]) and not np.any(tree.bounds[free, BOUNDED])
        and not np.any(tree.constant[1:][free, C_COULOMB])
        and not len(plant.attached.tendons)
        and not any(getattr(element, "couple", 0.0) for _, element in plant.model.elements)
        and len(owned) == len(set(owned))
    )  # fmt: skip


class TreeJacobian:
    """See rtmms.analysis.abilities.Structure.

    plant    a tree that is `covered`
    by       (k + n_actuators,) steps to either side, of the coordinates and the commands
    """

    def __init__(self, plant: Running, by: Array) -> None:
        told, model, n = plant.coordinates(), plant.model, plant.model.n
        self._system = system = plant.system.fork()
        self._start = system.hold.cell("start")
        k, commands = len(told.names), len(plant.actuators)
        base = 6 if model.base_mode == BASE_FREE else 0
        column = {int(word): i for i, word in enumerate(told.words) if i >= base}
        first = system.memory.ctypes.data

        def at(part: Any, index: int) -> int:
            return column.get((part.ctypes.data - first) // 8 + index, -1)

        vector, hold = system.motion.vector, system.hold
        place = np.full((n, 2), -1, dtype=np.int64)
        followed = np.full((n, FOLLOWED), -1, dtype=np.int64)
        torques = np.full(n, -1, dtype=np.int64)
        for j in np.flatnonzero(~model.imposed).tolist():
            place[j] = at(vector, 7 + j), at(vector, 13 + n + j)
        for a, drive in enumerate(plant.drives):
            for j in range(n) if drive.joint < 0 else [drive.joint]:
                if drive.kind == TORQUE and 0 <= j < n:
                    torques[j] = k + a
                elif drive.kind in (OFFSET, GAIN):
                    m = drive.kind - 1
                    followed[j, 4 * m + VALUE] = at(hold.servo, 4 * j + 2 * m)
                    followed[j, 4 * m + RATE] = at(hold.servo, 4 * j + 2 * m + 1)
                    followed[j, 4 * m + TARGET] = at(hold.target, 2 * j + m)
                    followed[j, 4 * m + COMMAND] = k + a
        numbers = system.pushes.numbers
        motors = np.array(
            [[at(system.pushes.motor, b) if row[LAG] > 0.0 else -1, k + int(row[CHANNEL])]
             for b, row in enumerate(numbers)], dtype=np.int64,
        ).reshape(-1, 2)  # fmt: skip
        free = np.array([-1] * base + np.flatnonzero(~model.imposed).tolist(), dtype=np.int64)
        rows, columns = JOINTS + 3 * n + 2 * len(numbers), -(-(k + commands) // COLUMNS) * COLUMNS
        length = float(np.cbrt(model.mass / 1000.0)) if model.mass > 0.0 else 1.0
        far = 1e-6 * RATE_RAD_S * np.array([length] * 3 + [1.0] * 3)
        acts = len(system.fluid.rows) > 0 or len(system.fluid.tethers) > 0 or system.pushes.momentum is not None
        values = {
            "place": place, "followed": followed, "torques": torques, "motors": motors, "free": free,
            "reach": np.array(by[k:], dtype=float), "far": far, "base": base, "states": k,
            "watered": acts,
        }  # fmt: skip
        sizes = {
            "wide": system.memory.size, "columns": columns, "rows": rows, "moving": JOINTS + 2 * n, "bodies": n + 1,
            "stages": len(system.method.nodes), "parts": len(system.method.parts), "words": k,
        }  # fmt: skip
        self._room = TREE_JACOBIAN.make(values, sizes)
        whole, none = self._room.found, np.zeros((0, 0))
        self.a = Bordered(whole[:, :k], none, np.zeros((0, k)), np.zeros((0, 0, 0)), np.zeros((0, 0), dtype=np.int64))
        self._b = whole[:, k : k + commands]

    def take(self, state: Array, command: Array, reference: Array, time: float) -> bool:
        """`a` and `b` of the step from there; False where it fails."""
        room = self._room
        room.origin[:], room.commands_given[:] = state, command
        if room.base:
            room.reference[:] = reference
        self._start[0] = time
        if tree_jacobian(self._system, room):
            return True
        self._system.clear()
        return False

    def accelerations(self, state: Array, command: Array, time: float) -> Array:
        """Slopes of the unknown accelerations, of a free base and of joints that are not imposed, there: (6 + m, rows).

        Columns: pose and twist of the base (6 + 6), q, qd of all n joints, torques of those that are free or
        accelerations of those that are imposed (n each), lagged commands of actuators on bodies, and the commands of
        those that spin.
        """
        room = self._room
        room.origin[:], room.commands_given[:] = state, command
        self._start[0] = time
        tree_accelerations(self._system, room)
        slopes: Array = room.residual.copy()
        return slopes

    @property
    def b(self) -> Array:
        """(k, n_actuators), a copy."""
        found: Array = self._b.copy()
        return found
