"""Entries of the welcome: channels, parameters, environment and drawing of the plant."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Channel, Plant
from rtmms.wire.protocol.limits import MAX_LIST_LENGTH, MAX_PATTERN_LENGTH, MAX_SHAPE_LENGTH
from rtmms.wire.protocol.messages import is_finite


def channel_map(channel: Channel) -> dict[str, Any]:
    """Return a channel as an entry of the welcome.

    Parameters
    ----------
    channel : Channel
        An actuator or an output.

    Returns
    -------
    dict[str, Any]
        The channel's fields by name.
    """
    return {
        "name": channel.name, "unit": channel.unit, "shape": list(channel.shape), "frame": channel.frame,
        "lower": channel.lower, "upper": channel.upper, "neutral": channel.neutral,
    }  # fmt: skip


def read_channel(entry: Mapping[str, Any]) -> Channel:
    """Return the channel of an entry of the welcome.

    Parameters
    ----------
    entry : Mapping[str, Any]
        Entry that `channel_map` wrote.

    Returns
    -------
    Channel
        The channel, with defaults for missing fields.
    """
    return Channel(
        name=str(entry["name"]), unit=str(entry.get("unit") or ""),
        shape=tuple(int(size) for size in entry.get("shape") or ()), frame=str(entry.get("frame") or ""),
        lower=entry.get("lower"), upper=entry.get("upper"), neutral=float(entry.get("neutral") or 0.0),
    )  # fmt: skip


def plain_parameters(plant: object) -> dict[str, Any]:
    """Return the plant's parameters in the form of the welcome.

    Parameters
    ----------
    plant : object
        A plant whose `parameters` are a mapping or a dataclass.

    Returns
    -------
    dict[str, Any]
        Finite numbers, flags, short texts and short lists of numbers; other values are left out.
    """
    source = describe_plant(plant).parameters()
    if source is None:
        return {}
    if not isinstance(source, Mapping):
        fields = getattr(source, "__dataclass_fields__", None)
        if fields is None:
            return {}
        source = {name: getattr(source, name) for name in fields}
    plain: dict[str, Any] = {}
    for name, value in list(source.items())[:512]:
        if isinstance(value, (bool, int)) or (isinstance(value, str) and len(value) <= MAX_PATTERN_LENGTH):
            plain[str(name)] = value
        elif isinstance(value, float) and math.isfinite(value):
            plain[str(name)] = float(value)
        elif isinstance(value, (tuple, list)) and 0 < len(value) <= MAX_LIST_LENGTH and all(map(is_finite, value)):
            plain[str(name)] = [float(number) for number in value]
    return plain


def environment_fields(plant: Plant) -> dict[str, Any]:
    """Return the environment of a plant in the form of the welcome.

    Parameters
    ----------
    plant : Plant
        The plant.

    Returns
    -------
    dict[str, Any]
        The entries of `PlantInfo.environment` that are finite.
    """
    around = describe_plant(plant).environment()
    fields = {"gravity_m_s2": list(around.gravity), "water_kg_m3": around.density, "surface_m": around.surface}
    return {
        name: value for name, value in fields.items()
        if all(map(is_finite, value if isinstance(value, list) else [value]))
    }  # fmt: skip


def plain_shape(plant: object) -> str:
    """Return the plant's drawing as JSON.

    Parameters
    ----------
    plant : object
        A plant whose description may have a shape, see rtmms.plant.PlantDescription.

    Returns
    -------
    str
        The JSON text. It is empty if there is no shape, if JSON cannot express it, or if it is too long
        (MAX_SHAPE_LENGTH).
    """
    source = describe_plant(plant).shape()
    if not isinstance(source, Mapping) or not source:
        return ""
    try:
        text = json.dumps(source, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return ""
    return text if len(text) <= MAX_SHAPE_LENGTH else ""


def read_shape(text: object) -> dict[str, Any]:
    """Return the drawing of a welcome.

    Parameters
    ----------
    text : object
        Text that `plain_shape` wrote.

    Returns
    -------
    dict[str, Any]
        The drawing; {} for any other value.
    """
    if not isinstance(text, str) or not 0 < len(text) <= MAX_SHAPE_LENGTH:
        return {}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
