"""Whether what a log or a trace says of its run can be what `rtmms.record.origin` wrote: its author may be anybody."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtmms.errors import ModelError

MOST_NUMBERS = 1_000_000
"""Of all outputs, or all actuators, in one step."""

STEP_S = (1e-9, 1e6)
"""The shortest step, and the longest."""


def refuse_origin(origin: Mapping[str, Any], place: str) -> None:
    """ModelError naming the field that is not of the form that a run writes.  place: the file."""

    def expect(holds: bool, name: str, expected: str) -> None:
        if not holds:
            raise ModelError(f"{place}: {name}: expected {expected}, got {origin.get(name)!r:.60}")

    dt, seed, preset = origin.get("dt"), origin.get("seed"), origin.get("preset")
    expect(_named(origin.get("robot")), "robot", "a name")
    expect(_number(dt) and STEP_S[0] <= dt <= STEP_S[1], "dt", f"a step of {STEP_S[0]:g} to {STEP_S[1]:g} s")  # type: ignore[operator]
    expect(isinstance(seed, int) and seed >= 0, "seed", "a whole number from 0 on")
    expect(preset is None or _named(preset), "preset", "a name or null")
    expect(isinstance(origin.get("parameters"), dict), "parameters", "a table")
    sensors = origin.get("sensors")
    tables = isinstance(sensors, dict) and all(isinstance(one, dict) for one in sensors.values())
    expect(sensors is None or tables, "sensors", "tables or null")


def refuse_channels(origin: Mapping[str, Any], place: str) -> None:
    """The same for the channels and versions of a log."""
    for kind in ("actuators", "outputs"):
        found = origin.get(kind)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise ModelError(f"{place}: {kind}: expected a list of channels, got {found!r:.60}")
        numbers = 0
        for one in found:
            shape = one.get("shape", ())
            if not _named(one.get("name")) or not isinstance(one.get("unit", ""), str):
                raise ModelError(f"{place}: {kind}: expected a name and a unit, got {one.get('name')!r:.60}")
            if not isinstance(shape, list | tuple) or not all(type(n) is int and n >= 0 for n in shape):
                raise ModelError(f"{place}: {kind}: {one['name']}: expected a shape of sizes, got {shape!r:.60}")
            numbers += math.prod(shape)
        if numbers > MOST_NUMBERS:
            raise ModelError(f"{place}: {kind}: expected at most {MOST_NUMBERS} numbers in a step, got {numbers:.6g}")
    versions = origin.get("versions")
    if not isinstance(versions, dict) or not isinstance(versions.get("rtmms"), str):
        raise ModelError(f"{place}: versions: expected a table with rtmms, got {versions!r:.60}")


def refuse_foreign_code(path: Path, place: str) -> None:
    """ModelError where a file of code that a log names is another user's, or can be written by everybody.

    To replay a log of such a plant is to run that file, and the log's author chose its name.
    """
    if not hasattr(os, "geteuid") or not path.is_file():
        return  # whoever loads it says that there is none
    for one in (path.resolve(), path.resolve().parent):
        found = one.stat()
        if found.st_uid not in (0, os.geteuid()):
            why = f"'{one}' belongs to another user (uid {found.st_uid})"
        elif found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            why = f"'{one}' can be written by everybody (mode {stat.S_IMODE(found.st_mode):04o})"
        else:
            continue
        raise ModelError(f"{place}, which would run as code: {why}; expected a file of yours alone")


def _named(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 4096 and "\0" not in value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
