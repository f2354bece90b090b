"""Provide modal bodies of a compiled model as flat arrays: mode rows, and flexible rows that depend on them.

Each row of kind MODE is a modal coordinate. Rows of kind SECTION, behind all rows with a coordinate, are the pieces of
a modal body. Sections, and joints on a section, are flexible rows: their place in the parent's frame depends on the
parent's modes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.base.spatial import Array

# columns of the book, a row each row of the model: its modes' first place in `members` and their number; of a flexible
# row its place in `shape`, else -1, and in the room; of a row with modes its place in the room
M_FIRST, M_COUNT, M_SHAPE, M_PSI, M_MASS = range(5)
M_WIDTH = 5


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes and flexible rows of a model.

    Parameters
    ----------
    book : (rows, M_WIDTH) array of int64
        Columns M_* for each row of the model.
    members : array of int64
        Rows of modes, those of one body together.
    shape : array
        Of each flexible row: the point (3), m, where it is fixed to the parent. Then, for each of the parent's modes,
        its translation (3), m, and rotation (3), rad, for a unit of the coordinate.
    room : int
        Size of the scratch that the passes need.
    """

    book: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    shape: Array
    room: int

    def __len__(self) -> int:
        """Return the number of modes."""
        return len(self.members)


class ModesInTheMaking:
    """Modes by the row that carries them, and flexible rows with the nonzero part of their shape.

    Attributes
    ----------
    of_row : dict
        Row to its mode rows.
    flexible : dict
        Flexible row to its parent, place, mode rows and their shape (modes, 6).
    """

    def __init__(self) -> None:
        self.of_row: dict[int, list[int]] = {}
        self.flexible: dict[int, tuple[int, Array, list[int], Array]] = {}
        """For each row: its parent, the place, the mode rows and their shape (modes, 6)."""

    def finish(self, rows: int) -> Modes:
        """Return the flat arrays.

        Parameters
        ----------
        rows : int
            Number of rows of the model.

        Returns
        -------
        Modes
            Read-only arrays.
        """
        book = np.zeros((rows, M_WIDTH), dtype=np.int64)
        book[:, M_SHAPE] = -1
        members: list[int] = []
        shape: list[float] = []
        room = 0
        for row, modes in self.of_row.items():
            count = len(modes)
            book[row, [M_FIRST, M_COUNT, M_MASS]] = len(members), count, room
            members += modes
            room += 7 * count + count * count
        for row, (parent, place, modes, shape_rows) in self.flexible.items():
            whole = self.of_row[parent]
            book[row, M_SHAPE], book[row, M_PSI] = len(shape), room
            table = np.zeros((len(whole), 6))
            table[[whole.index(mode) for mode in modes]] = shape_rows
            shape += [*place, *table.ravel()]
            room += 6 * len(whole)
        out = Modes(book, np.array(members, dtype=np.int64), np.array(shape, dtype=float), room)
        for array in (out.book, out.members, out.shape):
            array.flags.writeable = False
        return out
