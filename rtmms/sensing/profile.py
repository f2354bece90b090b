"""Which sensors a robot has: `ideal` (none: outputs are the truth), `typical`, or a file, with tables over either."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms.plant import Plant, describe_plant
from rtmms.sensing.data_sheets import KINDS, TYPICAL, Sensor
from rtmms.sensing.suite import built, senseless
from rtmms.toml_file import read_toml

PROFILES = ("ideal", "typical")
_OPTIONAL = {"encoder": ("rod_angle", "joint_position"), "current": ("rod_torque", "joint_torque")}


def read_profile(profile: str, plant: Plant, over: Mapping[str, Any] | None = None) -> dict[str, Sensor]:
    """The sensors of a profile on a plant, by name; empty for `ideal`.

    profile   ideal, typical, or a FILE.toml: tables [imu], [depth], ..., and `profile` to start from (ideal if not
    given)
    over      tables whose keys replace those of the profile; a table with `off = true` takes the sensor away
    `typical` leaves out what the plant has nothing for: rods or joints, water. ModelError names the sensor and the key.
    """
    tables = dict(over or {})
    if profile.endswith(".toml"):
        given = read_toml(Path(profile))
        start = given.pop("profile", "ideal")
        if start not in PROFILES:
            raise ModelError(f"{profile}: profile: {UnknownNameError('profile', str(start), PROFILES)}")
        try:
            return _merged(str(start), plant, [_tables(given), tables])
        except ModelError as fault:
            raise ModelError(f"{profile}: {fault}") from None
    if profile not in PROFILES:
        raise UnknownNameError("sensors", profile, PROFILES, "or a FILE.toml")
    return _merged(profile, plant, [tables])


def _merged(profile: str, plant: Plant, layers: list[dict[str, Any]]) -> dict[str, Sensor]:
    values: dict[str, dict[str, Any]] = {name: {} for name in (_usual(plant) if profile == "typical" else ())}
    for layer in layers:
        for name, table in layer.items():
            if not isinstance(table, Mapping):
                raise ModelError(f"sensors: {name}: expected a table, got {table!r}")
            if name.partition(".")[0] not in KINDS:
                raise UnknownNameError("sensor", name, KINDS)
            if table.get("off") is True:
                values.pop(name, None)
                continue
            values.setdefault(name, {}).update({key: value for key, value in table.items() if key != "off"})
    base = TYPICAL if profile == "typical" else {}
    made = {}
    for name, given in values.items():
        kind = name.partition(".")[0]
        own = dict(base.get(kind, {}))
        if (
            profile == "typical" and "rate_hz" not in given
        ):  # a part that is faster than the plant's steps is read once a step
            own["rate_hz"] = min(own.get("rate_hz", KINDS[kind].rate_hz), 1.0 / plant.dt)
        made[name] = built(name, given, own)
    return made


def _usual(plant: Plant) -> list[str]:
    outputs = {channel.name: channel.shape for channel in plant.outputs}
    around = describe_plant(plant).surroundings()
    listed = []
    for kind in KINDS:
        vectors = _OPTIONAL.get(kind)
        if vectors is not None and not any(len(outputs.get(name, ())) == 1 for name in vectors):
            continue
        if senseless(KINDS[kind], around):
            continue
        listed.append(kind)
    return listed


def _tables(given: Mapping[str, Any]) -> dict[str, Any]:
    """[imu.tail] is a table within [imu] for TOML, and a second sensor for us."""
    found: dict[str, Any] = {}
    for name, table in given.items():
        if isinstance(table, Mapping):
            inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
            for key, value in inner.items():
                found[f"{name}.{key}"] = value
            if len(inner) < len(table) or not table:
                found[name] = {key: value for key, value in table.items() if key not in inner}
        else:
            found[name] = table
    return found
