"""Description of an FMU, and whether it can run here; units in FMI's form."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.base.files import XmlLimits, check_xml
from rtmms.fmi.archive import import_library
from rtmms.plant.protocol import Channel

MAX_XML_BYTES = 64 << 20
_LIMITS = XmlLimits(MAX_XML_BYTES, max_parts=400_000, max_value_chars=1 << 20)
MAX_REASON_CHARS = 400
MAX_NUMBERS = 100_000
"""Largest number of elements of all variables together."""
_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_description(path: str, folder: Path) -> Any:
    """Return the model description of an FMU.

    Parameters
    ----------
    path : str
        The FMU, for errors.
    folder : Path
        Its unpacked folder.

    Returns
    -------
    : fmpy.model_description.ModelDescription
        The description.

    Raises
    ------
    ModelError
        The FMU cannot run here.
    """
    fmpy = import_library("fmpy", f"{path}: an FMU")
    text = folder / "modelDescription.xml"
    if not text.is_file():
        raise ModelError(f"{path}: not an FMU: the file modelDescription.xml is missing in it")
    if text.stat().st_size > MAX_XML_BYTES:
        raise ModelError(
            f"{path}: expected a modelDescription.xml of at most {MAX_XML_BYTES >> 20} MiB, "
            f"got {text.stat().st_size} bytes"
        )
    counts = check_xml(text.read_bytes(), f"{path}: modelDescription.xml", _LIMITS)
    if counts.elements.get("ScalarVariable", 0) > MAX_NUMBERS:
        raise ModelError(f"{path}: expected at most {MAX_NUMBERS} numbers in all variables, got more")
    try:
        model_description = fmpy.read_model_description(str(folder))
    except Exception as fault:  # fmpy raises whatever its parsers do
        reason = " ".join(str(fault).replace(str(folder), path).split())[:MAX_REASON_CHARS]
        raise ModelError(f"{path}: not an FMU: {reason}") from None
    if model_description.coSimulation is None:
        raise ModelError(f"{path}: expected an FMU for co-simulation, got one without the element CoSimulation")
    if not model_description.fmiVersion.startswith(("2.", "3.")):
        raise ModelError(f"{path}: expected FMI 2 or 3, got {model_description.fmiVersion}")
    identifier = str(model_description.coSimulation.modelIdentifier)
    if not _C_NAME.fullmatch(identifier):
        raise ModelError(f"{path}: modelIdentifier: expected an identifier of C, got {identifier!r}")
    _refuse_sizes(path, model_description.modelVariables)
    platforms = fmpy.supported_platforms(str(folder))
    here = (
        "x86_64-linux"
        if model_description.fmiVersion.startswith("3.") and fmpy.platform == "linux64"
        else fmpy.platform
    )
    if not {here, fmpy.platform, getattr(fmpy, "platform_tuple", here)} & set(platforms):
        raise ModelError(
            f"{path}: the FMU has no binary for this machine ({here}), only for: {', '.join(platforms) or 'none'}"
        )
    return model_description


def _refuse_sizes(path: str, variables: Any) -> None:
    """Raise ModelError where variables have too many elements: each is a name here."""
    count = 0
    for variable in variables:
        try:
            size = shape(variable)
        except (TypeError, ValueError):
            raise ModelError(f"{path}: {variable.name}: Dimension: expected whole numbers") from None
        if any(n < 0 for n in size):
            raise ModelError(f"{path}: {variable.name}: Dimension: expected a number >= 0, got {min(size)}")
        count += math.prod(size)
        if count > MAX_NUMBERS:
            raise ModelError(f"{path}: expected at most {MAX_NUMBERS} numbers in all variables, got more "
                             f"(at {variable.name!r:.60})")  # fmt: skip


def shape(variable: Any) -> tuple[int, ...]:
    """Return the shape of a variable.

    Parameters
    ----------
    variable : Any
        The variable.

    Returns
    -------
    tuple[int, ...]
        () for a scalar.
    """
    return tuple(int(n) for n in variable.shape) if variable.shape else ()


def elements(variable: Any) -> list[str]:
    """Return the names of a variable's elements, row-major.

    Parameters
    ----------
    variable : Any
        The variable.

    Returns
    -------
    list[str]
        'u', or 'u[0]', 'u[1]' of an array.
    """
    size = shape(variable)
    if not size:
        return [variable.name]
    return [f"{variable.name}[{i}]" for i in range(math.prod(size))]


def actuator(variable: Any, name: str, place: int) -> Channel:
    """Return the channel of one element of an input.

    Parameters
    ----------
    variable : Any
        The variable.
    name : str
        Name of the element.
    place : int
        Index of the element.

    Returns
    -------
    Channel
        With the start value as neutral.
    """
    start = str(variable.start or "0").split()
    word = start[place] if place < len(start) else start[0]
    neutral = float({"true": 1.0, "false": 0.0}.get(word.lower(), word))
    lower, upper = limits(variable)
    return Channel(name, variable.unit or "", (), "", lower, upper, neutral)


def limits(variable: Any) -> tuple[float | None, float | None]:
    """Return the limits of a variable, its own, else its type's.

    Parameters
    ----------
    variable : Any
        The variable.

    Returns
    -------
    tuple[float | None, float | None]
        Lower and upper, None for none.
    """
    kind = variable.declaredType
    pairs = ((variable.min, getattr(kind, "min", None)), (variable.max, getattr(kind, "max", None)))
    lower, upper = (variable_limit if variable_limit is not None else common for variable_limit, common in pairs)
    return None if lower is None else float(lower), None if upper is None else float(upper)


# --- Units as FMI wants them: each that a variable names is defined by exponents of the SI base units.

_BASE = {name: {name: 1} for name in ("kg", "m", "s", "A", "K", "mol", "cd", "rad")}
_DERIVED: dict[str, dict[str, int]] = {
    "N": {"kg": 1, "m": 1, "s": -2}, "J": {"kg": 1, "m": 2, "s": -2}, "W": {"kg": 1, "m": 2, "s": -3},
    "Pa": {"kg": 1, "m": -1, "s": -2}, "Hz": {"s": -1}, "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
}  # fmt: skip
_FACTOR = re.compile(r"([A-Za-z]+)(-?\d+)?$")


def base_units(unit: str) -> dict[str, int] | None:
    """Return the exponents of kg, m, s, A, K, mol, cd, rad of a unit.

    Parameters
    ----------
    unit : str
        Such as 'm/s2', 'N m' or 'rad'.

    Returns
    -------
    dict[str, int] | None
        None for an empty or unknown unit, such as 'N, N m' of a wrench: such a variable has no unit, but a description
        with it.

    Examples
    --------
    >>> from rtmms.fmi.read_description import base_units
    >>> base_units("m/s2")
    {'m': 1, 's': -2}
    """
    over, *under = unit.split("/")
    if not unit or len(under) > 1:
        return None
    exponents: dict[str, int] = {}
    for sign, side in ((1, over), (-1, "".join(under))):
        for factor in side.split():
            match = _FACTOR.match(factor)
            known = (_BASE | _DERIVED).get(match[1]) if match else None
            if match is None or known is None:
                return None
            power = sign * int(match[2] or 1)
            for name, exponent in known.items():
                exponents[name] = exponents.get(name, 0) + power * exponent
    return {name: exponent for name, exponent in exponents.items() if exponent}
