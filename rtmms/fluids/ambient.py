"""Provide the motion of the fluid: currents, gradients, waves, vortex streets, a grid, or any function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numba import carray, cfunc, njit, types
from numba.core.errors import NumbaError

from rtmms.base.errors import ModelError, uncoloured
from rtmms.base.jit import COMPILED, kernel
from rtmms.base.pointers import call_at, numbers_at
from rtmms.base.spatial import Array
from rtmms.fluids.flow_grid import Grid, add_grid

# Flows that a user writes as functions for numba: kernels call them by address, at each stage's own time.


NUMBERS = 15
"""Numbers of a function: u (3) m/s, du_a/dx_b by rows (9) 1/s, du/dt (3) m/s2, world frame."""
DIFFERENCE_M = 1e-4
"""Distance of differences in place of derivatives in space that the function does not write, m."""
DIFFERENCE_S = 1e-4
"""Interval of differences in place of derivatives in time that the function does not write, s."""
_KNOWN: dict[int, Callable[..., None]] = {}


class AskedFunction:
    """A function(t, x, y, z, out) of the flow, compiled for kernels.

    The function writes u to out[0:3], and optionally du_a/dx_b to out[3:12] and du/dt to out[12:15]. Central
    differences replace derivatives that it does not write.

    Parameters
    ----------
    function : Callable[..., Any]
        The function, plain or compiled by numba.

    Attributes
    ----------
    address : int
        Address for the kernels.
    contents : bytes
        Code and constants of the function, for keys of snapshots.

    Raises
    ------
    ModelError
        It is no function, or numba does not compile it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ModelError(f"flow: compiled: expected a function f(t, x, y, z, out), got {function!r}")
        plain = getattr(function, "py_func", function)
        inner: Any = plain
        if COMPILED:
            inner = function if hasattr(function, "py_func") else njit(error_model="numpy")(plain)
        gives_slopes = _gives(inner, plain.__name__)
        self.contents = _contents(plain)
        whole = inner if gives_slopes else _with_differences(inner)
        if not COMPILED:
            self.address = id(self)
            _KNOWN[self.address] = whole
            return

        @cfunc(types.void(*[types.float64] * 4, types.CPointer(types.float64)))
        def entry(t: float, x: float, y: float, z: float, pointer: Any) -> None:
            """Call the function with the memory at an address."""
            whole(t, x, y, z, carray(pointer, (NUMBERS,)))

        self._entry, self.address = entry, int(entry.address)


def _contents(part: Any, visited: tuple[int, ...] = ()) -> bytes:
    """Return bytes that differ where functions do: their code, and the values that they use from outside."""
    part = getattr(part, "py_func", part)
    if id(part) in visited:
        return b"again"
    visited = (*visited, id(part))
    if isinstance(part, FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        used = [part.__globals__[name] for name in part.__code__.co_names if name in part.__globals__]
        return b"".join(_contents(item, visited) for item in (part.__code__, *cells, part.__defaults__ or (), *used))
    if isinstance(part, CodeType):
        parts = (
            part.co_code,
            *(_contents(co_const, visited) for co_const in part.co_consts),
            repr(part.co_names).encode(),
        )
        return b"".join(parts)
    if isinstance(part, np.ndarray):
        return f"{part.dtype}{part.shape}".encode() + part.tobytes()
    if isinstance(part, tuple | list):
        return b"(" + b",".join(_contents(item, visited) for item in part) + b")"
    if isinstance(part, bool | int | float | complex | str | bytes | np.generic) or part is None:
        return f"{type(part).__name__}{part!r}".encode()
    return getattr(part, "__name__", type(part).__name__).encode()


def _gives(function: Callable[..., Any], name: str) -> bool:
    """Return whether the function writes its derivatives, evaluated at the world's origin."""
    out = np.full(NUMBERS, np.nan)
    try:
        function(0.0, 0.0, 0.0, 0.0, out)
    except NumbaError as fault:
        first = uncoloured(fault).strip().splitlines()[-1]
        raise ModelError(f"flow: compiled: numba cannot compile {name}(t, x, y, z, out): {first}") from None
    except (TypeError, IndexError, ValueError) as fault:
        raise ModelError(f"flow: compiled: {name}(t, x, y, z, out) fails: {fault}") from None
    written = np.isfinite(out[3:])
    if not np.all(np.isfinite(out[:3])) or (np.any(written) and not np.all(written)):
        raise ModelError(
            f"flow: compiled: {name} must write 3 finite numbers (u), or 15 (u, du/dx by rows, du/dt), got "
            f"{out.tolist()} at the origin, t = 0"
        )
    return bool(np.all(written))


def _with_differences(function: Any) -> Any:
    """Return the function with central differences for the derivatives that it does not write."""

    def whole(t: float, x: float, y: float, z: float, out: Any) -> None:
        for axis in range(4):
            h = DIFFERENCE_S if axis == 3 else DIFFERENCE_M
            dx, dy, dz, dt = 0.0, 0.0, 0.0, 0.0
            if axis == 0:
                dx = h
            elif axis == 1:
                dy = h
            elif axis == 2:
                dz = h
            else:
                dt = h
            function(t + dt, x + dx, y + dy, z + dz, out)
            a, b, c = out[0], out[1], out[2]
            function(t - dt, x - dx, y - dy, z - dz, out)
            a, b, c = (a - out[0]) / (2.0 * h), (b - out[1]) / (2.0 * h), (c - out[2]) / (2.0 * h)
            if axis == 3:
                out[12], out[13], out[14] = a, b, c
            else:
                out[3 + axis], out[6 + axis], out[9 + axis] = a, b, c
        function(t, x, y, z, out)

    return njit(error_model="numpy")(whole) if COMPILED else whole


@kernel(inline=True)
def _ask(address: int, t: float, x: float, y: float, z: float, out: Any, at: int) -> Any:
    """Return the function's numbers, as a view of the memory from out[at] on."""
    place = out.ctypes.data + at * out.itemsize
    call_at(address, t, x, y, z, place)
    return carray(numbers_at(place), (NUMBERS,))


def _ask_plain(address: int, t: float, x: float, y: float, z: float, out: Any, at: int) -> Any:
    """Return the function's numbers where kernels are plain Python."""
    numbers = np.zeros(NUMBERS)
    _KNOWN[address](float(t), float(x), float(y), float(z), numbers)
    return numbers


if not COMPILED:
    _ask = _ask_plain


@kernel
def add_asked(address: int, time: Any, x: Any, y: Any, z: Any, out: Any) -> None:
    """Add the function's numbers to a sample.

    Parameters
    ----------
    address : int
        Address of the function.
    time : float
        s.
    x, y, z : float
        m, world.
    out : (SAMPLE_ROOM,) array
        Sample, with room for the function's numbers twice at its end; added to.

    Notes
    -----
    The function does not support complex numbers: its slope along the displacement w of a complex step i w is a
    difference.
    """
    numbers = _ask(address, time.real, x.real, y.real, z.real, out, NUMBERS)
    a, b, c, d = x - x.real, y - y.real, z - z.real, time - time.real
    size = np.sqrt(x.imag * x.imag + y.imag * y.imag + z.imag * z.imag + time.imag * time.imag)
    for k in range(NUMBERS):
        out[k] += numbers[k]
    if size > 0.0:
        for k in range(3):
            out[k] += numbers[3 + 3 * k] * a + numbers[4 + 3 * k] * b + numbers[5 + 3 * k] * c + numbers[12 + k] * d
        step = (a * x.imag + b * y.imag + c * z.imag + d * time.imag) / size  # i |w|
        h = DIFFERENCE_M / size
        for sign in (1.0, -1.0):
            at = NUMBERS if sign > 0.0 else 2 * NUMBERS
            w = sign * h
            shifted_flow = _ask(
                address,
                time.real + w * time.imag,
                x.real + w * x.imag,
                y.real + w * y.imag,
                z.real + w * z.imag,
                out,
                at,
            )
            for k in range(3, NUMBERS):
                out[k] += sign * shifted_flow[k] / (2.0 * DIFFERENCE_M) * step


# Endless rows of vortices with a soft core, and the von Karman street that two of them make.


# columns of a row in the flow's table: Gamma k / 4 pi (m/s), k (1/m), eps, x and y of a vortex at t = 0, drift (m/s)
STRENGTH, WAVE_NUMBER, SOFT, PLACE_X, PLACE_Y, DRIFT = range(6)
MAX_DEPTH_RATIO = 40.0
"""k y beyond which cosh and sinh are the same to the last bit: from there a row is a jump of velocity."""


@dataclass(frozen=True)
class VortexRow:
    """An endless row of vortices with a soft core, in the world's horizontal plane, the same at every height.

    Parameters
    ----------
    circulation : float
        Gamma of each vortex, m2/s, counter-clockwise seen from above.
    spacing : float
        Distance of neighbours, m.
    core : float
        Radius of the core, m.
    place : tuple[float, float], default (0.0, 0.0)
        (x0, y0) of one vortex at t = 0, m.
    drift : float, default 0.0
        Velocity along x, m/s.

    Notes
    -----
    psi = -(Gamma / 4 pi) ln(cosh k (y - y0) - cos k (x - x0 - drift t) + eps) with k = 2 pi / spacing and eps = (k
    core)^2 / 2.
    """

    circulation: float
    spacing: float
    core: float
    place: tuple[float, float] = (0.0, 0.0)
    drift: float = 0.0

    def packed(self, where: str) -> list[float]:
        """Return the row of the flow's table.

        Parameters
        ----------
        where : str
            Place of the row, for the message.

        Returns
        -------
        list[float]
            FLOW_WIDTH numbers.

        Raises
        ------
        ModelError
            A number is wrong.
        """
        numbers = (self.circulation, self.spacing, self.core, *self.place, self.drift)
        if not all(math.isfinite(number) for number in numbers) or self.spacing <= 0.0 or self.core <= 0.0:
            raise ModelError(f"{where}: expected finite numbers, spacing and core > 0 m, got {self}")
        k = 2.0 * math.pi / self.spacing
        return [
            self.circulation * k / (4.0 * math.pi),
            k,
            0.5 * (k * self.core) ** 2,
            *self.place,
            self.drift,
            0.0,
            0.0,
        ]


@dataclass(frozen=True)
class Street:
    """A von Karman street behind a cylinder, in a stream along x: two rows of vortices, half a spacing apart.

    Parameters
    ----------
    diameter : float, default 0.05
        D of the cylinder, m.
    stream : float, default 0.5
        U, m/s.
    strouhal : float, default 0.2
        f D / U.
    advection : float, default 0.85
        Velocity of the street, as a fraction of U.
    aspect : float, default 0.281
        Distance of the rows over the spacing of vortices.
    core : float, default 0.4
        Radius of the vortices' core, as a fraction of D.
    phase : float, default 0.0
        Advance of the street at t = 0, as a fraction of the spacing.

    Notes
    -----
    spacing a = advection U / f, Gamma = 2 a (U - advection U) / tanh(pi aspect): each row advects the other.

    Examples
    --------
    >>> from rtmms.fluids.ambient import Street
    >>> Street(diameter=0.05, stream=0.5, strouhal=0.2).frequency
    2.0
    """

    diameter: float = 0.05
    stream: float = 0.5
    strouhal: float = 0.2
    advection: float = 0.85
    aspect: float = 0.281
    core: float = 0.4
    phase: float = 0.0

    @property
    def frequency(self) -> float:
        """Frequency of shedding on each side, Hz."""
        return self.strouhal * self.stream / self.diameter

    @property
    def spacing(self) -> float:
        """Distance of vortices of a row, m."""
        return self.advection * self.stream / self.frequency

    @property
    def circulation(self) -> float:
        """Circulation of a vortex, m2/s."""
        slip = (1.0 - self.advection) * self.stream
        return 2.0 * self.spacing * slip / math.tanh(math.pi * self.aspect)

    def rows(self) -> tuple[VortexRow, VortexRow]:
        """Return both rows of vortices.

        Returns
        -------
        tuple[VortexRow, VortexRow]
            The upper row (y > 0), which turns clockwise, and the lower, half a spacing further.
        """
        a, drift, core = self.spacing, self.advection * self.stream, self.core * self.diameter
        half, x = 0.5 * self.aspect * a, self.phase * a
        return (
            VortexRow(-self.circulation, a, core, (x, half), drift),
            VortexRow(self.circulation, a, core, (x + 0.5 * a, -half), drift),
        )


@kernel
def add_vortex_row(row: Any, time: Any, x: Any, y: Any, out: Any) -> None:
    """Add the velocity, gradient and rate of one row to a sample.

    Parameters
    ----------
    row : (FLOW_WIDTH,) array
        Row of the flow's table.
    time : float
        s.
    x, y : float
        m, world.
    out : (SAMPLE,) array
        Sample; added to.
    """
    c, k = row[STRENGTH], row[WAVE_NUMBER]
    across, along = k * (y - row[PLACE_Y]), k * (x - row[PLACE_X] - row[DRIFT] * time)
    if across.real > MAX_DEPTH_RATIO:
        across += MAX_DEPTH_RATIO - across.real
    elif across.real < -MAX_DEPTH_RATIO:
        across -= MAX_DEPTH_RATIO + across.real
    up = np.exp(across)
    ch, sh = 0.5 * (up + 1.0 / up), 0.5 * (up - 1.0 / up)
    cosine, sine = np.cos(along), np.sin(along)
    over = 1.0 / (ch - cosine + row[SOFT])
    u, v = -c * sh * over, c * sine * over  # u = psi_y, v = -psi_x
    grow = c * k * over * over
    ux, uy = grow * sh * sine, -grow * (ch * (ch - cosine + row[SOFT]) - sh * sh)
    vx = grow * (cosine * (ch - cosine + row[SOFT]) - sine * sine)
    out[0] += u
    out[1] += v
    out[3] += ux
    out[4] += uy
    out[6] += vx
    out[7] -= ux
    out[12] -= row[DRIFT] * ux
    out[13] -= row[DRIFT] * vx


# The fluid's own motion.


# Columns of a sample: u (3), du_a/dx_b by rows (9), du/dt (3), world frame.
U = 0
GRADIENT = 3
RATE = 12
SAMPLE = 15
SAMPLE_ROOM = 45
"""Length of a sample with room behind it for a function's numbers."""

# in the table: velocity (3), acceleration (3), numbers of waves and of vortex rows; the gradient by rows (3 x 3), and
# beside it, 0 where there is none, the addresses of a function (row 1) and of a grid (row 2)
ACCELERATION = 3
WAVES = 6
ADDRESS = 3
LEADING = 4
FLOW_WIDTH = 8


@dataclass(frozen=True, eq=False)
class Wave:
    """A velocity amplitude cos(k . x - omega t + phase).

    Parameters
    ----------
    amplitude : (3,) array_like
        m/s, world.
    k : (3,) array_like, default (0.0, 0.0, 0.0)
        Wave vector, 1/m.
    omega : float, default 0.0
        rad/s.
    phase : float, default 0.0
        rad.
    """

    amplitude: Any
    k: Any = (0.0, 0.0, 0.0)
    omega: float = 0.0
    phase: float = 0.0


@dataclass(frozen=True, eq=False)
class Flow:
    """The fluid's own motion: velocity + acceleration t + gradient x + waves + vortex rows + grid + functions.

    Parameters
    ----------
    velocity : (3,) array_like, default (0.0, 0.0, 0.0)
        m/s, world.
    gradient : (3, 3) array_like, optional
        du_a/dx_b, 1/s (for example a shear).
    waves : Sequence[Wave], default ()
        Any number of waves.
    field : callable, optional
        Function (x (3,) m, t s) -> u (3,) m/s, added to the rest. See Notes.
    acceleration : (3,) array_like, default (0.0, 0.0, 0.0)
        m/s2, world.
    vortices : Sequence[VortexRow], default ()
        Any number of rows of vortices.
    grid : Grid, optional
        Flow from a flow solver, linear between nodes. A step that leaves it fails, and the error has the place.
    compiled : callable, optional
        Function(t, x, y, z, out) that numba compiles, see `AskedFunction`.

    Notes
    -----
    A plant calls `field` in each step for each element, half a step ahead, and holds the values over the step: the
    order is two at most, whatever the method. Its du/dt is a difference over 0.1 ms; its gradient counts as 0. The
    kernels evaluate the other parts at each stage's own time and place.

    Examples
    --------
    >>> from rtmms.fluids.ambient import Flow
    >>> Flow((0.5, 0.0, 0.0)).still, Flow().still
    (False, True)
    """

    velocity: Any = (0.0, 0.0, 0.0)
    gradient: Any = field(default_factory=lambda: np.zeros((3, 3)))
    waves: Sequence[Wave] = ()
    field: Callable[[Array, float], Any] | None = None
    acceleration: Any = (0.0, 0.0, 0.0)
    vortices: Sequence[VortexRow] = ()
    grid: Grid | None = None
    compiled: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        """Check the parts, and compile a function for the kernels."""
        if self.grid is not None and not isinstance(self.grid, Grid):
            raise ModelError(f"flow: grid must be a Grid, got {self.grid!r}")
        for name, kind in (("waves", Wave), ("vortices", VortexRow)):
            values: Any = getattr(self, name)
            if not isinstance(values, (list, tuple)) or not all(isinstance(item, kind) for item in values):
                raise ModelError(f"flow: {name}: expected a list of {kind.__name__}, got {values!r:.60}")
        if self.field is not None and not callable(self.field):
            raise ModelError(f"flow: field: expected a function of (x, t) or None, got {self.field!r:.60}")
        asked = None if self.compiled is None else AskedFunction(self.compiled)
        object.__setattr__(self, "_asked", asked)

    @classmethod
    def street(cls, street: Street | None = None, **more: Any) -> Flow:
        """Return a von Karman street in its stream.

        Parameters
        ----------
        street : Street, optional
            The street; None for the default one.
        **more : Any
            Further fields of `Flow`.

        Returns
        -------
        Flow
            The flow.
        """
        chosen = Street() if street is None else street
        return cls((chosen.stream, 0.0, 0.0), vortices=chosen.rows(), **more)

    def pack(self) -> Array:
        """Return the flow's table for the kernels.

        Returns
        -------
        (4 + waves + vortex rows, FLOW_WIDTH) array
            Velocity, acceleration and counts; gradient and addresses; waves; vortex rows.

        Raises
        ------
        ModelError
            A shape is wrong.
        """
        rows = np.zeros((LEADING + len(self.waves) + len(self.vortices), FLOW_WIDTH))
        rows[0, :3] = _shaped(self.velocity, (3,), "flow: velocity")
        rows[0, ACCELERATION : ACCELERATION + 3] = _shaped(self.acceleration, (3,), "flow: acceleration")
        rows[0, WAVES:] = len(self.waves), len(self.vortices)
        rows[1:4, :3] = _shaped(self.gradient, (3, 3), "flow: gradient")
        asked: AskedFunction | None = self._asked  # type: ignore[attr-defined]
        rows[1, ADDRESS] = 0.0 if asked is None else asked.address
        rows[2, ADDRESS] = 0.0 if self.grid is None else self.grid.block.ctypes.data
        for k, wave in enumerate(self.waves):
            place = f"flow: wave {k}"
            rows[LEADING + k, :3] = _shaped(wave.amplitude, (3,), f"{place}: amplitude")
            rows[LEADING + k, 3:6] = _shaped(wave.k, (3,), f"{place}: k")
            rows[LEADING + k, 6:] = _shaped((wave.omega, wave.phase), (2,), f"{place}: omega and phase")
        for k, row in enumerate(self.vortices):
            rows[LEADING + len(self.waves) + k] = row.packed(f"flow: vortex row {k}")
        return rows

    @property
    def contents(self) -> bytes:
        """Everything that decides the flow, whatever the addresses are, for keys of snapshots."""
        rows = self.pack()
        rows[1:3, ADDRESS] = 0.0
        asked: AskedFunction | None = self._asked  # type: ignore[attr-defined]
        grid = b"" if self.grid is None else self.grid.block.tobytes()
        return rows.tobytes() + grid + (b"" if asked is None else asked.contents)

    @property
    def still(self) -> bool:
        """Whether the fluid is at rest."""
        rows = self.pack()
        parts = (rows[:LEADING, :6], rows[LEADING:, :3])
        return self.field is None and not any(np.any(part) for part in parts)

    def outside(self, places: Array, time: float) -> str:
        """Return why the flow has no value at one of several places.

        Parameters
        ----------
        places : (k, 3) array
            m, world.
        time : float
            s.

        Returns
        -------
        str
            '' where it has values everywhere.
        """
        if self.grid is None:
            return ""
        return next((warning for x in places if (warning := self.grid.outside(x, time))), "")


def _shaped(value: Any, shape: tuple[int, ...], place: str) -> Array:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{place} must be {shape} finite numbers, got {value!r:.60}") from None
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise ModelError(f"{place} must be {shape} finite numbers, got {array.tolist()}")
    return array


@kernel
def sample(flow: Any, held: Any, time: Any, x: Any, y: Any, z: Any, out: Any) -> None:
    """Write the flow at a place and time.

    Parameters
    ----------
    flow : array
        Table of `Flow.pack`.
    held : (3,) array
        Velocity added to u, m/s.
    time : float
        s.
    x, y, z : float
        m, world.
    out : (SAMPLE,) array
        Result; (SAMPLE_ROOM,) where the flow has a function.
    """
    for a in range(3):
        g = flow[1 + a]
        out[U + a] = flow[0, a] + held[a] + g[0] * x + g[1] * y + g[2] * z + flow[0, ACCELERATION + a] * time
        for b in range(3):
            out[GRADIENT + 3 * a + b] = flow[1 + a, b]
        out[RATE + a] = flow[0, ACCELERATION + a] + 0.0 * x
    waves = int(flow[0, WAVES])
    for w in range(LEADING, LEADING + waves):
        phase = flow[w, 3] * x + flow[w, 4] * y + flow[w, 5] * z - flow[w, 6] * time + flow[w, 7]
        cosine, sine = np.cos(phase), np.sin(phase)
        for a in range(3):
            out[U + a] += flow[w, a] * cosine
            out[RATE + a] += flow[w, a] * flow[w, 6] * sine
            for b in range(3):
                out[GRADIENT + 3 * a + b] -= flow[w, a] * flow[w, 3 + b] * sine
    for w in range(LEADING + waves, flow.shape[0]):
        add_vortex_row(flow[w], time, x, y, out)
    if flow[2, ADDRESS] > 0.0:
        add_grid(int(flow[2, ADDRESS]), time, x, y, z, out)
    if flow[1, ADDRESS] > 0.0:
        add_asked(int(flow[1, ADDRESS]), time, x, y, z, out)
