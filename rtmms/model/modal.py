"""Modal bodies: from shape functions or finite element files, and their checks."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.files import MIB, check_npz, open_input
from rtmms.base.spatial import PACKED_SIZE, Array, adjoint, unpack_inertia
from rtmms.model import layout as at
from rtmms.model.description import Body, Modal, Section
from rtmms.model.modal_rows import M_COUNT, M_FIRST, M_SHAPE, Modes
from rtmms.model.solids import Placement

# Makers of modal bodies: from shape functions along a beam, and from files of a finite element program.


MAX_BYTES = 1024 * MIB
"""Of a file of a finite element program."""

Shape = Callable[[float], Any]
"""X (m) from the root -> (6,): translation (m) and rotation (rad) for a unit of the coordinate."""


def sections_along(
    name: str, length: float, pieces: int, body_at: Callable[[str, float, float], Body], shapes: dict[str, Shape], *,
    rotation: Array | None = None, root: str = "clamped",
) -> list[Section]:  # fmt: skip
    """Sections of a beam along x, at the Gauss points of its length, each with the mass of its own share.

    body_at   (name, X, weight m) -> what a section at X of that length weighs, in its own frame
    shapes    of each mode;  rotation  of the sections' frames in the floating frame, None for its own axes
    root      'clamped': every shape must be 0 at X = 0, translation and rotation; 'free': not asked
    ModelError for a shape that does not meet its boundary, or is not finite.
    """
    check_shapes(name, length, shapes, root)
    nodes, weights = np.polynomial.legendre.leggauss(pieces)
    turned = np.eye(3) if rotation is None else rotation
    out = []
    for k, (node, weight) in enumerate(zip(nodes, weights, strict=True)):
        x, share = 0.5 * length * (1.0 + float(node)), 0.5 * length * float(weight)
        table = np.array([np.asarray(shape(x), dtype=float) for shape in shapes.values()])
        body = body_at(f"{name}.section{k + 1}", x, share)
        out.append(Section(body, Placement(turned, np.array([x, 0.0, 0.0])), table))
    return out


def check_shapes(name: str, length: float, shapes: dict[str, Shape], root: str = "clamped") -> None:
    """Refuse shapes that are not six finite numbers along the length, or do not meet the root's boundary."""
    if root not in ("clamped", "free"):
        raise ModelError(f"body '{name}': modal: root must be 'clamped' or 'free', got {root!r}")
    for mode, shape in shapes.items():
        place = f"body '{name}': modal: shape '{mode}'"
        values = []
        for x in np.linspace(0.0, length, 11):
            value = np.asarray(shape(float(x)), dtype=float)
            if value.shape != (6,) or not np.all(np.isfinite(value)):
                raise ModelError(f"{place}: expected 6 finite numbers at X = {x:.6g} m, got {value.tolist()}")
            values.append(value)
        most = float(np.max(np.abs(values)))
        if root == "clamped" and np.max(np.abs(values[0])) > 1e-9 * max(most, 1e-300):
            raise ModelError(
                f"{place}: does not meet its boundary: at the clamped root X = 0 it must be 0, got {values[0].tolist()}"
            )


def bending(function: Callable[[float], float], slope: Callable[[float], float], axis: str = "y") -> Shape:
    """A shape of bending along `axis`, y or z, of a beam along x: w(X) and w'(X) (1/m)."""
    if axis == "y":
        return lambda x: np.array([0.0, function(x), 0.0, 0.0, 0.0, slope(x)])
    return lambda x: np.array([0.0, 0.0, function(x), 0.0, -slope(x), 0.0])


def twisting(function: Callable[[float], float]) -> Shape:
    """A shape of twist about x, rad."""
    return lambda x: np.array([0.0, 0.0, 0.0, function(x), 0.0, 0.0])


def stiffness_of(
    shapes: Sequence[Callable[[float], float]], rigidity: Callable[[float], float], length: float
) -> Array:
    """(modes, modes) int of rigidity(X) f_i(X) f_j(X) over the length, by 40 Gauss points: GJ with the derivatives of
    twists, EI with the second derivatives of deflections."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    xs = 0.5 * length * (1.0 + nodes)
    table = np.array([[f(float(x)) for x in xs] for f in shapes])
    k = np.array([rigidity(float(x)) for x in xs]) * 0.5 * length * weights
    out: Array = (table * k) @ table.T
    return out


def own_modes(modal: Modal, mass: Array, count: int | None = None) -> Modal:
    """The same deformation in the coordinates of its own modes, which nothing couples: K phi = omega^2 M phi.

    mass  (modes, modes) of the coordinates it has;  count  of modes kept, the lowest; None for all
    Coordinates have modal mass 1: stiffness omega^2. Damping is taken along, what it couples is left out.
    """
    from scipy.linalg import eigh

    stiffness = np.asarray(modal.stiffness, dtype=float)
    k = np.diag(stiffness) if stiffness.ndim == 1 else stiffness
    values, vectors = eigh(k, np.asarray(mass, dtype=float))
    kept = len(values) if count is None else count
    turn = vectors[:, :kept]
    damping = np.asarray(modal.damping, dtype=float)
    d = np.diag(np.zeros(len(values)) + damping) if damping.ndim < 2 else damping
    sections = [replace(section, shape=turn.T @ np.asarray(section.shape, dtype=float)) for section in modal.sections]
    names = [f"mode{i + 1}" for i in range(kept)]
    return Modal(names, np.maximum(values[:kept], 0.0), sections, np.diag(turn.T @ d @ turn))


def from_finite_elements(
    name: str, nodes: Any, mass: Any, stiffness: Any, *, modes: int, clamped: Sequence[int] = (),
    damping_ratio: float = 0.0, places: dict[str, int] | None = None, elements: dict[int, Sequence[Any]] | None = None,
) -> Modal:  # fmt: skip
    """The lowest modes of a finite element model of solids.

    nodes      (k, 3) m, in the floating frame
    mass       (k, k) kg, a scalar mass matrix (alike for x, y, z), consistent or lumped; or (3 k, 3 k) of that form
    stiffness  (3 k, 3 k) N/m, x y z of node 0 first; both may be scipy's sparse matrices
    clamped    nodes that stay on the floating frame; without any the modes are a free body's, less the six rigid ones
    damping_ratio   of each mode
    places     names of sections without mass at nodes, for joints and outputs: NAME.PLACE
    elements   what acts on nodes
    All of the mass matrix counts, none of it is lumped: kinetic energy is that of 4 + 3 modes points that have the same
    moments (of order 0, 1 and 2, with each other and with the shapes). ModelError for what does not fit.
    """
    place = f"body '{name}': modal"
    x = np.array(nodes, dtype=float)
    if x.ndim != 2 or x.shape[1] != 3 or not np.all(np.isfinite(x)):
        raise ModelError(f"{place}: nodes must be finite numbers of shape (k, 3), got shape {x.shape}")
    k = len(x)
    m, kk = _scalar_mass(place, mass, k), _matrix(place, "stiffness", stiffness, 3 * k)
    if any(not 0 <= node < k for node in clamped):
        raise ModelError(f"{place}: clamped must be nodes 0 to {k - 1}, got {list(clamped)}")
    values, shapes = _modes(place, m, kk, np.array(sorted(set(clamped)), dtype=int), modes)
    frequency = np.sqrt(values)
    names = [f"mode{i + 1}" for i in range(modes)]
    sections = _points(name, x, m, shapes)
    for label, node in (places or {}).items():
        sections.append(_node(f"{name}.{label}", x, shapes, node, ()))
    for node, acting in (elements or {}).items():
        sections.append(_node(f"{name}.node{node}", x, shapes, node, acting))
    return Modal(names, values, sections, 2.0 * damping_ratio * frequency)


def load_finite_elements(name: str, path: str | Path, *, modes: int, **more: Any) -> Modal:
    """`from_finite_elements` of a .npz with nodes, mass, stiffness (clamped if any), or of a folder with nodes.csv,
    mass.mtx, stiffness.mtx (Matrix Market, read by scipy) and, if any, clamped.csv, node numbers from 0."""
    path = Path(path)
    try:
        if path.is_dir():
            import scipy.io

            mmread: Any = getattr(scipy.io, "mmread")  # noqa: B009  half typed

            found: dict[str, Any] = {}
            for key in ("mass", "stiffness"):
                with _opened(name, path / f"{key}.mtx", "a matrix (Matrix Market)") as opened:
                    found[key] = mmread(opened)
            for key in ("nodes", "clamped"):
                if key == "nodes" or (path / "clamped.csv").exists():
                    with _opened(name, path / f"{key}.csv", "a table of numbers") as opened:
                        found[key] = np.loadtxt(opened, delimiter=",", ndmin=2)
        else:
            with _opened(name, path, "a .npz file or a folder") as opened:
                check_npz(opened, path)
                with np.load(opened, allow_pickle=False) as file:
                    found = {key: file[key] for key in ("nodes", "mass", "stiffness", "clamped") if key in file}
        fixed = [int(node) for node in np.ravel(found.pop("clamped", []))]
        missing = {"nodes", "mass", "stiffness"} - found.keys()
        if missing:
            raise ValueError(f"lacks {', '.join(sorted(missing))}")
    except ModelError:
        raise
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as fault:
        raise ModelError(f"body '{name}': modal: {path}: cannot be read as a finite element model: {fault}") from None
    return from_finite_elements(name, **found, modes=modes, **{"clamped": fixed, **more})


def _opened(name: str, path: Path, expected: str) -> Any:
    """One file of a finite element model."""
    return open_input(path, place=f"body '{name}': modal:", expected=expected, max_bytes=MAX_BYTES)


def _matrix(place: str, what: str, given: Any, size: int) -> Array:
    dense = np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=float)
    if dense.shape != (size, size) or not np.all(np.isfinite(dense)):
        raise ModelError(f"{place}: {what} must be finite, of shape ({size}, {size}), got shape {dense.shape}")
    if np.max(np.abs(dense - dense.T)) > 1e-9 * np.max(np.abs(dense)):
        raise ModelError(f"{place}: {what} must be symmetric")
    out: Array = 0.5 * (dense + dense.T)
    return out


def _scalar_mass(place: str, given: Any, k: int) -> Array:
    """(k, k) kg; of a (3 k, 3 k) matrix that treats x, y, z alike."""
    shape = np.shape(given)
    if shape == (k, k):
        return _matrix(place, "mass", given, k)
    whole = _matrix(place, "mass", given, 3 * k)
    one: Array = whole[::3, ::3]
    if np.max(np.abs(whole - np.kron(one, np.eye(3)))) > 1e-9 * np.max(np.abs(whole)):
        raise ModelError(f"{place}: mass must weigh x, y and z of a node alike and apart (solids, not beams or shells)")
    return one


def _modes(place: str, m: Array, k: Array, fixed: Any, count: int) -> tuple[Array, Array]:
    """omega^2 (count,) and shapes (count, nodes, 3) of modal mass 1."""
    from scipy.linalg import eigh

    whole, nodes = np.kron(m, np.eye(3)), len(m)
    free = (
        np.setdiff1d(np.arange(3 * nodes), (3 * fixed[:, None] + np.arange(3)).ravel())
        if len(fixed)
        else np.arange(3 * nodes)
    )
    skip = 0 if len(fixed) else 6
    if not 1 <= count <= len(free) - skip:
        raise ModelError(f"{place}: modes must be 1 to {len(free) - skip}, got {count}")
    values, vectors = eigh(k[np.ix_(free, free)], whole[np.ix_(free, free)], subset_by_index=[0, skip + count - 1])
    least = 1e-9 * float(values[-1])
    rigid = int(np.sum(values < least))
    if rigid != skip:
        raise ModelError(
            f"{place}: expected {skip} motions without stiffness ({'clamped' if skip == 0 else 'free'}), got {rigid}: "
            "the shapes do not meet their boundary"
        )
    shapes = np.zeros((count, 3 * nodes))
    shapes[:, free] = vectors[:, skip:].T
    return values[skip:], shapes.reshape(count, nodes, 3)


def _points(name: str, x: Array, m: Array, shapes: Array) -> list[Section]:
    """Points of equal mass with the moments of 1, x, y, z and all shapes that the mass matrix gives."""
    fields = np.vstack([np.ones(len(x)), x.T, *(shape.T for shape in shapes)])
    gram = fields @ m @ fields.T
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    count, total = len(gram), float(gram[0, 0])
    # a reflection that makes the first field the same on all points
    wanted = np.full(count, np.sqrt(total / count))
    axis = root[0] - wanted
    size = float(axis @ axis)
    if size > 1e-24 * total:
        root = root - 2.0 / size * np.outer(root @ axis, axis)
    at = root / wanted
    out = []
    for k in range(count):
        body = Body(f"{name}.point{k + 1}", total / count)
        table = np.hstack([at[4:, k].reshape(len(shapes), 3), np.zeros((len(shapes), 3))])
        out.append(Section(body, Placement(np.eye(3), at[1:4, k]), table))
    return out


def _node(name: str, x: Array, shapes: Array, node: int, elements: Sequence[Any]) -> Section:
    if not 0 <= node < len(x):
        raise ModelError(f"body '{name}': node must be 0 to {len(x) - 1}, got {node}")
    table = np.hstack([shapes[:, node], np.zeros((len(shapes), 3))])
    return Section(Body(name, elements=elements), Placement(np.eye(3), x[node]), table)


# Checks of modal bodies: each refusal names the body, the mode or the section.


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
