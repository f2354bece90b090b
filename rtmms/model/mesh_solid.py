"""Provide solids from a closed mesh of triangles: mass, centre and inertia of the enclosed volume."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, Renamed
from rtmms.base.install import install_command
from rtmms.base.spatial import Array
from rtmms.model.description import Indices
from rtmms.model.elements import checked_numbers
from rtmms.model.solids import Placement
from rtmms.model.urdf import read_mesh

KINDS = (".stl", ".obj", ".ply", ".off")
"""Endings of the files that `solid_from_mesh` reads."""
MAX_MERGED_SHARE = 1e-9
"""Largest distance of points that are merged, as a part of the mesh's size: an STL file repeats each point."""


@dataclass(frozen=True, eq=False)
class MeshSolid:
    """A homogeneous solid within a closed mesh; `solid_from_mesh` reads one from a file.

    Parameters
    ----------
    vertices : (n, 3) array
        m, in the solid's own axes.
    triangles : (k, 3) array of int64
        Indices of vertices, counter-clockwise from outside.
    density : float
        kg/m3.
    placement : Placement, optional
        The solid's axes in the body's frame.

    Notes
    -----
    Each triangle and the origin make a tetrahedron of signed volume V = a . (b x c) / 6. Their sums are exact: volume,
    first moment V (a + b + c) / 4, and second moment V (sum_i p_i p_i^T + p p^T) / 20 with p = a + b + c, as for any
    polynomial over a tetrahedron (Tonon 2004).

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms import model as m
    >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> round(6.0 * m.MeshSolid(corners, faces, 1000.0).volume, 9)
    1.0
    """

    vertices: Array
    triangles: Indices
    density: float
    placement: Placement = field(default_factory=Placement)

    @property
    def volume(self) -> float:
        """Enclosed volume, m3."""
        return float(self._moments()[0])

    def _moments(self) -> tuple[float, Array, Array]:
        """Return volume (m3), first moment (3,), m4, and second moment (3, 3), m5."""
        corners = np.asarray(self.vertices, dtype=float)[np.asarray(self.triangles)]
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        parts = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
        total = a + b + c
        first = parts @ total / 4.0
        second = sum(np.einsum("i,ij,ik->jk", parts, p, p) for p in (a, b, c, total)) / 20.0
        return float(parts.sum()), first, np.asarray(second)

    own = Renamed("mass_properties")

    def mass_properties(self) -> tuple[float, Array, Array]:
        """Return the mass properties in the solid's own axes.

        Returns
        -------
        (float, array, array)
            Mass, kg; centre of mass (3,), m; inertia (3, 3) about it, kg m2.
        """
        volume, first, second = self._moments()
        centre = first / volume
        about = second - volume * np.outer(centre, centre)
        inertia = self.density * (np.trace(about) * np.eye(3) - about)
        return self.density * volume, centre, 0.5 * (inertia + inertia.T)


def solid_from_mesh(
    path: str | Path, *, density: float | None = None, mass: float | None = None, scale: float = 1.0,
    placement: Placement | None = None,
) -> MeshSolid:  # fmt: skip
    """Read a solid from a mesh file.

    Parameters
    ----------
    path : str or Path
        File .stl, .obj, .ply or .off. All but .obj need trimesh, which the extra `urdf` installs.
    density : float, optional
        kg/m3; either this or `mass` is required.
    mass : float, optional
        kg, from which the density follows.
    scale : float, default 1.0
        Length of one unit of the file, m: 0.001 for a file in mm.
    placement : Placement, optional
        Frame of the mesh in the body's frame; None: the body's own.

    Returns
    -------
    MeshSolid
        A solid for `Body.solids`. `Body.fluid_density` gives its buoyancy, by its volume.

    Raises
    ------
    ModelError
        The file cannot be read, the mesh is not closed, or neither or both of density and mass are given.

    Examples
    --------
    >>> from rtmms import model as m
    >>> hull = m.Body("hull", solids=[m.solid_from_mesh("hull.stl", mass=1.2, scale=1e-3)])  # doctest: +SKIP
    """
    file = Path(path)
    place = f"solid_from_mesh: '{file.name}'"
    if (density is None) == (mass is None):
        raise ModelError(f"{place}: expected density or mass, got {'neither' if mass is None else 'both'}")
    values = {"scale": scale, "density": density, "mass": mass}
    for name, value in values.items():
        if value is not None and float(checked_numbers(value, (), f"{place}: {name}")) <= 0.0:
            raise ModelError(f"{place}: {name}: expected a number > 0, got {value!r}")
    if file.suffix.lower() not in KINDS:
        raise ModelError(f"{place}: expected a file of {', '.join(KINDS)}")
    try:
        vertices, triangles = read_mesh(file)
    except ModuleNotFoundError as fault:
        raise ModelError(f"{place}: needs {fault.name} ({install_command('urdf')}), or a .obj file") from None
    except ModelError as fault:
        raise ModelError(f"{place}: {fault}") from None
    except Exception as fault:  # whatever trimesh makes of a broken file
        raise ModelError(f"{place}: the mesh cannot be read ({fault!s:.80}); export it again") from None
    points, faces = _merged(vertices * scale, triangles, place)
    solid = MeshSolid(points, faces, 1.0, Placement() if placement is None else placement)
    volume = solid.volume
    if volume < 0.0:
        solid, volume = MeshSolid(points, faces[:, ::-1], 1.0, solid.placement), -volume
    if not volume > 0.0:
        raise ModelError(f"{place}: expected a mesh that encloses a volume, got {volume:g} m3")
    rho = float(density) if density is not None else float(mass or 0.0) / volume
    return MeshSolid(solid.vertices, solid.triangles, rho, solid.placement)


def _merged(vertices: Any, triangles: Any, place: str) -> tuple[Array, Indices]:
    """Return the mesh with equal points merged; ModelError where it is not closed."""
    points = np.asarray(vertices, dtype=float)
    if not len(triangles) or not np.all(np.isfinite(points)):
        raise ModelError(
            f"{place}: expected triangles and finite points, got {len(triangles)} triangles and "
            f"{int(np.sum(~np.isfinite(points).all(axis=-1)))} points that are not finite; export the "
            "mesh again"
        )
    step = MAX_MERGED_SHARE * float(np.max(np.ptp(points, axis=0), initial=0.0)) or 1.0
    keys = np.round((points - points.min(axis=0)) / step).astype(np.int64)
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    faces = np.asarray(number).ravel()[np.asarray(triangles, dtype=np.int64)]
    whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    faces = faces[whole]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    forward = {(int(a), int(b)) for a, b in edges}
    loose = sum((b, a) not in forward for a, b in forward) + len(edges) - len(forward)
    if loose:
        raise ModelError(
            f"{place}: expected a closed mesh with triangles of one orientation, got {loose} edges without a "
            "fitting neighbour; repair the mesh, or give the body mass and inertia"
        )
    return points[first], faces
