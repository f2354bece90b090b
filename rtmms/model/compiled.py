"""The compiled model: read-only flat arrays for kernels, and names for people."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import PACKED_SIZE, Array, quaternion_matrix, unpack_inertia
from rtmms.model.contact_rows import Ground
from rtmms.model.elements import Element
from rtmms.model.layout import BASE_FREE, C_INERTIA, C_MASS, S_WIDTH, T_IMPOSED, T_PARENT
from rtmms.model.modal_rows import Modes

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Model:
    """What `rtmms.compile` returns.

    topology, constant   see rtmms.model.layout; read-only
    base_mode            BASE_FREE, BASE_PRESCRIBED or BASE_FIXED
    gravity              (3,) m/s2, world
    joint_names          (n,) names of the coordinates, in order
    body_names           names of the description's bodies, the base first
    carrier              (bodies,) row of the compiled body that carries each of them
    offset_rotation, offset_position
                         (bodies, 3, 3) and (bodies, 3): the described body's frame in its carrier's frame
    elements             (row, element) pairs, placements in the row's compiled frame
    viscous              (n + 1, 21) packed resistance of each compiled body in a creeping fluid; read-only
    ground               rows of contact with the ground; none for most
    modes                modal bodies; none for most
    floor                (k, FLOOR_WIDTH) points that a floor meets (rtmms.model.floor_rows); read-only
    markers              name, frame and numbers of each marker (rtmms.model.floor_rows)
    """

    name: str
    topology: IntArray
    constant: Array
    base_mode: int
    gravity: Array
    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]
    carrier: IntArray
    offset_rotation: Array
    offset_position: Array
    elements: tuple[tuple[int, Element], ...]
    viscous: Array
    ground: Ground
    modes: Modes
    floor: Array
    markers: tuple[tuple[str, str, Array], ...] = ()

    @property
    def n(self) -> int:
        """Number of joint coordinates."""
        return len(self.joint_names)

    @property
    def velocities(self) -> int:
        """Number of velocities of the system: 6 + n with a free base, n otherwise."""
        return self.n + (6 if self.base_mode == BASE_FREE else 0)

    @property
    def mass(self) -> float:
        """kg, without the fluid."""
        return float(self.constant[:, C_MASS].sum())

    @property
    def imposed(self) -> npt.NDArray[np.bool_]:
        """(n,) True where the description gives the motion and asks for the torque."""
        return self.topology[1 : self.n + 1, T_IMPOSED].astype(bool)

    @cached_property
    def digest(self) -> str:
        """A hash of everything that decides the dynamics."""
        h = hashlib.sha256()
        for array in (self.topology, self.constant, np.array([self.base_mode]), self.gravity):
            h.update(np.ascontiguousarray(array).tobytes())
        if np.any(self.viscous):
            h.update(self.viscous.tobytes())
        if len(self.ground.rows):
            h.update(self.ground.rows.tobytes())
        if len(self.modes):
            h.update(self.modes.book.tobytes() + self.modes.shape.tobytes())
        if len(self.floor):
            h.update(self.floor.tobytes())
        h.update("\0".join((*self.joint_names, *self.body_names)).encode())
        return h.hexdigest()

    def joint(self, name: str) -> int:
        """Index of a coordinate in q."""
        if name not in self.joint_names:
            raise UnknownNameError("joint", name, self.joint_names)
        return self.joint_names.index(name)

    def body(self, name: str) -> int:
        """Index of a described body in poses, twists and wrenches."""
        if name not in self.body_names:
            raise UnknownNameError("body", name, self.body_names)
        return self.body_names.index(name)

    def parent(self, row: int) -> int:
        return int(self.topology[row, T_PARENT])

    def inertia(self, row: int) -> Array:
        """(6, 6) of a compiled body, rigid and added."""
        return unpack_inertia(self.constant[row, C_INERTIA : C_INERTIA + PACKED_SIZE])

    def scratch(self, dtype: type = float) -> Array:
        """A fresh scratch array for one evaluation at a time."""
        return np.zeros((self.topology.shape[0], S_WIDTH), dtype=dtype)

    def state(self) -> State:
        """At the world's origin, upright, all joints at 0, at rest."""
        return State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(self.n), np.zeros(6), np.zeros(self.n))


@dataclass(slots=True)
class State:
    """Where a mechanism is and how it moves.

    position     (3,) m, base origin, world frame
    orientation  (4,) w, x, y, z, base to world
    q            (n,) rad or m, joint positions
    twist        (6,) m/s, rad/s, base twist in the base frame
    qd           (n,) rad/s or m/s
    """

    position: Array
    orientation: Array
    q: Array
    twist: Array
    qd: Array

    def check(self, model: Model) -> State:
        """Itself, as contiguous float64; ModelError where a shape is wrong or a number is not finite."""
        sizes = {"position": 3, "orientation": 4, "q": model.n, "twist": 6, "qd": model.n}
        for field, size in sizes.items():
            value = getattr(self, field)
            try:
                array = np.ascontiguousarray(value, dtype=complex if np.iscomplexobj(value) else float)
            except (TypeError, ValueError):
                raise ModelError(
                    f"{model.name}: state.{field}: expected {size} finite numbers, got {value!r:.60}"
                ) from None
            if array.shape != (size,):
                raise ModelError(f"{model.name}: state.{field} must have shape ({size},), got {array.shape}")
            if not np.all(np.isfinite(array)):
                raise ModelError(f"{model.name}: state.{field} must be finite, got {array.tolist()}")
            setattr(self, field, array)
        if not np.any(self.orientation):
            raise ModelError(f"{model.name}: state.orientation must be a quaternion other than 0")
        return self

    @property
    def rotation(self) -> Array:
        """(3, 3) base to world."""
        return quaternion_matrix(self.orientation)

    def copy(self) -> State:
        return State(
            self.position.copy(), self.orientation.copy(), self.q.copy(), self.twist.copy(), self.qd.copy()
        )  # fmt: skip
