"""Compile a description to a model; this module contains every check of a mechanism, and each error names its place."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from rtmms.base.errors import ModelError, RtmmsWarning, UnknownNameError
from rtmms.base.spatial import PACKED_SIZE, Array, adjoint, inertia_matrix, pack_inertia, rotation_to, unpack_inertia
from rtmms.model import layout as at
from rtmms.model.compiled import Model
from rtmms.model.contact_rows import Ground, compile_ground
from rtmms.model.contacts import Floor
from rtmms.model.description import BASES, DRIVES, JOINT_TYPES, Body, Joint, Mechanism
from rtmms.model.elements import AddedMass, Element, checked_numbers
from rtmms.model.floor_rows import floor_rows, marker_rows
from rtmms.model.ground_rank import check_on_ground
from rtmms.model.links import with_links
from rtmms.model.modal import all_bodies, check_modal, check_modes, modal_numbers, parts_of
from rtmms.model.modal_rows import ModesInTheMaking
from rtmms.model.resistances import Resistance
from rtmms.model.solids import Placement, Solid, inertia_of


def compile_model(mechanism: Mechanism) -> Model:
    """Check a mechanism and return its flat arrays for kernels.

    Parameters
    ----------
    mechanism : Mechanism
        Description of the robot.

    Returns
    -------
    Model
        Compiled model.

    Raises
    ------
    ModelError
        The description is wrong; the message has the place, the value and what is expected.

    Examples
    --------
    >>> from rtmms import model as m
    >>> hull, leg = m.Body("hull", mass=1.0, inertia=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]), m.Body("leg", mass=0.1)
    >>> joint = m.Joint("hip", "hull", "leg", axis=(0, 1, 0), rotor=1e-3)
    >>> m.compile_model(m.Mechanism("hopper", [hull, leg], [joint])).joint_names
    ('hip',)
    """
    _check_kinds(mechanism)
    where = f"mechanism '{mechanism.name}'"
    mechanism = _with_elements(with_links(mechanism), where)
    gravity = checked_numbers(mechanism.gravity, (3,), f"{where}: gravity")
    if mechanism.base not in BASES:
        raise ModelError(f"{where}: base must be one of {', '.join(BASES)}, got '{mechanism.base}'")
    order = _tree_order(mechanism)
    builder = _Builder({body.name: body for body in all_bodies(mechanism.bodies)})
    builder.base(order[0])
    for joint in order[1]:
        builder.attach(joint)
    rolling = [contact for contact in mechanism.contacts if not isinstance(contact, Floor)]
    if rolling and mechanism.base != "free":
        raise ModelError(f"{where}: contacts need base='free', got base='{mechanism.base}'")
    ground = compile_ground(mechanism.contacts, builder.offsets, builder.rows, where)
    if mechanism.contacts and builder.making.of_row:
        raise ModelError(f"{where}: contacts with the ground and modal bodies in one tree are not supported")
    model = builder.finish(mechanism, gravity, ground)
    (check_on_ground if len(ground.rows) else _check_inertias)(model, where)
    return model


def _with_elements(mechanism: Mechanism, where: str) -> Mechanism:
    """Return the mechanism with the elements that name their body among that body's."""
    if isinstance(mechanism.elements, str) or not isinstance(mechanism.elements, Sequence):
        raise ModelError(f"{where}: elements: expected a list of elements, got {mechanism.elements!r}")
    elements: dict[str, list[Element]] = {body.name: list(body.elements) for body in mechanism.bodies}
    for body in mechanism.bodies:
        for k, element in enumerate(body.elements):
            if isinstance(element, Resistance) and element.body != body.name:
                raise ModelError(
                    f"body '{body.name}': elements[{k}]: body: expected '{body.name}', got {element.body!r}"
                )
    for k, element in enumerate(mechanism.elements):
        place = f"{where}: elements[{k}]"
        if not isinstance(element, Resistance):
            kinds = ", ".join(kind.__name__ for kind in Resistance.__subclasses__())
            raise ModelError(f"{place}: expected one of {kinds}, got {element!r}")
        element.check(place)
        if not isinstance(element.placement, Placement):
            raise ModelError(f"{place}: placement: expected a Placement, got {element.placement!r}")
        if element.body not in elements:
            raise ModelError(f"{place}: body: {UnknownNameError('body', element.body, elements)}")
        elements[element.body].append(element)
    if not mechanism.elements:
        return mechanism
    return replace(mechanism, bodies=[replace(b, elements=elements[b.name]) for b in mechanism.bodies], elements=())


MAX_INERTIA = 1e100
"""Largest mass or inertia, kg, kg m and kg m2, for which all derived numbers are finite."""


def _check_kinds(mechanism: Mechanism) -> None:
    """Raise an error where an object has the wrong type, so that all later checks can rely on it."""

    def expect(value: Any, kinds: tuple[type, ...], place: str) -> None:
        if not isinstance(value, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise ModelError(f"{place}: expected a {expected}, got {value!r}")

    expect(mechanism, (Mechanism,), "compile")
    where = f"mechanism '{mechanism.name}'"
    for k, body in enumerate(mechanism.bodies):
        expect(body, (Body,), f"{where}: bodies[{k}]")
    check_modal(mechanism.bodies)
    kinds = (*(kind for kind in Element.__subclasses__() if kind is not Resistance), *Resistance.__subclasses__())
    for body in all_bodies(mechanism.bodies):
        for i, element in enumerate(body.elements):
            expect(element, kinds, f"body '{body.name}': elements[{i}]")
            expect(element.placement, (Placement,), f"body '{body.name}': elements[{i}]: placement")
        for i, solid in enumerate(body.solids):
            if not isinstance(solid, Solid) or not hasattr(solid, "__dict__"):
                raise ModelError(f"body '{body.name}': solids[{i}]: expected a solid such as Box, got {solid!r}")
            expect(solid.placement, (Placement,), f"body '{body.name}': solids[{i}]: placement")
    for k, joint in enumerate(mechanism.joints):
        expect(joint, (Joint,), f"{where}: joints[{k}]")
        expect(joint.placement, (Placement,), f"joint '{joint.name}': placement")


def _tree_order(mechanism: Mechanism) -> tuple[str, list[Joint]]:
    """Return the base's name, and the joints with every parent before its children, otherwise in the given order."""
    where = f"mechanism '{mechanism.name}'"
    if not mechanism.bodies:
        raise ModelError(f"{where}: expected at least one body, got none")
    for kind, things in (("bodies", all_bodies(mechanism.bodies)), ("joints", mechanism.joints)):
        for name, count in Counter(thing.name for thing in things).items():
            if count > 1:
                raise ModelError(f"{where}: {count} {kind} are named '{name}'; names must be unique")
    names = {body.name for body in all_bodies(mechanism.bodies)}
    carried: dict[str, str] = {}
    for joint in mechanism.joints:
        for end, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in names:
                raise ModelError(
                    f"{where}: joint '{joint.name}': {end} '{name}' is not a body; known: {', '.join(sorted(names))}"
                )
        if joint.child in carried:
            raise ModelError(
                f"{where}: body '{joint.child}' is the child of joints '{carried[joint.child]}' and '{joint.name}': "
                "closed loops are not supported; cut the loop at one of them"
            )
        carried[joint.child] = joint.name
    roots = [body.name for body in mechanism.bodies if body.name not in carried]
    if len(roots) > 1:
        raise ModelError(
            f"{where}: expected one body that is no joint's child, the base, got {', '.join(map(repr, roots))}; "
            "connect the others by joints"
        )
    if not roots:
        raise ModelError(
            f"{where}: expected one body that is no joint's child, the base, got none: the joints form a loop; remove "
            "one joint"
        )
    parts = parts_of(mechanism.bodies)
    placed, left, order = parts[roots[0]], list(mechanism.joints), []
    while left:
        ready = next((joint for joint in left if joint.parent in placed), None)
        if ready is None:
            raise ModelError(
                f"{where}: joints {', '.join(repr(j.name) for j in left)} form a loop without a connection to the base "
                f"'{roots[0]}'; connect each body to the base by joints"
            )
        left.remove(ready)
        order.append(ready)
        placed |= parts[ready.child]
    return roots[0], order


class _Builder:
    """Rows of the model under construction; a row carries a described body at an offset in the row's frame."""

    def __init__(self, bodies: dict[str, Body]) -> None:
        self.bodies = bodies
        self.topology: list[list[int]] = []
        self.constant: list[Array] = []
        self.joint_names: list[str] = []
        self.offsets: dict[str, tuple[int, Placement]] = {}
        self.elements: list[tuple[int, Element]] = []
        self.viscous: list[Array] = []
        self.making = ModesInTheMaking()
        self.sections: list[tuple[int, Placement, list[int], Array, Array]] = []
        """For each section: its carrier's row, placement, mode rows, their shape, numbers; its row is -1, -2, ..."""
        self.rows: dict[str, tuple[Joint, list[int]]] = {}
        """For each joint: the joint, and the rows of its coordinates."""

    def base(self, name: str) -> None:
        """Add the row of the base."""
        self._row(-1, at.REVOLUTE, False, Placement())
        self._load(name, 0, Placement())

    def attach(self, joint: Joint) -> None:
        """Add the rows of a joint, and its child body."""
        place = f"joint '{joint.name}'"
        axes = _joint_axes(joint, place)
        rows = self.rows.setdefault(joint.name, (joint, []))[1]
        row, offset = self.offsets[joint.parent]
        if joint.type == "fixed":
            self._load(joint.child, row, offset @ joint.placement)
            return
        flexible: Any = None
        if row < 0:  # it hangs from a section: its parent is the section's carrier, and it moves with its shape
            row, there, modes, shape, _ = self.sections[-1 - row]
            offset, flexible = there @ offset, (modes, shape)
        # The child's frame at 0, seen from the carrier; each axis in turn becomes the z of a new row's frame.
        frame, back = offset @ joint.placement, Placement()
        for k, axis in enumerate(axes):
            turn = Placement(rotation_to(axis))
            kind = at.PRISMATIC if joint.type == "prismatic" else at.REVOLUTE
            parent, row = row, self._row(row, kind, joint.drive == "motion", frame @ turn)
            if flexible is not None:
                self.making.flexible[row] = (parent, there.position, *flexible)
                flexible = None
            for column, field in (
                (at.C_STIFFNESS, "stiffness"), (at.C_REST, "rest_position"), (at.C_DAMPING, "damping"),
                (at.C_COULOMB, "coulomb"), (at.C_ROTOR, "rotor"),
            ):  # fmt: skip
                self.constant[row][column] = _parameter(joint, field, place)
            rows.append(row)
            self.joint_names.append(joint.name if len(axes) == 1 else f"{joint.name}.{k + 1}")
            frame = back = Placement(turn.rotation.T)
        self._load(joint.child, row, back)

    def _row(self, parent: int, kind: int, imposed: bool, placement: Placement) -> int:
        row = np.zeros(at.C_WIDTH)
        row[at.C_ROT : at.C_ROT + 9] = placement.rotation.ravel()
        row[at.C_POS : at.C_POS + 3] = placement.position
        self.topology.append([parent, kind, int(imposed)])
        self.constant.append(row)
        self.viscous.append(np.zeros(PACKED_SIZE))
        return len(self.constant) - 1

    def _load(self, name: str, row: int, offset: Placement) -> None:
        """Add a described body's inertia, weight and elements to a row."""
        body, place = self.bodies[name], f"body '{name}'"
        self.offsets[name] = (row, offset)
        rigid, added = _rigid_inertia(body, place), np.zeros((6, 6))
        if body.added is not None:
            added += _symmetric(checked_numbers(body.added, (6, 6), f"{place}: added"), f"{place}: added")
        if body.viscous is not None:
            resistance = _symmetric(checked_numbers(body.viscous, (6, 6), f"{place}: viscous"), f"{place}: viscous")
            back = adjoint(offset.rotation, offset.position)
            if row < 0:
                raise ModelError(
                    f"{place}: viscous: a section of a modal body does not support viscous drag; give the "
                    "drag to a rigid body"
                )
            self.viscous[row] += pack_inertia(back.T @ resistance @ back)
        displaced, displaced_moment = _displaced(body, place)
        if body.modal is not None:
            self._bend(body, row, offset)
        for element in body.elements:
            element.check(place)
        whole, theirs = _whole_body(body, place, displaced, displaced_moment)
        for element in body.elements:
            added += element.added_inertia()
            placed: Any = replace(cast(Any, element), placement=offset @ element.placement)  # each is a dataclass
            if not theirs and element.displaced_mass > 0.0:
                placed = replace(placed, displaced=0.0)
            self.elements.append((row, placed))
        if whole is not None:
            self.elements.append((row, replace(whole, placement=offset)))
        x = adjoint(offset.rotation, offset.position)
        rigid, added = x.T @ rigid @ x, x.T @ added @ x
        c = self.constant[row] if row >= 0 else self.sections[-1 - row][4]
        mass, moment = rigid[0, 0], np.array([rigid[5, 1], rigid[3, 2], rigid[4, 0]])
        c[at.C_INERTIA : at.C_INERTIA + PACKED_SIZE] += pack_inertia(rigid + added)
        c[at.C_RIGID : at.C_RIGID + PACKED_SIZE] += pack_inertia(rigid)
        c[at.C_MASS] += mass
        c[at.C_MOMENT : at.C_MOMENT + 3] += moment
        c[at.C_WEIGHT] += mass - displaced
        c[at.C_WEIGHT_MOMENT : at.C_WEIGHT_MOMENT + 3] += (
            moment - offset.rotation @ displaced_moment - displaced * offset.position
        )

    def _bend(self, body: Body, row: int, offset: Placement) -> None:
        """Add rows for the modes of a body at an offset on a row, and its sections."""
        modal, place = body.modal, f"body '{body.name}': modal"
        assert modal is not None
        if row < 0:
            raise ModelError(f"{place}: a modal body fixed to a section of another is not supported; give it a joint")
        modes = []
        stiffness, damping = modal_numbers(modal, place)
        for name, k, c in zip(modal.names, stiffness, damping, strict=True):
            mode = self._row(row, at.MODE, False, Placement())
            self.constant[mode][at.C_STIFFNESS], self.constant[mode][at.C_DAMPING] = k, c
            self.joint_names.append(f"{body.name}.{name}")
            modes.append(mode)
        self.making.of_row.setdefault(row, []).extend(modes)
        for section in modal.sections:
            shape = checked_numbers(section.shape, (len(modes), 6), f"{place}: section '{section.body.name}': shape")
            turned = np.hstack([shape[:, :3] @ offset.rotation.T, shape[:, 3:] @ offset.rotation.T])
            self.sections.append((row, offset @ section.placement, modes, turned, np.zeros(at.C_WIDTH)))
            self._load(section.body.name, -len(self.sections), Placement())

    def _lay_out_sections(self) -> None:
        """Add the sections' rows, behind all rows with a coordinate."""
        first = len(self.constant)

        def place_of(row: int) -> int:
            return row if row >= 0 else first - 1 - row

        for k, (carrier, place, modes, shape, numbers) in enumerate(self.sections):
            row = self._row(carrier, at.SECTION, False, place)
            numbers[: at.C_INERTIA] = self.constant[row][: at.C_INERTIA]
            self.constant[row] = numbers
            self.making.flexible[first + k] = (carrier, place.position, modes, shape)
        self.offsets = {name: (place_of(row), offset) for name, (row, offset) in self.offsets.items()}
        self.elements = [(place_of(row), element) for row, element in self.elements]

    def finish(self, mechanism: Mechanism, gravity: Array, ground: Ground) -> Model:
        """Return the model of all rows."""
        self._lay_out_sections()
        names = tuple(self.offsets)
        arrays = {
            "topology": np.array(self.topology, dtype=np.int64),
            "constant": np.array(self.constant),
            "gravity": gravity,
            "viscous": np.array(self.viscous),
            "carrier": np.array([self.offsets[name][0] for name in names], dtype=np.int64),
            "offset_rotation": np.array([self.offsets[name][1].rotation for name in names]),
            "offset_position": np.array([self.offsets[name][1].position for name in names]),
        }
        for array in arrays.values():
            array.flags.writeable = False
        where = f"mechanism '{mechanism.name}'"
        floors = [
            (f"{where}: contacts[{k}] (Floor)", contact)
            for k, contact in enumerate(mechanism.contacts) if isinstance(contact, Floor)
        ]  # fmt: skip
        floor = floor_rows(floors, self.offsets, float(arrays["constant"][:, at.C_MASS].sum()))
        floor.flags.writeable = False
        mode = {"free": at.BASE_FREE, "prescribed": at.BASE_PRESCRIBED, "fixed": at.BASE_FIXED}[mechanism.base]
        return Model(
            name=mechanism.name,
            base_mode=mode,
            joint_names=tuple(self.joint_names),
            body_names=names,
            elements=tuple(self.elements),
            ground=ground,
            modes=self.making.finish(len(self.constant)),
            floor=floor,
            markers=marker_rows(mechanism.markers, self.offsets, where),
            **arrays,
        )


def _joint_axes(joint: Joint, place: str) -> Array:
    if joint.type not in JOINT_TYPES:
        raise ModelError(f"{place}: type must be one of {', '.join(JOINT_TYPES)}, got '{joint.type}'")
    if joint.drive not in DRIVES:
        raise ModelError(f"{place}: drive must be one of {', '.join(DRIVES)}, got '{joint.drive}'")
    if joint.type == "fixed":
        return np.zeros((0, 3))
    try:
        axes = joint.axes()
    except (TypeError, ValueError):
        raise ModelError(f"{place}: axis must be numbers of shape (3,), got {joint.axis!r}") from None
    axes = checked_numbers(axes, (JOINT_TYPES[joint.type], 3), f"{place}: axis")
    length: Array = np.sqrt(np.sum(axes**2, axis=1))
    if np.any(length < 1e-12):
        raise ModelError(f"{place}: axis must not be of zero length, got {axes.tolist()}")
    unit: Array = axes / length[:, None]
    return unit


def _parameter(joint: Joint, field: str, place: str) -> float:
    value = float(checked_numbers(getattr(joint, field), (), f"{place}: {field}"))
    if field != "rest_position" and value < 0.0:
        raise ModelError(f"{place}: {field} must be >= 0, got {value}")
    return value


def _symmetric(matrix: Array, place: str) -> Array:
    scale = float(np.max(np.abs(matrix), initial=0.0))
    if scale > MAX_INERTIA:
        raise ModelError(f"{place} must be at most {MAX_INERTIA:g} kg m2, got {scale}")
    if np.max(np.abs(matrix - matrix.T), initial=0.0) > 1e-9 * scale:
        raise ModelError(f"{place} must be symmetric, got {matrix.tolist()}")
    if scale > 0.0 and np.linalg.eigvalsh(matrix)[0] < -1e-9 * scale:
        raise ModelError(f"{place} must have no negative eigenvalue, got {np.linalg.eigvalsh(matrix).tolist()}")
    return 0.5 * (matrix + matrix.T)


def _rigid_inertia(body: Body, place: str) -> Array:
    mass = float(checked_numbers(body.mass, (), f"{place}: mass"))
    if mass < 0.0:
        raise ModelError(f"{place}: mass must be >= 0 kg, got {mass}")
    moment = checked_numbers(body.first_moment, (3,), f"{place}: first_moment")
    inertia = _symmetric(checked_numbers(body.inertia, (3, 3), f"{place}: inertia"), f"{place}: inertia")
    if max(mass, *np.abs(moment)) > MAX_INERTIA:
        raise ModelError(
            f"{place}: mass and first_moment must be at most {MAX_INERTIA:g} kg and kg m, got "
            f"{mass:g} and {moment.tolist()}"
        )
    body_inertia = inertia_matrix(mass, moment, inertia)
    if mass == 0.0 and np.any(moment != 0.0):
        raise ModelError(f"{place}: first_moment must be 0 where the mass is 0, got {moment.tolist()}")
    if mass > 0.0:
        centre = moment / mass
        central = inertia - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        scale = max(float(np.max(np.abs(inertia))), mass * float(centre @ centre), 1e-300)
        moments = np.linalg.eigvalsh(central)
        if moments[0] < -1e-9 * scale:
            raise ModelError(
                f"{place}: inertia about the centre of mass must not be negative, got principal moments "
                f"{moments.tolist()} kg m2; 'inertia' is meant about the body's origin"
            )
        if moments[2] > (moments[0] + moments[1]) + 1e-6 * scale:
            raise ModelError(
                f"{place}: no body has principal moments {moments.tolist()} kg m2: the largest exceeds the others' sum"
            )
    for k, solid in enumerate(body.solids):
        body_inertia = body_inertia + inertia_of(solid, f"{place}: solid {k}")
    return body_inertia


def _displaced(body: Body, place: str) -> tuple[float, Array]:
    """Return mass, kg, and first moments (3,), kg m, of the fluid that a body's solids displace."""
    density = float(checked_numbers(body.fluid_density, (), f"{place}: fluid_density"))
    if density < 0.0:
        raise ModelError(f"{place}: fluid_density must be >= 0 kg/m3, got {density}")
    total = np.zeros((6, 6))
    for solid in body.solids:
        total += inertia_of(solid) * density / solid.density
    more = float(checked_numbers(body.displaced, (), f"{place}: displaced"))
    if more < 0.0:
        raise ModelError(f"{place}: displaced must be >= 0 kg, got {more}")
    moment = checked_numbers(body.displaced_moment, (3,), f"{place}: displaced_moment")
    if density > 0.0 and more == 0.0 and not body.solids and not body.elements:
        warnings.warn(
            f"{place}: fluid_density {density:g} kg/m3 without solids gives no buoyancy; expected solids, or the mass "
            "of the displaced fluid (displaced, kg)",
            RtmmsWarning, stacklevel=2,
        )  # fmt: skip
    return float(total[0, 0]) + more, np.array([total[5, 1], total[3, 2], total[4, 0]]) + moment


NEGLIGIBLE = 1e-9
"""Share of the displaced mass, or of its distance from the origin, below which a difference is rounding."""


MAX_EXCESS_SHARE = 0.05
"""Share of the displaced mass by which that of the elements may be larger without a warning."""


def _whole_body(body: Body, place: str, displaced: float, moment: Array) -> tuple[AddedMass | None, bool]:
    """Return the element of `Body.added` and of the displaced fluid that the body's other elements do not cover.

    The element is None where there is neither. Buoyancy and the force of an accelerating fluid belong to one displaced
    mass at one place. So the element has the rest of the displaced mass. Where the elements have theirs at another
    place, the element has all of it, and the second value is False.
    """
    matrix = np.zeros((6, 6))
    if body.added is not None:
        matrix = _symmetric(checked_numbers(body.added, (6, 6), f"{place}: added"), f"{place}: added")
    left = displaced - sum(element.displaced_mass for element in body.elements)
    away = moment - sum((element.displaced_mass * element.centre for element in body.elements), np.zeros(3))
    theirs = left > NEGLIGIBLE * displaced
    if not theirs and abs(left) <= NEGLIGIBLE * displaced:
        theirs = bool(np.abs(away).max() <= NEGLIGIBLE * (displaced + np.abs(moment).max()))
        left, away = (0.0, np.zeros(3)) if theirs else (displaced, moment)
    elif not theirs:  # the elements have more
        if -left > MAX_EXCESS_SHARE * displaced > 0.0:
            warnings.warn(
                f"{place}: expected elements and solids that displace the same mass of fluid, got "
                f"{displaced - left:.4g} kg and {displaced:.4g} kg: the force of an accelerating fluid does not fit "
                "the buoyancy",
                RtmmsWarning, stacklevel=2,
            )  # fmt: skip
        left, theirs = 0.0, True
    if left == 0.0 and not np.any(matrix):
        return None, theirs
    return AddedMass(matrix, left, away / left if left > 0.0 else np.zeros(3)), theirs


def _check_inertias(model: Model, where: str) -> None:
    """Raise an error where the motion of a joint, or of a free base, moves no inertia.

    The check is the backward pass at q = 0, in plain numpy.
    """
    total = [unpack_inertia(c[at.C_INERTIA : at.C_INERTIA + PACKED_SIZE]) for c in model.constant]
    check_modes(model.topology, model.constant, model.modes, model.joint_names, where)
    for row in range(len(total) - 1, 0, -1):
        parent, kind, imposed = (int(v) for v in model.topology[row])
        c, m = model.constant[row], total[row]
        if kind == at.MODE:
            continue
        if kind == at.SECTION:
            imposed = 1
        k = 5 if kind == at.REVOLUTE else 2
        if not imposed:
            joint_inertia = m[k, k] + c[at.C_ROTOR]
            scale = float(np.trace(m)) if k == 5 else m[0, 0] + m[1, 1]
            if joint_inertia <= 1e-13 * scale or joint_inertia <= 0.0:
                raise ModelError(
                    f"{where}: joint '{model.joint_names[row - 1]}' is driven by torque, but its bodies have "
                    "no inertia; give them mass, or the joint a rotor inertia or drive='motion'"
                )
            m = m - np.outer(m[:, k], m[:, k]) / joint_inertia
        x = adjoint(c[at.C_ROT : at.C_ROT + 9].reshape(3, 3), c[at.C_POS : at.C_POS + 3])
        total[parent] = total[parent] + x.T @ m @ x
    if model.base_mode == at.BASE_FREE:
        m = total[0]
        size = 1.0 / np.sqrt(np.where(np.diag(m) > 0.0, np.diag(m), 1.0))
        smallest = np.linalg.eigvalsh(m * np.outer(size, size))[0]
        if np.any(np.diag(m) <= 0.0) or smallest < 1e-13:
            raise ModelError(
                f"{where}: the free base can move in a direction without inertia; give it mass and inertia, or "
                "base='fixed'"
            )
