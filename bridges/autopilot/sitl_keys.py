"""Further keys of ArduPilot's JSON backend: rangefinders, airspeed, wind, RC input, the battery.

ArduPilot searches the line for a section's letters, and from there for the key's. The first place with them counts. So
the sections come last, and none of their keys may be within one that is found before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rtmms.base.attitude import Vector, rotate
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.bridging.channels import field as find_field
from rtmms.wire.protocol.received_state import PlantInfo, State

from ..motion.frames import world_to_ned
from ..motion.pose import Motion

WIND = "velocity_wind"
KEYS: dict[str, tuple[str, str]] = {
    **{f"rng_{i}": ("", f"rng_{i}") for i in range(1, 7)}, "airspeed": ("", "airspeed"), WIND: ("", WIND),
    "windvane_direction": ("windvane", "direction"), "windvane_speed": ("windvane", "speed"),
    **{f"rc_{i}": ("rc", f"rc_{i}") for i in range(1, 13)},
    "battery_voltage": ("battery", "voltage"), "battery_current": ("battery", "current"),
}  # fmt: skip
"""Section and key of each of our names, in the order in which they are written."""


def check(names: Mapping[str, str]) -> None:
    """Raise ModelError for keys that ArduPilot does not know, or would take for another one.

    Parameters
    ----------
    names : Mapping[str, str]
        Outputs by key.

    Raises
    ------
    ModelError
        If there is such a key.
    """
    unknown = [name for name in names if name not in KEYS]
    if unknown:
        raise ModelError(f"more: {UnknownNameError('key', unknown[0], tuple(KEYS))}")
    if "rc_1" not in names and any(f"rc_{i}" in names for i in (10, 11, 12)):
        raise ModelError("more: expected rc_1 with rc_10 to rc_12, as ArduPilot reads these as rc_1 otherwise")


class KeyReader:
    """Reader of these keys in each state.

    Parameters
    ----------
    names : Mapping[str, str]
        OUTPUT or OUTPUT[INDEX] by key; for velocity_wind an output of 3 numbers, m/s, world or body.
    plant : PlantInfo
        The plant.
    x_bearing : float
        Compass bearing of the world's x axis, rad.

    Raises
    ------
    ModelError
        If the plant lacks an output; it names the output.
    """

    def __init__(self, names: Mapping[str, str], plant: PlantInfo, x_bearing: float) -> None:
        self._read: dict[str, Callable[[State, Motion], Any]] = {}
        for name in KEYS:
            if name in names and name == WIND:
                self._read[name] = _wind(names[name], plant, x_bearing)
            elif name in names:
                self._read[name] = _number(names[name], plant, f"more.{name}")

    def __call__(self, state: State, motion: Motion) -> dict[str, Any]:
        """Return the keys as they are written: those of the top level, then the sections."""
        return nested({name: read(state, motion) for name, read in self._read.items()})


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in their sections.

    Parameters
    ----------
    values : Mapping[str, Any]
        Values by our names.

    Returns
    -------
    dict[str, Any]
        Values by key, and sections with theirs.
    """
    fields: dict[str, Any] = {}
    for name, value in values.items():
        section, key = KEYS[name]
        (fields.setdefault(section, {}) if section else fields)[key] = value
    return fields


def _number(name: str, plant: PlantInfo, place: str) -> Callable[[State, Motion], Any]:
    field = find_field(name, plant, place)
    return lambda state, _: field(state)


def _wind(name: str, plant: PlantInfo, x_bearing: float) -> Callable[[State, Motion], Any]:
    known = {channel.name: channel for channel in plant.outputs}
    channel = known.get(name)
    if channel is None:
        raise ModelError(f"more.{WIND}: {UnknownNameError('output', name, tuple(known))}")
    if channel.shape != (3,):
        raise ModelError(f"more.{WIND}: expected an output of the shape (3,), got '{name}' of {channel.shape}")
    in_body = channel.frame == "body"

    def read(state: State, motion: Motion) -> Vector:
        x, y, z = (float(v) for v in state.outputs[name])
        return world_to_ned(rotate(motion.attitude, (x, y, z)) if in_body else (x, y, z), x_bearing)

    return read
