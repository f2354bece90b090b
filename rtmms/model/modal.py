"""Provide modal bodies from shape functions along a beam or from finite element files, and their checks."""

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

# From shape functions along a beam, and from files of a finite element program.


MAX_MODEL_BYTES = 1024 * MIB
"""Largest size of a finite element program's file, bytes."""

Shape = Callable[[float], Any]
"""Function of X (m) from the root that returns translation (m) and rotation (rad), (6,), of a unit coordinate."""


def sections_along(
    name: str, length: float, pieces: int, body_at: Callable[[str, float, float], Body], shapes: dict[str, Shape], *,
    rotation: Array | None = None, root: str = "clamped",
) -> list[Section]:  # fmt: skip
    """Return sections of a beam along x, at the Gauss points of its length, each with the mass of its share.

    Parameters
    ----------
    name : str
        Name of the body.
    length : float
        m.
    pieces : int
        Number of sections.
    body_at : Callable[[str, float, float], Body]
        (name, X, weight), m -> body of a section at X of that length, in its own frame.
    shapes : dict[str, Shape]
        Shape function of each mode.
    rotation : (3, 3) array, optional
        Of the sections' frames in the floating frame; None for its own axes.
    root : str, default 'clamped'
        'clamped': every shape must be 0 at X = 0, translation and rotation. 'free': no such check.

    Returns
    -------
    list[Section]
        Sections for `Modal`.

    Raises
    ------
    ModelError
        A shape does not meet its boundary, or is not finite.
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
    """Check that shapes are six finite numbers along the length and meet the root's boundary.

    Parameters
    ----------
    name : str
        Name of the body, for messages.
    length : float
        m.
    shapes : dict[str, Shape]
        Shape function of each mode.
    root : str, default 'clamped'
        'clamped' or 'free'.

    Raises
    ------
    ModelError
        A shape is wrong; the message names it.
    """
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
        maximum = float(np.max(np.abs(values)))
        if root == "clamped" and np.max(np.abs(values[0])) > 1e-9 * max(maximum, 1e-300):
            raise ModelError(
                f"{place}: expected 0 at the clamped root X = 0, got {values[0].tolist()}: the shape does not "
                "meet its boundary condition"
            )


def bending(function: Callable[[float], float], slope: Callable[[float], float], axis: str = "y") -> Shape:
    """Return a shape of bending of a beam along x.

    Parameters
    ----------
    function : Callable[[float], float]
        w(X): deflection.
    slope : Callable[[float], float]
        w'(X), 1/m.
    axis : str, default 'y'
        Direction of the deflection, 'y' or 'z'.

    Returns
    -------
    Shape
        Shape function.
    """
    if axis == "y":
        return lambda x: np.array([0.0, function(x), 0.0, 0.0, 0.0, slope(x)])
    return lambda x: np.array([0.0, 0.0, function(x), 0.0, -slope(x), 0.0])


def twisting(function: Callable[[float], float]) -> Shape:
    """Return a shape of twist about x.

    Parameters
    ----------
    function : Callable[[float], float]
        Angle over X, rad.

    Returns
    -------
    Shape
        Shape function.
    """
    return lambda x: np.array([0.0, 0.0, 0.0, function(x), 0.0, 0.0])


def stiffness_of(
    shapes: Sequence[Callable[[float], float]], rigidity: Callable[[float], float], length: float
) -> Array:
    """Return the stiffness matrix int of rigidity(X) f_i(X) f_j(X) over the length, by 40 Gauss points.

    Parameters
    ----------
    shapes : Sequence[Callable[[float], float]]
        f_i: derivatives of twists with GJ, or second derivatives of deflections with EI.
    rigidity : Callable[[float], float]
        GJ or EI over X, N m2.
    length : float
        m.

    Returns
    -------
    (modes, modes) array
        Stiffness in the coordinates of the shapes.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)
    xs = 0.5 * length * (1.0 + nodes)
    table = np.array([[f(float(x)) for x in xs] for f in shapes])
    k = np.array([rigidity(float(x)) for x in xs]) * 0.5 * length * weights
    out: Array = (table * k) @ table.T
    return out


def own_modes(modal: Modal, mass: Array, count: int | None = None) -> Modal:
    """Return the same deformation in the coordinates of its own modes, which nothing couples: K phi = omega^2 M phi.

    The coordinates have modal mass 1 and stiffness omega^2. Damping is transformed; its coupling terms are dropped.

    Parameters
    ----------
    modal : Modal
        Deformation in its present coordinates.
    mass : (modes, modes) array
        Mass matrix of these coordinates.
    count : int, optional
        Number of modes, the lowest; None for all.

    Returns
    -------
    Modal
        Deformation with modes mode1, mode2, ...
    """
    from scipy.linalg import eigh

    stiffness = np.asarray(modal.stiffness, dtype=float)
    k = np.diag(stiffness) if stiffness.ndim == 1 else stiffness
    values, vectors = eigh(k, np.asarray(mass, dtype=float))
    mode_count = len(values) if count is None else count
    turn = vectors[:, :mode_count]
    damping = np.asarray(modal.damping, dtype=float)
    d = np.diag(np.zeros(len(values)) + damping) if damping.ndim < 2 else damping
    sections = [replace(section, shape=turn.T @ np.asarray(section.shape, dtype=float)) for section in modal.sections]
    names = [f"mode{i + 1}" for i in range(mode_count)]
    return Modal(names, np.maximum(values[:mode_count], 0.0), sections, np.diag(turn.T @ d @ turn))


def from_finite_elements(
    name: str, nodes: Any, mass: Any, stiffness: Any, *, modes: int, clamped: Sequence[int] = (),
    damping_ratio: float = 0.0, places: dict[str, int] | None = None, elements: dict[int, Sequence[Any]] | None = None,
) -> Modal:  # fmt: skip
    """Return the lowest modes of a finite element model of solids.

    Parameters
    ----------
    name : str
        Name of the body.
    nodes : (k, 3) array_like
        m, in the floating frame.
    mass : (k, k) or (3 k, 3 k) array_like
        kg, consistent or lumped, alike for x, y and z.
    stiffness : (3 k, 3 k) array_like
        N/m, x y z of node 0 first; both may be scipy's sparse matrices.
    modes : int
        Number of modes.
    clamped : Sequence[int], default ()
        Nodes fixed in the floating frame; without any, the modes are a free body's, less the six rigid ones.
    damping_ratio : float, default 0.0
        Of each mode.
    places : dict[str, int], optional
        Names of massless sections at nodes, for joints and outputs: NAME.PLACE.
    elements : dict[int, Sequence[Any]], optional
        Elements that act on nodes, by node.

    Returns
    -------
    Modal
        Deformation with modes mode1, mode2, ...

    Raises
    ------
    ModelError
        The data do not fit; the message names the matrix.

    Notes
    -----
    All of the mass matrix counts; nothing is lumped. The kinetic energy is that of 4 + 3 modes points with the same
    moments (of order 0, 1 and 2, with each other and with the shapes).
    """
    place = f"body '{name}': modal"
    x = np.array(nodes, dtype=float)
    if x.ndim != 2 or x.shape[1] != 3 or not np.all(np.isfinite(x)):
        raise ModelError(f"{place}: nodes: expected finite numbers of shape (k, 3), got {_shape_and_faults(x)}")
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
    """Return `from_finite_elements` of a file or a folder.

    Parameters
    ----------
    name : str
        Name of the body.
    path : str or Path
        A .npz with nodes, mass, stiffness (and clamped); or a folder with nodes.csv, mass.mtx and stiffness.mtx (Matrix
        Market, read by scipy), and optionally clamped.csv. Node numbers are from 0.
    modes : int
        Number of modes.
    **more : Any
        Further arguments of `from_finite_elements`.

    Returns
    -------
    Modal
        Deformation with modes mode1, mode2, ...

    Raises
    ------
    ModelError
        A file cannot be read, or the data do not fit.
    """
    path = Path(path)
    try:
        if path.is_dir():
            import scipy.io

            mmread: Any = getattr(scipy.io, "mmread")  # noqa: B009  half typed

            result: dict[str, Any] = {}
            for key in ("mass", "stiffness"):
                with _opened(name, path / f"{key}.mtx", "a matrix (Matrix Market)") as opened:
                    result[key] = mmread(opened)
            for key in ("nodes", "clamped"):
                if key == "nodes" or (path / "clamped.csv").exists():
                    with _opened(name, path / f"{key}.csv", "a table of numbers") as opened:
                        result[key] = np.loadtxt(opened, delimiter=",", ndmin=2)
        else:
            with _opened(name, path, "a .npz file or a folder") as opened:
                check_npz(opened, path)
                with np.load(opened, allow_pickle=False) as file:
                    result = {key: file[key] for key in ("nodes", "mass", "stiffness", "clamped") if key in file}
        fixed = [int(node) for node in np.ravel(result.pop("clamped", []))]
        missing = {"nodes", "mass", "stiffness"} - result.keys()
        if missing:
            raise ValueError(f"lacks {', '.join(sorted(missing))}")
    except ModelError:
        raise
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as fault:
        raise ModelError(f"body '{name}': modal: {path}: cannot be read as a finite element model: {fault}") from None
    return from_finite_elements(name, **result, modes=modes, **{"clamped": fixed, **more})


def _opened(name: str, path: Path, expected: str) -> Any:
    """Open one file of a finite element model."""
    return open_input(path, place=f"body '{name}': modal:", expected=expected, max_bytes=MAX_MODEL_BYTES)


def _shape_and_faults(values: Array) -> str:
    """Return the shape of an array, and how many of its numbers are not finite, for an error."""
    count = int(np.sum(~np.isfinite(values)))
    return f"shape {values.shape}" + (f" with {count} numbers that are not finite" if count else "")


def _matrix(place: str, what: str, values: Any, size: int) -> Array:
    dense = np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float)
    if dense.shape != (size, size) or not np.all(np.isfinite(dense)):
        raise ModelError(
            f"{place}: {what}: expected finite numbers of shape ({size}, {size}), got {_shape_and_faults(dense)}"
        )
    if np.max(np.abs(dense - dense.T)) > 1e-9 * np.max(np.abs(dense)):
        raise ModelError(f"{place}: {what} must be symmetric")
    out: Array = 0.5 * (dense + dense.T)
    return out


def _scalar_mass(place: str, mass: Any, k: int) -> Array:
    """Return the mass matrix (k, k), kg; a (3 k, 3 k) matrix must treat x, y, z alike."""
    shape = np.shape(mass)
    if shape == (k, k):
        return _matrix(place, "mass", mass, k)
    whole = _matrix(place, "mass", mass, 3 * k)
    item: Array = whole[::3, ::3]
    if np.max(np.abs(whole - np.kron(item, np.eye(3)))) > 1e-9 * np.max(np.abs(whole)):
        raise ModelError(
            f"{place}: mass: expected the same mass for x, y and z of a node, without coupling (solid "
            "elements, not beams or shells)"
        )
    return item


def _modes(place: str, m: Array, k: Array, fixed: Any, count: int) -> tuple[Array, Array]:
    """Return omega^2 (count,) and shapes (count, nodes, 3) of modal mass 1."""
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
            f"{place}: expected {skip} motions without stiffness ({'clamped' if skip == 0 else 'free'}), got "
            f"{rigid}: the shapes do not fulfil the boundary condition"
        )
    shapes = np.zeros((count, 3 * nodes))
    shapes[:, free] = vectors[:, skip:].T
    return values[skip:], shapes.reshape(count, nodes, 3)


def _points(name: str, x: Array, m: Array, shapes: Array) -> list[Section]:
    """Return points of equal mass with the mass matrix's moments of 1, x, y, z and all shapes."""
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


# Checks of modal bodies: each error names the body, the mode or the section.


def all_bodies(bodies: Sequence[Body]) -> list[Body]:
    """Return the bodies and the bodies of their sections.

    Parameters
    ----------
    bodies : Sequence[Body]
        Bodies of a mechanism.

    Returns
    -------
    list[Body]
        Each body, followed by those of its sections.
    """
    return [item for body in bodies for item in (body, *_of_sections(body))]


def parts_of(bodies: Sequence[Body]) -> dict[str, set[str]]:
    """Return the name of each body with those of its sections.

    Parameters
    ----------
    bodies : Sequence[Body]
        Bodies of a mechanism.

    Returns
    -------
    dict[str, set[str]]
        Body's name to the set of names.
    """
    return {body.name: {body.name, *(of_section.name for of_section in _of_sections(body))} for body in bodies}


def _of_sections(body: Body) -> list[Body]:
    return [] if body.modal is None else [section.body for section in body.modal.sections]


def check_modal(bodies: Sequence[Body]) -> None:
    """Check the types of modal bodies, and that sections are rigid.

    Parameters
    ----------
    bodies : Sequence[Body]
        Bodies of a mechanism.

    Raises
    ------
    ModelError
        An object has the wrong type, or a section is modal itself.
    """
    for body in bodies:
        modal, place = body.modal, f"body '{body.name}': modal"
        if modal is None:
            continue
        if not isinstance(modal, Modal):
            raise ModelError(f"{place}: expected a Modal, got {modal!r}")
        if isinstance(modal.names, str) or not modal.names or len(set(modal.names)) < len(modal.names):
            raise ModelError(f"{place}: names: expected different names of modes, got {modal.names!r}")
        for k, section in enumerate(modal.sections):
            if not isinstance(section, Section) or not isinstance(section.body, Body):
                raise ModelError(f"{place}: sections[{k}]: expected a Section, got {section!r}")
            if not isinstance(section.placement, Placement):
                raise ModelError(
                    f"{place}: section '{section.body.name}': placement: expected a Placement, got "
                    f"{section.placement!r}"
                )
            if section.body.modal is not None:
                raise ModelError(f"{place}: section '{section.body.name}' must be rigid, got one that is modal")


def modal_numbers(modal: Modal, place: str) -> tuple[Array, Array]:
    """Return stiffness and damping of the modes.

    Parameters
    ----------
    modal : Modal
        Deformation to check.
    place : str
        Name of the body, for messages.

    Returns
    -------
    (array, array)
        Stiffness and damping, (modes,) each.

    Raises
    ------
    ModelError
        A value is negative or not finite, or it couples modes.
    """
    result = []
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
                    f"{place}: {name}: expected no coupling of the modes, got {value.tolist()}; use the "
                    "body's own modes (rtmms.model.modal.own_modes)"
                )
            value = np.diag(value)
        value = value + np.zeros(count) if value.shape == () else value
        if value.shape != (count,) or not np.all(np.isfinite(value)) or np.any(value < 0.0):
            raise ModelError(f"{place}: {name} must be {count} finite numbers >= 0, got {value.tolist()}")
        result.append(value)
    return result[0], result[1]


def check_modes(topology: Any, constant: Array, modes: Modes, names: Sequence[str], where: str) -> None:
    """Check, in plain numpy at r = 0, that modes move mass and are independent of the whole body's motion.

    Parameters
    ----------
    topology, constant : array
        Arrays of the model.
    modes : Modes
        Modal bodies of the model.
    names : Sequence[str]
        Names of the coordinates.
    where : str
        Name of the mechanism, for messages.

    Raises
    ------
    ModelError
        A mode moves no mass, or moves it as the whole body or another mode does.
    """
    for row in np.flatnonzero(modes.book[:, M_COUNT]):
        first, count = modes.book[row, [M_FIRST, M_COUNT]]
        members = modes.members[first : first + count]
        total = np.zeros((6 + count, 6 + count))
        total[:6, :6] += _inertia(constant[row])
        for j in np.flatnonzero((modes.book[:, M_SHAPE] >= 0) & (topology[:, at.T_PARENT] == row)):
            mode_shape = modes.shape[modes.book[j, M_SHAPE] :][: 3 + 6 * count]
            rotation = constant[j, at.C_ROT : at.C_ROT + 9].reshape(3, 3)
            position = constant[j, at.C_POS : at.C_POS + 3]
            table, arm = mode_shape[3:].reshape(count, 6), position - mode_shape[:3]
            moved = np.hstack([table[:, :3] + np.cross(table[:, 3:], arm), table[:, 3:]])
            turn = np.kron(np.eye(2), rotation.T)
            j_all = np.hstack([adjoint(rotation, position), turn @ moved.T])
            total += j_all.T @ _inertia(constant[j]) @ j_all
        own_names = [names[mode - 1] for mode in members]
        for k, name in enumerate(own_names):
            if total[6 + k, 6 + k] <= 0.0:
                raise ModelError(
                    f"{where}: mode '{name}': expected a mode that moves mass, got shapes of 0, or sections without "
                    "mass"
                )
        size = np.sqrt(np.where(np.diag(total) > 0.0, np.diag(total), 1.0))
        scaled = total / np.outer(size, size)
        # what is left of the modes once the whole body's motion is taken out
        left = scaled[6:, 6:] - scaled[6:, :6] @ np.linalg.pinv(scaled[:6, :6], rcond=1e-10) @ scaled[:6, 6:]
        values, vectors = np.linalg.eigh(left)
        if values[0] < 1e-9:
            worst = own_names[int(np.argmax(np.abs(vectors[:, 0])))]
            raise ModelError(
                f"{where}: mode '{worst}' is not independent of the other modes and the rigid motion; "
                "expected a shape that is 0 at a clamped root"
            )


def _inertia(constant: Array) -> Array:
    return unpack_inertia(constant[at.C_INERTIA : at.C_INERTIA + PACKED_SIZE])
