"""The elements of a model as flat arrays, and what the fluid does on all of them.

Added inertia sits in the model's own matrices, so that the recursion solves with it; in still fluid that is all of
Kirchhoff's law. What is added here to each body's outside wrench: drag and lift; the difference that a moving fluid
makes; and, for the law 'khalil2007', what that law leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError
from rtmms.fluids.ambient import GRADIENT, RATE, Flow, U, sample
from rtmms.fluids.blade_element import BLADE_WIDTH, blade_row, blades
from rtmms.fluids.morison import STRIP_WIDTH, strip_row, strips
from rtmms.fluids.tether import TETHER_WIDTH, tether_row, tethers
from rtmms.fluids.wake import WAKE_WIDTH, wake_row, wakes
from rtmms.jit import kernel
from rtmms.model.compiled import Model
from rtmms.model.elements import Blade, Strip, Tether, Wake
from rtmms.model.layout import S_TWIST, S_WORLD_POS, S_WORLD_ROT, S_WRENCH
from rtmms.spatial import PACKED_SIZE, Array, cross, pack_inertia, scalar, times

# columns of an element's row: added inertia (row frame, packed), centre, displaced mass, is it Kirchhoff's law
ADDED, CENTRE, DISPLACED, KIRCHHOFF = 0, PACKED_SIZE, PACKED_SIZE + 3, PACKED_SIZE + 4
COMMON_WIDTH = PACKED_SIZE + 5


@dataclass(frozen=True, eq=False)
class Immersed:
    """What kernels need to know of a model's elements; strips first, then blades, then wakes. Tethers come apart.

    rows (e,) rows of the model; common (e, COMMON_WIDTH); strips (n_s, STRIP_WIDTH); blades (n_b, BLADE_WIDTH)
    wakes (n_w, WAKE_WIDTH); tethers (n_t, TETHER_WIDTH)
    strip_gauss, blade_gauss   (2, k) nodes on (-1, 1) and weights that sum to 2
    flow   see Flow.pack; moving is False for still fluid where there is no tether
    """

    rows: npt.NDArray[np.int64]
    common: Array
    strips: Array
    blades: Array
    strip_gauss: Array
    blade_gauss: Array
    wakes: Array
    tethers: Array
    flow: Array
    moving: bool

    @property
    def arrays(self) -> tuple[Any, ...]:
        """In the order that `act` takes them."""
        return (
            self.rows, self.common, self.strips, self.blades, self.strip_gauss, self.blade_gauss, self.wakes,
            self.tethers, self.flow, self.moving,
        )  # fmt: skip


def immerse(model: Model, flow: Flow | None = None, *, strip_nodes: int = 10, blade_nodes: int = 6) -> Immersed:
    """Lay a model's elements out for kernels. Nodes: Gauss points along each strip and blade."""
    if strip_nodes < 1 or blade_nodes < 1:
        raise ModelError(f"{model.name}: Gauss nodes must be >= 1, got {strip_nodes} and {blade_nodes}")
    flow = Flow() if flow is None else flow
    chosen = [pair for kind in (Strip, Blade, Wake) for pair in model.elements if isinstance(pair[1], kind)]
    common = np.zeros((len(chosen), COMMON_WIDTH))
    for out, (_, element) in zip(common, chosen, strict=True):
        mass = element.displaced * element.length if isinstance(element, Strip) else 0.0
        centre = element.placement.position
        if isinstance(element, Blade):
            middle = np.array([element.length / 2.0, 0.0, -element.pressure * element.chord])
            centre = centre + element.placement.rotation @ middle
        out[ADDED : ADDED + PACKED_SIZE] = pack_inertia(element.added_inertia())
        out[CENTRE : CENTRE + 3], out[DISPLACED] = centre, mass
        out[KIRCHHOFF] = float(not (isinstance(element, Strip) and element.law == "khalil2007"))
    strip_rows = [strip_row(e) for _, e in chosen if isinstance(e, Strip)]
    blade_rows = [blade_row(e) for _, e in chosen if isinstance(e, Blade)]
    wake_rows = [wake_row(e) for _, e in chosen if isinstance(e, Wake)]
    held = [tether_row(row, e) for row, e in model.elements if isinstance(e, Tether)]
    return Immersed(
        np.array([row for row, _ in chosen], dtype=np.int64), common, np.array(strip_rows).reshape(-1, STRIP_WIDTH),
        np.array(blade_rows).reshape(-1, BLADE_WIDTH), np.array(np.polynomial.legendre.leggauss(strip_nodes)),
        np.array(np.polynomial.legendre.leggauss(blade_nodes)), np.array(wake_rows).reshape(-1, WAKE_WIDTH),
        np.array(held).reshape(-1, TETHER_WIDTH), flow.pack(), not flow.still or bool(held),
    )  # fmt: skip


@kernel
def act(
    rows: Any, common: Any, strip: Any, blade: Any, strip_gauss: Any, blade_gauss: Any, wake: Any, tether: Any,
    flow: Any, moving: bool, held: Any, time: Any, ambient: Any, s: Any,
) -> None:  # fmt: skip
    """Add the fluid's wrench on every element to S_WRENCH.

    held     (e, 3) m/s  further fluid velocity at each element, constant over the step
    ambient  (e, SAMPLE)  scratch: the flow at each element
    After `outward`, and after `place` where the fluid moves.
    """
    if moving:
        for e in range(rows.shape[0]):
            j = rows[e]
            cx, cy, cz = common[e, CENTRE], common[e, CENTRE + 1], common[e, CENTRE + 2]
            r = S_WORLD_ROT
            x = s[j, S_WORLD_POS] + s[j, r] * cx + s[j, r + 1] * cy + s[j, r + 2] * cz
            y = s[j, S_WORLD_POS + 1] + s[j, r + 3] * cx + s[j, r + 4] * cy + s[j, r + 5] * cz
            z = s[j, S_WORLD_POS + 2] + s[j, r + 6] * cx + s[j, r + 7] * cy + s[j, r + 8] * cz
            sample(flow, held[e], time, x, y, z, ambient[e])
            _carry(common, ambient, e, j, s)
    strips(rows, strip, strip_gauss, moving, ambient, s)
    blades(rows, strip.shape[0], blade, blade_gauss, moving, ambient, s)
    if wake.shape[0] > 0:
        wakes(rows, strip.shape[0] + blade.shape[0], wake, moving, ambient, s)
    if tether.shape[0] > 0:
        tethers(tether, s)


@scalar
def to_body(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """R_j^T (x, y, z): world -> row j's frame."""
    r = S_WORLD_ROT
    return (
        s[j, r] * x + s[j, r + 3] * y + s[j, r + 6] * z,
        s[j, r + 1] * x + s[j, r + 4] * y + s[j, r + 7] * z,
        s[j, r + 2] * x + s[j, r + 5] * y + s[j, r + 8] * z,
    )


@scalar
def to_world(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """R_j (x, y, z): row j's frame -> world."""
    r = S_WORLD_ROT
    return (
        s[j, r] * x + s[j, r + 1] * y + s[j, r + 2] * z,
        s[j, r + 3] * x + s[j, r + 4] * y + s[j, r + 5] * z,
        s[j, r + 6] * x + s[j, r + 7] * y + s[j, r + 8] * z,
    )


@kernel
def _carry(common: Any, ambient: Any, e: Any, j: Any, s: Any) -> None:
    """What a moving fluid changes in the inertial wrench of element e on row j.

    With V_r = V - R^T u and p = M_a (V_r; W), Kirchhoff's law reads f = -(M_a eta_r' - ad_eta_r^T p) - (G^T p_V; 0),
    and the fluid's own acceleration gamma = u_t + (grad u) u pushes the displaced mass with +m R^T gamma. The model
    holds the law for still fluid already: the difference is added. The law khalil2007 takes sections' accelerations
    only, so there the fluid's acceleration is all that enters.
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


def held_flow(model: Model, flow: Flow, s: Array, immersed: Immersed, time: float) -> Array:
    """(e, 3) m/s: the flow's function at each element, from a scratch with world poses; zeros without one."""
    out = np.zeros((len(immersed.rows), 3))
    if flow.field is not None:
        for e, row in enumerate(immersed.rows):
            rotation = s[row, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3)
            x = s[row, S_WORLD_POS : S_WORLD_POS + 3] + rotation @ immersed.common[e, CENTRE : CENTRE + 3]
            u = np.asarray(flow.field(x, time), dtype=float)
            if u.shape != (3,) or not np.all(np.isfinite(u)):
                raise ModelError(
                    f"{model.name}: flow: field must return 3 finite numbers, got {u.tolist()} at {x.tolist()}"
                )
            out[e] = u
    return out
