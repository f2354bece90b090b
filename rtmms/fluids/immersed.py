"""Provide the elements of a model as flat arrays, and the fluid's wrenches and energies on all of them.

Added inertia is in the model's own matrices, so that the recursion solves with it; in still fluid that is all of
Kirchhoff's law. This module adds drag, lift and the difference due to a moving fluid to each body's outside wrench. For
the law 'khalil2007' it also adds the terms that this law omits.

The energy balance follows Candelier 2013, with the transposed gradient. With V_r = V - R^T u, p = M_f eta_r, m the
displaced mass and gamma = u_t + (grad u) u,

    d/dt (T_bodies + elastic + 1/2 p . eta_r + p_V . R^T u)
        = (p_V . R^T u_t + m gamma . v) + wake, drag and damping power + actuators
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.jit import kernel
from rtmms.base.memory import FLAG, INTEGER, Layout, Record, model, number, scratch, step_input
from rtmms.base.spatial import PACKED_SIZE, Array, cross, pack_inertia, scalar, times
from rtmms.fluids.ambient import DIFFERENCE_S, FLOW_WIDTH, GRADIENT, RATE, SAMPLE_ROOM, Flow, U, sample
from rtmms.fluids.blade_element import BLADE_WIDTH, blade_row, blades
from rtmms.fluids.foils import FOIL_WIDTH, POLAR_WIDTH, foil_tables, foils
from rtmms.fluids.morison import STRIP_WIDTH, strip_row, strips
from rtmms.fluids.resistance import RESISTANCE_WIDTH, is_resistance, resist, resistance_rows
from rtmms.fluids.tether import TETHER_WIDTH, tether_energy, tether_row, tethers
from rtmms.fluids.wake import WAKE_WIDTH, wake_row, wakes
from rtmms.model.compiled import Model
from rtmms.model.elements import AddedMass, Blade, Element, Strip, Tether, Wake
from rtmms.model.layout import S_TWIST, S_WORLD_POS, S_WORLD_ROT, S_WRENCH

# columns of an element's row: added inertia (row frame, packed), centre, displaced mass, is it Kirchhoff's law
ADDED = 0
CENTRE = PACKED_SIZE
DISPLACED = PACKED_SIZE + 3
KIRCHHOFF = PACKED_SIZE + 4
COMMON_WIDTH = PACKED_SIZE + 5


def is_foil(element: Element) -> bool:
    """Return whether the fluid's force on an element is that of its polar alone.

    Parameters
    ----------
    element : Element
        The element.

    Returns
    -------
    bool
        True for a blade with a polar.
    """
    return isinstance(element, Blade) and element.polar is not None


def is_bare(element: Element) -> bool:
    """Return whether an element has no entry in LOADS.

    Parameters
    ----------
    element : Element
        The element.

    Returns
    -------
    bool
        True for an added mass, a foil, or a resistance.
    """
    return isinstance(element, AddedMass) or is_foil(element) or is_resistance(element)


class Load(NamedTuple):
    """A kind of element.

    Attributes
    ----------
    element : type[Element]
        Its class.
    array : str
        Name of its array in FLUID.
    width : int
        Number of columns.
    row : Callable[[int, Any], array]
        Function of the model's row and the element that returns its numbers.
    in_flow : bool, default True
        Whether the element has a sample of the flow.
    """

    element: type[Element]
    array: str
    width: int
    row: Callable[[int, Any], Array]
    in_flow: bool = True

    def takes(self, element: Element) -> bool:
        """Return whether an element is of this kind; a blade with a polar is a foil.

        Parameters
        ----------
        element : Element
            The element.

        Returns
        -------
        bool
            True if it is.
        """
        return isinstance(element, self.element) and not is_foil(element)


LOADS = (
    Load(Strip, "strips", STRIP_WIDTH, strip_row), Load(Blade, "blades", BLADE_WIDTH, blade_row),
    Load(Wake, "wakes", WAKE_WIDTH, wake_row), Load(Tether, "tethers", TETHER_WIDTH, tether_row, in_flow=False),
)  # fmt: skip
"""Every kind, in the order of the elements.

A new kind needs a class in rtmms.model.elements, a file in this folder, a line here, and one in the kernel below for
its power: `drag`, `shed` or `spring`.
"""
FLUID = Layout(
    "Fluid",
    model("rows", "elements", dtype=INTEGER), model("common", "elements", COMMON_WIDTH),
    *(model(load.array, load.array, load.width) for load in LOADS),
    *(number(f"first_{load.array}", INTEGER) for load in LOADS if load.in_flow),
    model("strip_gauss", 2, "strip_nodes"), model("blade_gauss", 2, "blade_nodes"),
    model("flow", "flow_rows", FLOW_WIDTH), number("moving", FLAG), number("acts", FLAG),
    model("foils", "foils", FOIL_WIDTH, optional=True), model("polars", "polar_points", POLAR_WIDTH, optional=True),
    model("resistances", "resistances", RESISTANCE_WIDTH, optional=True),
    step_input("held", "elements", 6, unit="m/s, m/s2"), scratch("ambient", "elements", SAMPLE_ROOM),
)  # fmt: skip
"""A model's elements, kind by kind.

- rows: rows of the model; first_...: first element of a kind
- strip_gauss, blade_gauss: nodes on (-1, 1) and weights that sum to 2
- foils, polars: blades and strips with a polar (rtmms.fluids.foils); None where there are none
- resistances: elements of rtmms.model.resistances (rtmms.fluids.resistance); None with foils and polars
- flow: see Flow.pack; moving is False for still fluid where there is no tether; acts is False where `act` adds
  nothing: added and displaced mass alone, in still fluid
- held: further fluid velocity and its rate at each element, constant over the step; ambient: the flow at each element
"""


def immerse(
    model: Model, flow: Flow | None = None, *, strip_nodes: int = 10, blade_nodes: int = 6, polars: int = 0
) -> Record:
    """Return a model's elements for the kernels, as a record of FLUID.

    Parameters
    ----------
    model : Model
        Compiled model.
    flow : Flow, optional
        The fluid's own motion; None for still fluid.
    strip_nodes, blade_nodes : int, default 10
        Gauss points along each strip and each blade.
    polars : int, default 0
        1: the record has the fields foils, polars and resistances even if there are none.

    Returns
    -------
    Record
        The record.

    Raises
    ------
    ModelError
        There are no nodes, or an element of no known kind.
    """
    if strip_nodes < 1 or blade_nodes < 1:
        raise ModelError(f"{model.name}: strip_nodes and blade_nodes must be >= 1, got {strip_nodes} and {blade_nodes}")
    flow = Flow() if flow is None else flow
    kinds = {load: [pair for pair in model.elements if load.takes(pair[1])] for load in LOADS}
    bare = [pair for pair in model.elements if is_bare(pair[1])]
    chosen = [*(pair for load, pairs in kinds.items() if load.in_flow for pair in pairs), *bare]
    common = np.zeros((len(chosen), COMMON_WIDTH))
    for out, (_, element) in zip(common, chosen, strict=True):
        out[ADDED : ADDED + PACKED_SIZE] = pack_inertia(element.added_inertia())
        out[CENTRE : CENTRE + 3], out[DISPLACED] = element.centre, element.displaced_mass
        out[KIRCHHOFF] = float(element.kirchhoff)
    tables = {
        load.array: np.array([load.row(*pair) for pair in pairs]).reshape(-1, load.width)
        for load, pairs in kinds.items()
    }
    if sum(map(len, kinds.values())) + len(bare) != len(model.elements):
        known = [id(element) for pairs in (*kinds.values(), bare) for _, element in pairs]
        others = ", ".join(sorted({type(item).__name__ for _, item in model.elements if id(item) not in known}))
        raise ModelError(
            f"{model.name}: elements: expected elements of the kinds in rtmms.fluids.immersed.LOADS, got {others}"
        )
    at, first = 0, {}
    for load, pairs in kinds.items():
        if load.in_flow:
            first[f"first_{load.array}"], at = at, at + len(pairs)
    foil, polar = foil_tables(chosen)
    resistances = resistance_rows(chosen)
    held = any(pairs for load, pairs in kinds.items() if not load.in_flow)
    moving = not flow.still or held
    acts = moving or not all(isinstance(element, AddedMass) for _, element in chosen)
    return FLUID.make({
        "rows": np.array([row for row, _ in chosen], dtype=np.int64), "common": common, **tables, **first,
        "strip_gauss": np.array(np.polynomial.legendre.leggauss(strip_nodes)),
        "blade_gauss": np.array(np.polynomial.legendre.leggauss(blade_nodes)),
        "flow": flow.pack(), "moving": moving, "acts": acts,
        **(
            {"foils": foil, "polars": polar, "resistances": resistances}
            if polars or len(foil) or len(resistances) else {}
        ),
    })  # fmt: skip


@kernel
def act(fluid: Any, time: Any, s: Any) -> None:
    """Add the fluid's wrench on every element to S_WRENCH, after `outward`, and after `place` where the fluid moves.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`.
    time : float
        s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    rows, common, flow, held, ambient = fluid.rows, fluid.common, fluid.flow, fluid.held, fluid.ambient
    if fluid.moving:
        for e in range(rows.shape[0]):
            j = rows[e]
            cx, cy, cz = common[e, CENTRE], common[e, CENTRE + 1], common[e, CENTRE + 2]
            r = S_WORLD_ROT
            x = s[j, S_WORLD_POS] + s[j, r] * cx + s[j, r + 1] * cy + s[j, r + 2] * cz
            y = s[j, S_WORLD_POS + 1] + s[j, r + 3] * cx + s[j, r + 4] * cy + s[j, r + 5] * cz
            z = s[j, S_WORLD_POS + 2] + s[j, r + 6] * cx + s[j, r + 7] * cy + s[j, r + 8] * cz
            sample(flow, held[e], time, x, y, z, ambient[e])
            for a in range(3):
                ambient[e, RATE + a] += held[e, 3 + a]
            _carry(common, ambient, e, j, s)
    drag(fluid, s)
    add_wakes(fluid, s)
    spring(fluid, s)


@kernel(merged=True)
def drag(fluid: Any, s: Any) -> None:
    """Add drag and lift, which exchange energy with the fluid, to S_WRENCH.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    rows, strip, blade, moving, ambient = fluid.rows, fluid.strips, fluid.blades, fluid.moving, fluid.ambient
    strips(rows, strip, fluid.strip_gauss, moving, ambient, s)
    blades(rows, fluid.first_blades, blade, fluid.blade_gauss, moving, ambient, s)
    foils(fluid.foils, fluid.polars, fluid.blade_gauss, moving, ambient, s)
    resist(fluid.resistances, moving, ambient, s)


@kernel(merged=True)
def add_wakes(fluid: Any, s: Any) -> None:
    """Add the wrenches of wakes, which take energy, to S_WRENCH.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    wake = fluid.wakes
    if wake.shape[0] > 0:
        wakes(fluid.rows, fluid.first_wakes, wake, fluid.moving, fluid.ambient, s)


@kernel(merged=True)
def spring(fluid: Any, s: Any) -> None:
    """Add the wrenches of springs, with the dampers beside them, to S_WRENCH.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    if fluid.tethers.shape[0] > 0:
        tethers(fluid.tethers, s)


@kernel(merged=True)
def spring_energy(fluid: Any, s: Any, out: Any) -> None:
    """Write the energy in springs and the power of their dampers.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    out : (2,) array
        J, and W (<= 0).
    """
    tether_energy(fluid.tethers, s, out)


@scalar
def to_body(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """Return R_j^T (x, y, z): a world vector in the row's frame.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    x, y, z : float
        Components in the world.

    Returns
    -------
    (float, float, float)
        Components in the row's frame.
    """
    r = S_WORLD_ROT
    return (
        s[j, r] * x + s[j, r + 3] * y + s[j, r + 6] * z,
        s[j, r + 1] * x + s[j, r + 4] * y + s[j, r + 7] * z,
        s[j, r + 2] * x + s[j, r + 5] * y + s[j, r + 8] * z,
    )


@scalar
def to_world(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """Return R_j (x, y, z): a vector of the row's frame in the world.

    Parameters
    ----------
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    x, y, z : float
        Components in the row's frame.

    Returns
    -------
    (float, float, float)
        Components in the world.
    """
    r = S_WORLD_ROT
    return (
        s[j, r] * x + s[j, r + 1] * y + s[j, r + 2] * z,
        s[j, r + 3] * x + s[j, r + 4] * y + s[j, r + 5] * z,
        s[j, r + 6] * x + s[j, r + 7] * y + s[j, r + 8] * z,
    )


@kernel
def _carry(common: Any, ambient: Any, e: Any, j: Any, s: Any) -> None:
    """Add the effect of a moving fluid on the inertial wrench of element e on row j.

    With V_r = V - R^T u and p = M_a (V_r; W), Kirchhoff's law is f = -(M_a eta_r' - ad_eta_r^T p) - (G^T p_V; 0), and
    the fluid's own acceleration gamma = u_t + (grad u) u pushes the displaced mass with +m R^T gamma. The model
    contains the law for still fluid already: the difference is added. The law khalil2007 has the sections'
    accelerations only, so that only the fluid's acceleration enters.
    """
    vx, vy, vz = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
    wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
    cx, cy, cz = common[e, CENTRE], common[e, CENTRE + 1], common[e, CENTRE + 2]
    g = GRADIENT
    f = ambient[e]
    ux, uy, uz = to_body(s, j, f[U], f[U + 1], f[U + 2])
    dx, dy, dz = cross(wx, wy, wz, cx, cy, cz)
    x, y, z = to_world(s, j, vx + dx, vy + dy, vz + dz)
    # the fluid's acceleration as the element's centre meets it, u_t + (grad u) v, and as the fluid itself does
    ax = f[RATE] + f[g] * x + f[g + 1] * y + f[g + 2] * z
    ay = f[RATE + 1] + f[g + 3] * x + f[g + 4] * y + f[g + 5] * z
    az = f[RATE + 2] + f[g + 6] * x + f[g + 7] * y + f[g + 8] * z
    ax, ay, az = to_body(s, j, ax, ay, az)
    bx = f[RATE] + f[g] * f[U] + f[g + 1] * f[U + 1] + f[g + 2] * f[U + 2]
    by = f[RATE + 1] + f[g + 3] * f[U] + f[g + 4] * f[U + 1] + f[g + 5] * f[U + 2]
    bz = f[RATE + 2] + f[g + 6] * f[U] + f[g + 7] * f[U + 1] + f[g + 8] * f[U + 2]
    bx, by, bz = to_body(s, j, bx, by, bz)
    m = common[e, DISPLACED]
    fx, fy, fz = m * bx, m * by, m * bz
    tx, ty, tz = cross(cx, cy, cz, fx, fy, fz)
    if common[e, KIRCHHOFF] > 0.0:
        p0, p1, p2, _, _, _ = times(common, e, ADDED, vx - ux, vy - uy, vz - uz, wx, wy, wz)
        # -(G^T p_V): the gradient turns to the row's frame, acts, and turns back
        x, y, z = to_world(s, j, p0, p1, p2)
        qx = f[g] * x + f[g + 3] * y + f[g + 6] * z
        qy = f[g + 1] * x + f[g + 4] * y + f[g + 7] * z
        qz = f[g + 2] * x + f[g + 5] * y + f[g + 8] * z
        qx, qy, qz = to_body(s, j, qx, qy, qz)
        mx, my, mz = cross(cx, cy, cz, qx, qy, qz)
        fx, fy, fz, tx, ty, tz = fx - qx, fy - qy, fz - qz, tx - mx, ty - my, tz - mz
        # u_body' = R^T (u_t + (grad u) v) - W x u_body
        x, y, z = cross(wx, wy, wz, ux, uy, uz)
        ax, ay, az = ax - x, ay - y, az - z
        # ad_eta^T p: still part of the model, ad_eta_r^T p: here; p is linear, so its change is -M_a (u; 0)
        d0, d1, d2, d3, d4, d5 = times(common, e, ADDED, ux, uy, uz, 0.0, 0.0, 0.0)
        x, y, z = cross(wx, wy, wz, d0, d1, d2)
        fx, fy, fz = fx + x, fy + y, fz + z
        x, y, z = cross(wx, wy, wz, d3, d4, d5)
        tx, ty, tz = tx + x, ty + y, tz + z
        x, y, z = cross(vx, vy, vz, d0, d1, d2)
        tx, ty, tz = tx + x, ty + y, tz + z
        x, y, z = cross(ux, uy, uz, p0, p1, p2)
        tx, ty, tz = tx + x, ty + y, tz + z
    a0, a1, a2, a3, a4, a5 = times(common, e, ADDED, ax, ay, az, 0.0, 0.0, 0.0)
    s[j, S_WRENCH] += fx + a0
    s[j, S_WRENCH + 1] += fy + a1
    s[j, S_WRENCH + 2] += fz + a2
    s[j, S_WRENCH + 3] += tx + a3
    s[j, S_WRENCH + 4] += ty + a4
    s[j, S_WRENCH + 5] += tz + a5


def held_flow(model: Model, flow: Flow, s: Array, immersed: Record, time: float) -> Array:
    """Return the flow's function and its rate at each element.

    The rate is a central difference in time, as for a compiled function.

    Parameters
    ----------
    model : Model
        Compiled model.
    flow : Flow
        The fluid's own motion.
    s : (rows, S_WIDTH) array
        Scratch with world poses.
    immersed : Record
        Record of `FLUID`.
    time : float
        s.

    Returns
    -------
    (e, 6) array
        m/s and m/s2, world; zeros where the flow has no function.

    Raises
    ------
    ModelError
        The function does not return three finite numbers.
    """
    out = np.zeros((len(immersed.rows), 6))
    if flow.field is not None:
        for e, row in enumerate(immersed.rows):
            rotation = s[row, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3)
            x = s[row, S_WORLD_POS : S_WORLD_POS + 3] + rotation @ immersed.common[e, CENTRE : CENTRE + 3]
            u = _asked(model, flow, x, time)
            if time >= DIFFERENCE_S:
                rate = (_asked(model, flow, x, time + DIFFERENCE_S) - _asked(model, flow, x, time - DIFFERENCE_S)) / 2.0
            else:  # a run begins at t = 0: the function need not know times before
                rate = 2.0 * _asked(model, flow, x, time + DIFFERENCE_S) - 0.5 * _asked(
                    model, flow, x, time + 2.0 * DIFFERENCE_S
                )
                rate -= 1.5 * u
            out[e, :3], out[e, 3:] = u, rate / DIFFERENCE_S
    return out


def _asked(model: Model, flow: Flow, x: Array, time: float) -> Array:
    """Return the flow's function at a place and time, (3,) m/s; ModelError where it returns anything else."""
    assert flow.field is not None
    u = np.asarray(flow.field(x.copy(), time), dtype=float)
    if u.shape != (3,) or not np.all(np.isfinite(u)):
        raise ModelError(f"{model.name}: flow: field must return 3 finite numbers, got {u.tolist()} at {x.tolist()}")
    return u


HELD, FLOW, WAKE, DRAG, SPRINGS, DAMPERS = range(6)
"""Energy terms.

HELD: energy in the fluid, 1/2 p . eta_r + p_V . R^T u, J. FLOW, WAKE, DRAG: power from the flow, the wake, and drag
with lift, W. SPRINGS: energy in tethers' springs, J. DAMPERS: power of their dampers, W.
"""
TERMS = 6


@kernel
def _outside_power(s: Any) -> Any:
    """Return the power of S_WRENCH on all rows, W, and set it to 0."""
    power = 0.0 * s[0, S_TWIST]
    for j in range(s.shape[0]):
        for k in range(6):
            power += s[j, S_WRENCH + k] * s[j, S_TWIST + k]
            s[j, S_WRENCH + k] = 0.0
    return power


@kernel
def energy_terms(fluid: Any, s: Any, out: Any) -> None:
    """Write the energy terms from the scratch of an evaluation of the equations of motion; S_WRENCH is overwritten.

    Parameters
    ----------
    fluid : Record
        Record of `FLUID`, with the flow at each element of that evaluation.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    out : (TERMS,) array
        Result.
    """
    rows, common, ambient, moving = fluid.rows, fluid.common, fluid.ambient, fluid.moving
    out[HELD] = out[FLOW] = 0.0 * s[0, S_TWIST]
    for e in range(rows.shape[0]):
        _of_element(common, e, rows[e], ambient[e], moving, s, out)
    _outside_power(s)
    drag(fluid, s)
    out[DRAG] = _outside_power(s)
    add_wakes(fluid, s)
    out[WAKE] = _outside_power(s)
    spring_energy(fluid, s, out[SPRINGS : SPRINGS + 2])


@kernel
def _of_element(common: Any, e: int, j: int, f: Any, moving: bool, s: Any, out: Any) -> None:
    """Add one element's share of the fluid's energy, and of the flow's power."""
    vx, vy, vz = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
    wx, wy, wz = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
    if not moving:
        p0, p1, p2, l0, l1, l2 = times(common, e, ADDED, vx, vy, vz, wx, wy, wz)
        out[HELD] += 0.5 * (p0 * vx + p1 * vy + p2 * vz + l0 * wx + l1 * wy + l2 * wz)
        return
    ux, uy, uz = to_body(s, j, f[U], f[U + 1], f[U + 2])
    rx, ry, rz = vx - ux, vy - uy, vz - uz
    p0, p1, p2, l0, l1, l2 = times(common, e, ADDED, rx, ry, rz, wx, wy, wz)
    out[HELD] += 0.5 * (p0 * rx + p1 * ry + p2 * rz + l0 * wx + l1 * wy + l2 * wz) + p0 * ux + p1 * uy + p2 * uz
    ax, ay, az = to_body(s, j, f[RATE], f[RATE + 1], f[RATE + 2])
    g = GRADIENT
    bx = f[RATE] + f[g] * f[U] + f[g + 1] * f[U + 1] + f[g + 2] * f[U + 2]
    by = f[RATE + 1] + f[g + 3] * f[U] + f[g + 4] * f[U + 1] + f[g + 5] * f[U + 2]
    bz = f[RATE + 2] + f[g + 6] * f[U] + f[g + 7] * f[U + 1] + f[g + 8] * f[U + 2]
    cx, cy, cz = cross(wx, wy, wz, common[e, CENTRE], common[e, CENTRE + 1], common[e, CENTRE + 2])
    x, y, z = to_world(s, j, vx + cx, vy + cy, vz + cz)
    out[FLOW] += p0 * ax + p1 * ay + p2 * az + common[e, DISPLACED] * (bx * x + by * y + bz * z)
