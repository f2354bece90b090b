"""Provide a flow on a grid, from a file of a flow solver: linear between its nodes in space and time.

Files are .npz (numpy) or .nc (NetCDF 3, read by scipy) with t (nt,) s, x (nx,), y (ny,), z (nz,) m, ascending, world
frame, and the velocity, m/s: u (nt, nx, ny, nz, 3) in .npz, u, v, w in .nc, whose dimensions have any order. An axis of
one node, or an absent one, means that nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numba import carray

from rtmms.base.errors import ModelError
from rtmms.base.files import check_npz, open_input
from rtmms.base.jit import COMPILED, kernel
from rtmms.base.pointers import numbers_at
from rtmms.base.spatial import Array

AXES = ("t", "x", "y", "z")
_BLOCKS: dict[int, Array] = {}
"""Blocks by address, where kernels are plain Python and cannot read one."""


@dataclass(frozen=True, eq=False)
class Grid:
    """A flow on a grid, world frame.

    Parameters
    ----------
    t : (nt,) array_like
        Ascending, s.
    x, y, z : (nx,), (ny,), (nz,) array_like
        Ascending, m.
    u : (nt, nx, ny, nz, 3) array_like
        m/s.
    name : str, default 'grid'
        Name for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms.fluids.flow_grid import Grid
    >>> Grid([0.0, 1.0], [0.0], [0.0], [0.0], np.zeros((2, 1, 1, 1, 3))).ends
    1.0
    """

    t: Any
    x: Any
    y: Any
    z: Any
    u: Any
    name: str = "grid"
    _axes: list[Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the axes and the velocities; ModelError names what is wrong."""
        values = dict(zip(AXES, (self.t, self.x, self.y, self.z), strict=True))
        axes = [np.atleast_1d(_numbers(self.name, letter, axis)) for letter, axis in values.items()]
        for axis, letter in zip(axes, AXES, strict=True):
            if axis.ndim != 1 or not np.all(np.isfinite(axis)) or np.any(np.diff(axis) <= 0.0) or not len(axis):
                raise ModelError(f"flow: {self.name}: {letter} must be finite numbers that rise, got {_fault(axis)}")
        u = _numbers(self.name, "u", self.u)
        shape = (*(len(axis) for axis in axes), 3)
        if u.shape != shape:
            raise ModelError(f"flow: {self.name}: u must have shape {shape} (t, x, y, z, 3), got {u.shape}")
        if not np.all(np.isfinite(u)):
            at = np.argwhere(~np.isfinite(u))[0]
            place = ", ".join(f"{n} = {axis[k]:g}" for n, axis, k in zip(AXES, axes, at[:4], strict=True))
            raise ModelError(f"flow: {self.name}: u must be finite, got {u[tuple(at)]} at {place}")
        object.__setattr__(self, "u", u)
        object.__setattr__(self, "_axes", axes)

    @classmethod
    def load(cls, path: str | Path) -> Grid:
        """Read a grid from a file.

        Parameters
        ----------
        path : str or Path
            File .npz or .nc.

        Returns
        -------
        Grid
            The grid.

        Raises
        ------
        ModelError
            There is no such file, or it lacks an array.
        """
        path = Path(path)
        read = {".npz": _numpy, ".nc": _netcdf}.get(path.suffix)
        if read is None:
            raise ModelError(f"flow: {path}: expected a .npz or .nc file (NetCDF 3)")
        try:
            result = read(path)
        except ModelError:
            raise
        except KeyError as fault:
            raise ModelError(f"flow: {path}: cannot be read as a flow grid: {fault.args[0]}") from None
        except MemoryError:
            raise ModelError(
                f"flow: {path}: cannot be read as a flow grid: its arrays need more memory than there is"
            ) from None
        except (OSError, ValueError, TypeError, IndexError, BadZipFile) as fault:
            why = fault.strerror if isinstance(fault, OSError) and fault.strerror else "damaged, or of another kind"
            raise ModelError(f"flow: {path}: cannot be read as a flow grid: {why}") from None
        return cls(**result, name=str(path))

    @cached_property
    def block(self) -> Array:
        """Sizes (4), axes and velocities in one array, for the kernels."""
        sizes = np.array([len(axis) for axis in self._axes], dtype=float)
        block = np.concatenate([sizes, *self._axes, self.u.ravel()])
        block.flags.writeable = False
        if not COMPILED:
            _BLOCKS[block.ctypes.data] = block
        return block

    @property
    def ends(self) -> float | None:
        """Time of the last node, s; None for a steady flow."""
        return float(self._axes[0][-1]) if len(self._axes[0]) > 1 else None

    def outside(self, x: Array, time: float) -> str:
        """Return why the grid has no value at a place and time.

        Parameters
        ----------
        x : (3,) array
            m, world.
        time : float
            s.

        Returns
        -------
        str
            '' where it has one.
        """
        for letter, axis, value in zip(AXES, self._axes, (time, *x), strict=True):
            if len(axis) > 1 and not axis[0] <= value <= axis[-1]:
                unit = "s" if letter == "t" else "m"
                return (
                    f"the flow grid {self.name} ends: {letter} = {value:.6g} {unit} is beyond {axis[0]:.6g} to "
                    f"{axis[-1]:.6g} {unit}, at ({x[0]:.4g}, {x[1]:.4g}, {x[2]:.4g}) m, t = {time:.6g} s"
                )
        return ""


def _numbers(name: str, what: str, values: Any) -> Array:
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"flow: {name}: {what} must be numbers") from None


def _fault(axis: Array) -> str:
    """Return the first fault of an axis, as text."""
    if axis.ndim != 1 or not len(axis):
        return f"an array of shape {axis.shape}"
    wrong = np.flatnonzero(~np.isfinite(axis))
    k = int(wrong[0]) if len(wrong) else int(np.flatnonzero(np.diff(axis) <= 0.0)[0]) + 1
    return f"{axis[k]:g} at index {k}" + (f" after {axis[k - 1]:g}" if k and not len(wrong) else "")


MAX_NETCDF_BYTES = 1 << 30
"""Largest size of a NetCDF file, bytes."""


def _numpy(path: Path) -> dict[str, Any]:
    with open_input(path, place="flow:", expected="a .npz file") as raw:
        check_npz(raw, f"flow: {path}")
        return _arrays(raw)


def _arrays(raw: BinaryIO) -> dict[str, Any]:
    with np.load(raw, allow_pickle=False) as file:
        if "u" not in file:
            raise KeyError("the array 'u' is missing")
        result = {letter: file[letter] if letter in file else np.zeros(1) for letter in AXES}
        return {**result, "u": file["u"]}


_UNITS: Mapping[str, tuple[str, ...]] = {
    "t": ("s", "sec", "second", "seconds"), "m": ("m", "meter", "meters", "metre", "metres"),
    "m/s": ("m/s", "m s-1", "m s^-1", "m s**-1", "m.s-1", "meter second-1", "meters/second", "metre second-1"),
}  # fmt: skip
"""Texts of the attribute `units` that mean ours."""


def _netcdf(path: Path) -> dict[str, Any]:
    """Read a NetCDF file by its own conventions: names of dimensions, packed values, missing values, units."""
    import scipy.io

    raw = open_input(path, place="flow:", expected="a NetCDF file", max_bytes=MAX_NETCDF_BYTES)
    opened: Any = getattr(scipy.io, "netcdf_file")  # noqa: B009  half typed
    with raw, opened(raw, "r", mmap=False, maskandscale=True) as file:
        variables = file.variables
        result: dict[str, Any] = {}
        axis_of: dict[str, str] = {}  # axis by the name of its dimension
        for k in AXES:
            result[k] = np.zeros(1)
            if k in variables:
                result[k] = _unpacked(variables[k], path, k, "t" if k == "t" else "m")
                for dimension in variables[k].dimensions:
                    axis_of[dimension] = k
        parts = []
        if not any(k in variables for k in "uvw"):
            raise ModelError(f"flow: {path}: expected velocities u, v, w, got none: {', '.join(variables)}")
        for k in "uvw":
            part = np.zeros(1)
            names: list[str] = []
            if k in variables:
                part, names = _unpacked(variables[k], path, k, "m/s"), list(variables[k].dimensions)
            for n, dimension in reversed(list(enumerate(names))):
                if dimension not in axis_of and part.shape[n] == 1:
                    part = part[(slice(None),) * n + (0,)]
                    del names[n]
            strange = [name for name in names if name not in axis_of]
            if strange or len({axis_of[name] for name in names if name in axis_of}) < len(names):
                raise ModelError(
                    f"flow: {path}: {k}: expected at most one dimension for each of t, x, y, z, and no other, got "
                    f"({', '.join(variables[k].dimensions)})"
                )
            order = [names.index(name) for axis in AXES for name in names if axis_of[name] == axis]
            present = [axis_of[name] for name in names]
            shape = tuple(len(result[axis]) if axis in present else 1 for axis in AXES)
            part = np.transpose(part, order).reshape(shape) if names else part.reshape((1,) * len(AXES))
            parts.append(np.broadcast_to(part, tuple(len(result[axis]) for axis in AXES)))
    return {**result, "u": np.stack(parts, axis=-1)}


def _unpacked(variable: Any, path: Path, name: str, unit: str) -> Array:
    """Return the values of a variable, scaled; ModelError where some are missing or in another unit."""
    units = getattr(variable, "units", b"")
    text = units.decode("latin-1").strip() if isinstance(units, bytes) else str(units)
    if text and text not in _UNITS[unit] and not (unit == "t" and text.startswith("seconds since")):
        raise ModelError(f"flow: {path}: {name}: expected the unit {'s' if unit == 't' else unit}, got '{text:.40}'")
    if getattr(variable, "positive", b"") in (b"down", "down"):
        raise ModelError(f"flow: {path}: {name}: expected values that grow upwards, got positive = 'down'")
    values = np.ma.asarray(variable[:])
    missing = int(np.ma.getmaskarray(values).sum())
    if missing:
        raise ModelError(f"flow: {path}: {name}: expected a value at each node, got {missing} missing ones")
    return np.array(values.filled(), dtype=float)


@kernel(inline=True)
def _block_at(address: int) -> Any:
    """Return the block at an address."""
    n = carray(numbers_at(address), (4,))
    length = 4 + int(n[0] + n[1] + n[2] + n[3] + 3 * n[0] * n[1] * n[2] * n[3])
    return carray(numbers_at(address), (length,))


if not COMPILED:
    _block_at = _BLOCKS.__getitem__


@kernel
def _cell(block: Any, first: int, n: int, value: Any) -> Any:
    """Return the lower node of a value's cell, its place in the cell, 0 to 1, and 1 / the cell's length; -1 beyond."""
    if n == 1:
        return 0, 0.0 * value, 0.0
    x = value.real
    if not (x >= block[first] and x <= block[first + n - 1]):
        return -1, 0.0 * value, 0.0
    low, high = 0, n - 1
    while high - low > 1:
        middle = (low + high) // 2
        if block[first + middle] <= x:
            low = middle
        else:
            high = middle
    over = 1.0 / (block[first + low + 1] - block[first + low])
    return low, (value - block[first + low]) * over, over


@kernel
def add_grid(address: int, time: Any, x: Any, y: Any, z: Any, out: Any) -> None:
    """Add velocity, gradient and rate of the interpolated field to a sample; nan beyond the grid.

    Parameters
    ----------
    address : int
        Address of the grid's block.
    time : float
        s.
    x, y, z : float
        m, world.
    out : (SAMPLE,) array
        Sample; added to.
    """
    block = _block_at(address)
    nt, nx, ny, nz = int(block[0]), int(block[1]), int(block[2]), int(block[3])
    i, a, da = _cell(block, 4, nt, time)
    j, b, db = _cell(block, 4 + nt, nx, x)
    k, c, dc = _cell(block, 4 + nt + nx, ny, y)
    m, d, dd = _cell(block, 4 + nt + nx + ny, nz, z)
    if i < 0 or j < 0 or k < 0 or m < 0:
        for column in range(15):
            out[column] += np.nan
        return
    start = 4 + nt + nx + ny + nz
    for corner in range(16):
        p, q, r, o = corner & 1, (corner >> 1) & 1, (corner >> 2) & 1, (corner >> 3) & 1
        if (p == 1 and nt == 1) or (q == 1 and nx == 1) or (r == 1 and ny == 1) or (o == 1 and nz == 1):
            continue
        wt, wx = (a if p == 1 else 1.0 - a), (b if q == 1 else 1.0 - b)
        wy, wz = (c if r == 1 else 1.0 - c), (d if o == 1 else 1.0 - d)
        st, sx = (da if p == 1 else -da), (db if q == 1 else -db)
        sy, sz = (dc if r == 1 else -dc), (dd if o == 1 else -dd)
        at = start + 3 * ((((i + p) * nx + j + q) * ny + k + r) * nz + m + o)
        for e in range(3):
            u = block[at + e]
            out[e] += wt * wx * wy * wz * u
            out[3 + 3 * e] += wt * sx * wy * wz * u
            out[4 + 3 * e] += wt * wx * sy * wz * u
            out[5 + 3 * e] += wt * wx * wy * sz * u
            out[12 + e] += st * wx * wy * wz * u
