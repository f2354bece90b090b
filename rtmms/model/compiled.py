"""Provide the compiled model, read-only flat arrays for kernels and names of their rows, and the state of a tree."""

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
    """A compiled mechanism, as `rtmms.compile` returns it.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    topology : (n + 1, 3) array of int64
        Columns T_* of `rtmms.model.layout`; read-only.
    constant : (n + 1, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`; read-only.
    base_mode : int
        BASE_FREE, BASE_PRESCRIBED or BASE_FIXED.
    gravity : (3,) array
        m/s2, world.
    joint_names : (n,) tuple of str
        Names of the coordinates, in order.
    body_names : tuple[str, ...]
        Names of the description's bodies, the base first.
    carrier : (bodies,) array of int64
        Row of the compiled body that carries each body.
    offset_rotation : (bodies, 3, 3) array
        Rotation of the described body's frame in its carrier's frame.
    offset_position : (bodies, 3) array
        Origin of the described body's frame in its carrier's frame, m.
    elements : tuple[tuple[int, Element], ...]
        (row, element) pairs; placements are in the row's compiled frame.
    viscous : (n + 1, 21) array
        Packed resistance of each compiled body in a creeping fluid; read-only.
    ground : Ground
        Rows of contact with the ground; most models have none.
    modes : Modes
        Modal bodies; most models have none.
    floor : (k, FLOOR_WIDTH) array
        Points that a floor touches (rtmms.model.floor_rows); read-only.
    markers : tuple[tuple[str, str, array], ...], default ()
        Name, frame and numbers of each marker (rtmms.model.floor_rows).

    Examples
    --------
    >>> import rtmms
    >>> from rtmms import model as m
    >>> model = rtmms.compile(m.Mechanism("ball", [m.Body("ball", solids=[m.Ellipsoid(0.1, 0.1, 0.1, 1000.0)])]))
    >>> model.n, model.velocities, round(model.mass, 3)
    (0, 6, 4.189)
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
        """Mass without the fluid, kg."""
        return float(self.constant[:, C_MASS].sum())

    @property
    def imposed(self) -> npt.NDArray[np.bool_]:
        """(n,) True where the description prescribes the motion and the torque is computed."""
        return self.topology[1 : self.n + 1, T_IMPOSED].astype(bool)

    @cached_property
    def digest(self) -> str:
        """Hash of everything that affects the dynamics."""
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
        """Return the index of a coordinate in q.

        Parameters
        ----------
        name : str
            Name of the coordinate.

        Returns
        -------
        int
            Index from 0.

        Raises
        ------
        UnknownNameError
            There is no such coordinate.
        """
        if name not in self.joint_names:
            raise UnknownNameError("joint", name, self.joint_names)
        return self.joint_names.index(name)

    def body(self, name: str) -> int:
        """Return the index of a described body in poses, twists and wrenches.

        Parameters
        ----------
        name : str
            Name of the body.

        Returns
        -------
        int
            Index from 0; the base is 0.

        Raises
        ------
        UnknownNameError
            There is no such body.
        """
        if name not in self.body_names:
            raise UnknownNameError("body", name, self.body_names)
        return self.body_names.index(name)

    def parent(self, row: int) -> int:
        """Return the row of a compiled body's parent.

        Parameters
        ----------
        row : int
            Row of the body.

        Returns
        -------
        int
            Row; -1 for the base.
        """
        return int(self.topology[row, T_PARENT])

    def inertia(self, row: int) -> Array:
        """Return the inertia of a compiled body, rigid and added.

        Parameters
        ----------
        row : int
            Row of the body.

        Returns
        -------
        (6, 6) array
            kg, kg m and kg m2, about the body's origin in its compiled frame.
        """
        return unpack_inertia(self.constant[row, C_INERTIA : C_INERTIA + PACKED_SIZE])

    def scratch(self, dtype: type = float) -> Array:
        """Return a new scratch array, for one evaluation at a time.

        Parameters
        ----------
        dtype : type, default float
            float, or complex for complex steps.

        Returns
        -------
        (rows, S_WIDTH) array
            Zeros.
        """
        return np.zeros((self.topology.shape[0], S_WIDTH), dtype=dtype)

    def state(self) -> State:
        """Return the state at the world's origin, upright, with all joints at 0, at rest.

        Returns
        -------
        State
            A new state.
        """
        return State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(self.n), np.zeros(6), np.zeros(self.n))


@dataclass(slots=True)
class State:
    """Position and velocity of a mechanism.

    Parameters
    ----------
    position : (3,) array
        Origin of the base, m, world.
    orientation : (4,) array
        w, x, y, z, base to world.
    q : (n,) array
        Joint positions, rad or m.
    twist : (6,) array
        Twist of the base in the base's frame, m/s and rad/s.
    qd : (n,) array
        Joint rates, rad/s or m/s.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms import model as m
    >>> m.State(np.zeros(3), np.array([1.0, 0, 0, 0]), np.zeros(2), np.zeros(6), np.zeros(2)).rotation[0, 0]
    np.float64(1.0)
    """

    position: Array
    orientation: Array
    q: Array
    twist: Array
    qd: Array

    def check(self, model: Model) -> State:
        """Convert the fields to contiguous float64 and check them.

        Parameters
        ----------
        model : Model
            Model that the state belongs to.

        Returns
        -------
        State
            The same object.

        Raises
        ------
        ModelError
            A shape is wrong, a number is not finite, or the quaternion is 0.
        """
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
        """(3, 3) rotation, base to world."""
        return quaternion_matrix(self.orientation)

    def copy(self) -> State:
        """Return a copy with its own arrays.

        Returns
        -------
        State
            Copy of the state.
        """
        return State(
            self.position.copy(), self.orientation.copy(), self.q.copy(), self.twist.copy(), self.qd.copy()
        )  # fmt: skip
