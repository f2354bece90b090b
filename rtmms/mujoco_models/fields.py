"""Numeric fields of a compiled MuJoCo model that a person may change: `geom/floor/friction=0.4`.

A name is KIND/NAME/FIELD, with [k] behind it for one number of several. As in MJCF, fewer numbers than a field has
change the first ones.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import parameters_of, read_value
from rtmms.base.spatial import Array
from rtmms.mujoco_models.channels import object_name


class Kind(NamedTuple):
    """Kind of objects of a model.

    Attributes
    ----------
    size : str
        Attribute of the model with their number.
    object : str
        Name in mjtObj.
    fields : Mapping[str, str]
        Name of each field, and the attribute of the model that has it.
    """

    size: str
    object: str
    fields: Mapping[str, str]


KINDS: Mapping[str, Kind] = {
    "body": Kind("nbody", "BODY", {"mass": "body_mass", "inertia": "body_inertia", "gravcomp": "body_gravcomp"}),
    "joint": Kind("njnt", "JOINT", {
        "stiffness": "jnt_stiffness", "damping": "dof_damping", "armature": "dof_armature",
        "frictionloss": "dof_frictionloss",
    }),
    "geom": Kind("ngeom", "GEOM", {
        "friction": "geom_friction", "solref": "geom_solref", "solimp": "geom_solimp", "margin": "geom_margin",
    }),
    "tendon": Kind("ntendon", "TENDON", {
        "stiffness": "tendon_stiffness", "damping": "tendon_damping", "frictionloss": "tendon_frictionloss",
        "springlength": "tendon_lengthspring",
    }),
    "actuator": Kind("nu", "ACTUATOR", {
        "gear": "actuator_gear", "gainprm": "actuator_gainprm", "biasprm": "actuator_biasprm",
        "dynprm": "actuator_dynprm", "forcerange": "actuator_forcerange",
    }),
    "numeric": Kind("nnumeric", "NUMERIC", {"data": "numeric_data"}),
}  # fmt: skip

_POSITIVE = ("body.mass", "body.inertia")
_NOT_NEGATIVE = (
    "joint.stiffness", "joint.damping", "joint.armature", "joint.frictionloss", "geom.friction", "tendon.stiffness",
    "tendon.damping", "tendon.frictionloss",
)  # fmt: skip
_CONSTANTS = ("body.mass", "body.inertia", "joint.armature", "tendon.springlength", "actuator.gear", "joint.stiffness")
"""Fields from which MuJoCo derives others (mj_setConst)."""
_NAME = re.compile(r"(?P<kind>[a-z]+)/(?P<name>.+)/(?P<field>[a-z]+)(?:\[(?P<index>\d+)\])?", re.DOTALL)


class Change(NamedTuple):
    """Change of a field.

    Attributes
    ----------
    numbers : Array
        View of the model's numbers that change.
    values : Array
        Their new values.
    derived : bool
        Whether MuJoCo derives other fields from it.
    """

    numbers: Array
    values: Array
    derived: bool

    def apply(self) -> None:
        """Write the new values into the model."""
        self.numbers[:] = self.values


def field_names(mujoco: Any, model: Any) -> Iterator[str]:
    """Yield the names of the fields of all objects that have a name.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.

    Yields
    ------
    str
        KIND/NAME/FIELD.
    """
    for kind, about in KINDS.items():
        first = 1 if kind == "body" else 0  # the world has no mass
        for number in range(first, getattr(model, about.size)):
            name = object_name(mujoco, model, about.object, number)
            if name:
                yield from (f"{kind}/{name}/{field}" for field in about.fields)


def read_field(mujoco: Any, model: Any, path: str, key: str) -> Array:
    """Return a view of the numbers of a field.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    path : str
        The file, for errors.
    key : str
        KIND/NAME/FIELD.

    Returns
    -------
    Array
        The view.

    Raises
    ------
    UnknownNameError
        There is no such field; the message names the file.
    """
    return _find_field(mujoco, model, path, key)[0]


def read_change(mujoco: Any, model: Any, path: str, key: str, provided: Any) -> Change:
    """Return the change for KIND/NAME/FIELD = numbers; nothing is changed yet.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    path : str
        The file, for errors.
    key : str
        KIND/NAME/FIELD or KIND/NAME/FIELD[k].
    provided : Any
        A number, several, or the text of these with commas.

    Returns
    -------
    Change
        The change.

    Raises
    ------
    UnknownNameError, ModelError
        There is no such field, or it cannot have these numbers.
    """
    numbers, label, repeats = _find_field(mujoco, model, path, key)
    values = _read_numbers(f"{path}: {key}", provided)
    if repeats and len(values) == 1:
        values = np.repeat(values, len(numbers))
    if not 1 <= len(values) <= len(numbers):
        expected = "a number" if len(numbers) == 1 else f"1 to {len(numbers)} numbers"
        raise ModelError(f"{path}: {key}: expected {expected}, got {len(values)} numbers")
    strict = label in _POSITIVE
    if (strict and not (values > 0.0).all()) or (label in _NOT_NEGATIVE and not (values >= 0.0).all()):
        raise ModelError(f"{path}: {key}: expected numbers {'>' if strict else '>='} 0, got {provided!r:.60}")
    return Change(numbers[: len(values)], values, label in _CONSTANTS)


def read_parameters(
    mujoco: Any, model: Any, path: str, options: Any, values: Mapping[str, Any]
) -> tuple[Any, list[Change]]:  # fmt: skip
    """Return the options and the changes of fields for given values; nothing is changed yet.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    path : str
        The file, for errors.
    options : Any
        Dataclass of the plant's own parameters, with their present values.
    values : Mapping[str, Any]
        Values by the names of these parameters, and by KIND/NAME/FIELD.

    Returns
    -------
    tuple[Any, list[Change]]
        New options, and changes.

    Raises
    ------
    UnknownNameError, ModelError
        There is no such parameter, or it cannot have this value.
    """
    declared, changes, new = parameters_of(type(options)), [], options
    for name, value in values.items():
        if name in declared:
            if name == "gravity_m_s2" and isinstance(value, int | float) and not isinstance(value, bool):
                value = (0.0, 0.0, -value)
            number = read_value(f"{path}: {name}{{}}", getattr(options, name), declared[name], value)
            new = replace(new, **{name: number})
        elif name.partition("/")[0] in KINDS and "/" in name:
            changes.append(read_change(mujoco, model, path, name, value))
        else:
            example = next(field_names(mujoco, model), "geom/floor/friction")
            more = f"numbers of the model are KIND/NAME/FIELD, for example {example}"
            raise UnknownNameError(f"parameter of {path}", name, declared, more)
    return new, changes


def _find_field(mujoco: Any, model: Any, path: str, key: str) -> tuple[Array, str, bool]:
    """Return a view of the numbers, 'kind.field', and whether one number stands for all (a joint's coordinates)."""
    form = _NAME.fullmatch(key)
    unknown = UnknownNameError(f"parameter of {path}", key, _similar(field_names(mujoco, model), key))
    if form is None or form["kind"] not in KINDS or form["field"] not in KINDS[form["kind"]].fields:
        raise unknown
    about = KINDS[form["kind"]]
    number = mujoco.mj_name2id(model, int(getattr(mujoco.mjtObj, f"mjOBJ_{about.object}")), form["name"])
    if number < 0:
        raise unknown
    attribute = about.fields[form["field"]]
    table, repeats = getattr(model, attribute), False
    if attribute.startswith("dof_"):
        first = int(model.jnt_dofadr[number])
        later = [int(item) for item in model.jnt_dofadr if item > first]
        numbers, repeats = table[first : min(later, default=model.nv)], True
    elif form["kind"] == "numeric":
        first = int(model.numeric_adr[number])
        numbers = table[first : first + int(model.numeric_size[number])]
    else:
        numbers = table[number : number + 1].reshape(-1)
    if form["index"] is not None:
        index = int(form["index"])
        if index >= len(numbers):
            raise ModelError(f"{path}: {key}: expected an index from 0 to {len(numbers) - 1}, got {index}")
        numbers, repeats = numbers[index : index + 1], False
    return numbers, f"{form['kind']}.{form['field']}", repeats


def _similar(names: Iterator[str], key: str) -> list[str]:
    """Return the names that may be meant: of the same kind, else all; of a large model, as many as a person reads."""
    listed = list(names)
    same = [name for name in listed if name.partition("/")[0] == key.partition("/")[0]]
    close = difflib.get_close_matches(key, same or listed, n=8, cutoff=0.3)
    return close or (same or listed)[:8]


def _read_numbers(place: str, provided: Any) -> Array:
    parts = (
        provided.split(",") if isinstance(provided, str) else [provided] if np.ndim(provided) == 0 else list(provided)
    )
    try:
        if any(isinstance(part, bool | np.bool_) for part in parts):
            raise ValueError
        values = [float(part) for part in parts]
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{place}: expected numbers, got {provided!r:.60}") from None
    if not all(math.isfinite(value) for value in values):
        raise ModelError(f"{place}: expected finite numbers, got {provided!r:.60}")
    return np.array(values)
