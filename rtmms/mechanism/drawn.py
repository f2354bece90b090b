"""What viewers draw of a tree: its bodies as solids, in the frames that its joints move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rtmms.mechanism.actuators import Attachment, Rotor
from rtmms.mechanism.tendon_paths import Tendon
from rtmms.mechanism.tendons import PLACE, ROW
from rtmms.model.compiled import Model
from rtmms.model.description import Mechanism
from rtmms.model.elements import Blade, Strip
from rtmms.model.layout import C_MASS, C_MOMENT, C_POS, C_RIGID, C_ROT, PRISMATIC, T_KIND, T_PARENT
from rtmms.model.solids import Box, Cylinder, Ellipsoid, EllipticCylinder, HalfEllipsoid, Placement, Solid
from rtmms.spatial import Array, matrix_quaternion, unpack_inertia

THIN = 0.02
"""Of a plate's chord: how thick it is drawn."""
THICK = 0.08
"""The same of a wing."""


def drawn(model: Model, mechanism: Mechanism | None, pushing: Iterable[Any] = ()) -> dict[str, Any]:
    """The shape (rtmms.plant.PlantDescription) of a tree; the mechanism, where it is known, has the solids.

    pushing   actuators; rotors among them are drawn with blades

    A body is drawn by its drawings, or else by its solids, its blades, the ellipsoid of its inertia, or its strips;
    wings, which have a polar, and the pieces of soft rods always.
    """
    if np.any(model.topology[1:, T_KIND] > PRISMATIC):
        return {}  # bodies that bend: their robots have drawings of their own
    joints = [
        {
            "parent": int(model.topology[j, T_PARENT]),
            "slides": bool(model.topology[j, T_KIND] == PRISMATIC),
            **_placed(Placement(model.constant[j, C_ROT : C_ROT + 9].reshape(3, 3), model.constant[j, C_POS:][:3])),
        }
        for j in range(1, model.n + 1)
    ]
    cords = list(_cords(model, mechanism, pushing))
    told = {"joints": joints, "parts": [*_parts(model, mechanism), *_discs(model, pushing)]}
    return {**told, "cords": cords} if cords else told


def _cords(model: Model, mechanism: Mechanism | None, pushing: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for one in pushing:
        if isinstance(one, Tendon):
            points = one.points(Attachment(model, () if mechanism is None else mechanism.rods))
            numbers = [[int(p[ROW]), *(_short(x) for x in p[PLACE : PLACE + 3])] for p in points]
            yield {"name": one.name, "points": numbers}


def _discs(model: Model, pushing: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for k, rotor in enumerate(one for one in pushing if isinstance(one, Rotor)):
        body = model.body(rotor.body)
        place = Placement(model.offset_rotation[body], model.offset_position[body]) @ rotor.placement
        wide = 1.1 * float(np.linalg.norm(rotor.placement.position)) or 0.1
        yield _part(f"rotor{k + 1}", int(model.carrier[body]), "rotor", place, (wide, wide, 0.05 * wide))


def _parts(model: Model, mechanism: Mechanism | None) -> Iterator[dict[str, Any]]:
    bodies = {} if mechanism is None else {body.name: body for body in mechanism.bodies}
    seen: set[int] = set()
    for k, name in enumerate(model.body_names):
        row = int(model.carrier[k])
        offset = Placement(model.offset_rotation[k], model.offset_position[k])
        for drawing in bodies[name].drawings if name in bodies else ():
            colour = {"colour": list(drawing.colour)} if drawing.colour else {}
            yield {
                **_part(name, row, drawing.kind, offset @ drawing.placement, drawing.size),
                **drawing.told(),
                **colour,
            }
            seen.add(row)
        if name in bodies and bodies[name].drawings:
            continue
        for solid in bodies[name].solids if name in bodies else ():
            made = _solid(solid)
            if made is not None:
                kind, place, size = made
                yield _part(name, row, kind, offset @ place, size)
                seen.add(row)
    names = {int(row): name for row, name in zip(model.carrier[::-1], model.body_names[::-1], strict=True)}
    for part in _pieces(model, mechanism):
        yield part
        seen.add(part["body"])
    for row, element in model.elements:
        if isinstance(element, Strip | Blade) and element.polar is not None:
            yield _wing(names.get(row, f"body{row}"), row, element)
    modelled = frozenset(seen)
    for row, element in model.elements:
        place = element.placement
        if row in modelled or not isinstance(element, Strip | Blade) or element.polar is not None:
            continue
        if isinstance(element, Strip) and model.constant[row, C_MASS] > 0.0:
            continue
        seen.add(row)
        if isinstance(element, Strip):
            # as wide as its displaced fluid, a round section of water; a tenth of its length where it displaces none
            wide = 2.0 * float(np.sqrt(element.displaced / (1000.0 * np.pi))) or 0.1 * element.length
            yield _part(names.get(row, f"body{row}"), row, "ellipsoid", place, (element.length, wide, wide))
        else:
            middle = Placement(np.eye(3), np.array([0.5 * element.length, 0.0, -0.5 * element.chord]))
            size = (element.length, THIN * element.chord, element.chord)
            yield _part(names.get(row, f"body{row}"), row, "box", place @ middle, size)
    for row in range(model.n + 1):
        if row not in seen and model.constant[row, C_MASS] > 0.0:
            place, size = _ellipsoid(model.constant[row])
            yield _part(names.get(row, f"body{row}"), row, "ellipsoid", place, size)


def _wing(name: str, row: int, element: Strip | Blade) -> dict[str, Any]:
    """A plate of the wing's span and chord."""
    place, chord = element.placement, element.chord
    if isinstance(element, Blade):
        middle = Placement(np.eye(3), np.array([0.5 * element.length, 0.0, -0.5 * chord]))
        return _part(f"{name}.wing", row, "box", place @ middle, (element.length, THICK * chord, chord))
    return _part(f"{name}.wing", row, "box", place, (element.length, chord, THICK * chord))


def _pieces(model: Model, mechanism: Mechanism | None) -> Iterator[dict[str, Any]]:
    """Of soft rods: elliptic cylinders whose half-axes are 2 sqrt(I / m) of their sections, and balls at the joints."""
    along = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # own z -> x, x -> y, y -> z
    for rod in () if mechanism is None else mechanism.rods:
        for j, (start, end, origin) in enumerate(rod.pieces()):
            name = f"{rod.name}.{j}" if j else f"{rod.name}.root"
            section, k = rod.at(0.5 * (start + end)), model.body(name)
            _, about_y, about_z = (4.0 * np.sqrt(i / section.mass_kg_m) for i in section.inertia_kg_m)
            offset = Placement(model.offset_rotation[k], model.offset_position[k])
            place = offset @ Placement(along, np.array([0.5 * (start + end) - origin, 0.0, 0.0]))
            size = (float(about_z), float(about_y), end - start)
            yield _part(name, int(model.carrier[k]), "cylinder", place, size)
            if j:
                ball = (min(size[:2]), *size[:2])
                yield _part(f"{name}.joint", int(model.carrier[k]), "ellipsoid", offset, ball)


def _solid(solid: Solid) -> tuple[str, Placement, tuple[float, float, float]] | None:
    """Kind, placement of its middle, full sizes; None for a solid of somebody else's making."""
    place = solid.placement
    match solid:
        case Box():
            return "box", place, (solid.x, solid.y, solid.z)
        case EllipticCylinder():
            return "cylinder", place, (2.0 * solid.a, 2.0 * solid.b, solid.length)
        case Cylinder():
            return "cylinder", place, (2.0 * solid.radius, 2.0 * solid.radius, solid.length)
        case Ellipsoid():
            return "ellipsoid", place, (2.0 * solid.a, 2.0 * solid.b, 2.0 * solid.c)
        case HalfEllipsoid():  # as an ellipsoid of the half's height
            middle = Placement(np.eye(3), np.array([0.0, 0.0, 0.5 * solid.c]))
            return "ellipsoid", place @ middle, (2.0 * solid.a, 2.0 * solid.b, solid.c)
    return None


def _ellipsoid(constant: Array) -> tuple[Placement, tuple[float, float, float]]:
    """The uniform ellipsoid of the same mass, centre and principal moments: I1 = m (b^2 + c^2) / 5."""
    mass = float(constant[C_MASS])
    centre = constant[C_MOMENT : C_MOMENT + 3] / mass
    inertia = unpack_inertia(constant[C_RIGID : C_RIGID + 21])[3:, 3:]
    # Huygens: the inertia about the centre
    about = inertia - mass * (np.dot(centre, centre) * np.eye(3) - np.outer(centre, centre))
    moments, axes = np.linalg.eigh(about)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    squares = 2.5 * (moments.sum() - 2.0 * moments) / mass
    longest = float(np.sqrt(max(squares.max(), 1e-8)))
    sizes = 2.0 * np.sqrt(np.maximum(squares, (0.05 * longest) ** 2))
    return Placement(axes, centre), (float(sizes[0]), float(sizes[1]), float(sizes[2]))


def _part(name: str, row: int, kind: str, place: Placement, size: tuple[float, float, float]) -> dict[str, Any]:
    return {"name": name, "body": row, "kind": kind, "size": [_short(s) for s in size], **_placed(place)}


def _placed(place: Placement) -> dict[str, list[float]]:
    return {
        "position": [_short(x) for x in place.position],
        "quaternion": [_short(x) for x in matrix_quaternion(place.rotation)],
    }


def _short(value: float) -> float:
    """Seven digits: a drawing needs no more, and a welcome carries it."""
    return float(f"{value:.7g}")
