"""What an FMU says of itself, and whether it can be run here."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from rtmms.errors import ModelError
from rtmms.fmi.needs import needed
from rtmms.plant import Channel

MOST_TEXT = 64 << 20
MOST_SAID = 400
_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def described(path: str, folder: Path) -> Any:
    """The model description of the FMU `path`, unpacked in `folder`; ModelError where it cannot be run here."""
    fmpy = needed("fmpy", f"{path}: an FMU")
    text = folder / "modelDescription.xml"
    if not text.is_file():
        raise ModelError(f"{path}: not an FMU: it holds no modelDescription.xml")
    if text.stat().st_size > MOST_TEXT:
        raise ModelError(
            f"{path}: expected a modelDescription.xml of at most {MOST_TEXT >> 20} MiB, got {text.stat().st_size} bytes"
        )
    try:
        found = fmpy.read_model_description(str(folder))
    except Exception as fault:  # fmpy raises whatever its parsers do
        told = " ".join(str(fault).replace(str(folder), path).split())[:MOST_SAID]
        raise ModelError(f"{path}: not an FMU: {told}") from None
    if found.coSimulation is None:
        raise ModelError(f"{path}: it is not for co-simulation (it has no CoSimulation element)")
    if not found.fmiVersion.startswith(("2.", "3.")):
        raise ModelError(f"{path}: FMI 2 and 3 are spoken here, got {found.fmiVersion}")
    identifier = str(found.coSimulation.modelIdentifier)
    if not _C_NAME.fullmatch(identifier):
        raise ModelError(f"{path}: modelIdentifier: expected a name as in C, got {identifier!r}")
    platforms = fmpy.supported_platforms(str(folder))
    here = "x86_64-linux" if found.fmiVersion.startswith("3.") and fmpy.platform == "linux64" else fmpy.platform
    if not {here, fmpy.platform, getattr(fmpy, "platform_tuple", here)} & set(platforms):
        raise ModelError(f"{path}: no binary for this machine ({here}); it has {', '.join(platforms) or 'none'}")
    return found


def shape(variable: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in variable.shape) if variable.shape else ()


def elements(variable: Any) -> list[str]:
    """'u', or 'u[0]', 'u[1]' of an array, row-major."""
    size = shape(variable)
    if not size:
        return [variable.name]
    return [f"{variable.name}[{i}]" for i in range(math.prod(size))]


def actuator(variable: Any, name: str, place: int) -> Channel:
    """One element of an input."""
    start = str(variable.start or "0").split()
    word = start[place] if place < len(start) else start[0]
    neutral = float({"true": 1.0, "false": 0.0}.get(word.lower(), word))
    lower, upper = limits(variable)
    return Channel(name, variable.unit or "", (), "", lower, upper, neutral)


def limits(variable: Any) -> tuple[float | None, float | None]:
    """Its own, else its type's."""
    kind = variable.declaredType
    pairs = ((variable.min, getattr(kind, "min", None)), (variable.max, getattr(kind, "max", None)))
    lower, upper = (own if own is not None else common for own, common in pairs)
    return None if lower is None else float(lower), None if upper is None else float(upper)
