"""What is sought: parameters of the model, delays, gains and offsets of channels, states at segments' beginnings."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import parameters_of_plant
from rtmms.identification.recording import Recording, Series, spread
from rtmms.plant.protocol import Plant, describe_plant

_ELEMENT = re.compile(r"(.+)\[(\d+)\]")


class Kind(Enum):
    """Where an unknown enters."""

    MODEL = "model"
    DELAY = "delay"
    GAIN = "gain"
    BIAS = "bias"
    SCALE = "scale"
    SKEW = "skew"
    START = "start"


OF_CHANNELS = (Kind.DELAY, Kind.GAIN, Kind.BIAS)
"""Of them a person asks by KIND.CHANNEL."""


@dataclass(frozen=True)
class Unknown:
    """One number.

    name       'drag_coefficient', 'body_drag_coefficient[0]', 'delay.imu.gyro', 'bias.depth.value'
    first      where the search begins;  scale  what counts as one of it;  low, high  bounds
    prior      mean and standard deviation of what is known beforehand, None for nothing
    asked      by the user: it is reported; the others are there so that errors that last do not pass for the model's
    channel, component   of a channel's: -1 for all components
    recording  in which it holds, -1 for all: each power-on has offsets of its own
    segment, coordinate  of a state's
    """

    name: str
    kind: Kind
    first: float
    scale: float
    low: float = -math.inf
    high: float = math.inf
    prior: tuple[float, float] | None = None
    asked: bool = True
    unit: str = ""
    channel: str = ""
    component: int = -1
    recording: int = -1
    segment: int = -1
    coordinate: int = -1


def asked_for(
    names: Sequence[str], recordings: Sequence[Recording], plant: Plant, bounds: Mapping[str, tuple[float, float]],
    priors: Mapping[str, tuple[float, float]],
) -> list[Unknown]:  # fmt: skip
    """The unknowns of --fit. UnknownNameError, ModelError naming the one that cannot be fitted."""
    if not names:
        raise ModelError("--fit: expected the names of parameters, got none")
    found: list[Unknown] = []
    for name in names:
        if name in [one.name for one in found]:
            raise ModelError(f"--fit {name}: is named twice")
        kind, _, channel = name.partition(".")
        if kind in [one.value for one in OF_CHANNELS] and channel:
            found += _of_channel(name, Kind(kind), channel, recordings)
        else:
            found.append(_of_model(name, plant))
    known = [one.name for one in found]
    for option, table in (("--bounds", bounds), ("--prior", priors)):
        for name in table:
            if name not in known:
                raise UnknownNameError(f"key of {option}", name, known, "it must be among --fit")
    return [_limited(one, bounds.get(one.name), priors.get(one.name)) for one in found]


def _of_channel(name: str, kind: Kind, channel: str, recordings: Sequence[Recording]) -> list[Unknown]:
    known = {one.channel: one for recording in recordings for one in recording.series}
    if channel not in known:
        raise UnknownNameError(f"channel of --fit {kind.value}", channel, known)
    one = known[channel]
    if kind is Kind.DELAY:
        return [Unknown(name, kind, 0.0, 0.01, -1.0, 1.0, None, True, "s", channel)]
    if kind is Kind.GAIN:
        return [Unknown(name, kind, 1.0, 1.0, channel=channel)]
    size = _spread(one)
    return [
        Unknown(f"bias.{one.component(k)}", kind, 0.0, size, unit=one.unit, channel=channel, component=k)
        for k in range(one.width)
    ]


def _spread(one: Series) -> float:
    found = float(spread(one.values).max(initial=0.0))
    return found if found > 0.0 else 1.0


def value_of(plant: Plant, name: str) -> Any:
    """A parameter as the plant tells it; UnknownNameError."""
    told = describe_plant(plant).parameters() or {}
    table = dict(told) if isinstance(told, Mapping) else {
        one.name: getattr(told, one.name) for one in dataclasses.fields(told)
    }  # fmt: skip
    if name not in table:
        numbers = [key for key, value in table.items() if _is_number(value) or _is_vector(value)]
        raise UnknownNameError("parameter of --fit", name, numbers, "or delay., gain., bias. and a channel")
    return table[name]


def _is_number(value: Any) -> bool:
    return isinstance(value, float)


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(one, float) for one in value)


def split(name: str) -> tuple[str, int]:
    """'body_drag_area_m2[1]' -> ('body_drag_area_m2', 1); -1 for a name without an element."""
    found = _ELEMENT.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, -1)


def _of_model(name: str, plant: Plant) -> Unknown:
    root, element = split(name)
    value = value_of(plant, root)
    if _is_vector(value):
        if not 0 <= element < len(value):
            last = len(value) - 1
            raise ModelError(f"--fit {name}: {root} has {len(value)} numbers: expected one of {root}[0] to [{last}]")
        value = value[element]
    elif element >= 0 or not _is_number(value):
        raise ModelError(
            f"--fit {name}: expected a parameter that is a number which may vary a little, got {value!r}: "
            "sizes, words, and switches stay as they were built"
        )
    declared = parameters_of_plant(plant).get(root)
    first = float(value)
    scale = abs(first) or 1.0
    low, high, unit = None, None, ""
    if declared is not None:
        low, high, unit = declared.low, declared.le, declared.unit
    if low is not None:
        low = float(low) + (1e-6 * scale if declared is not None and declared.strict else 0.0)
    elif declared is None and first > 0.0:
        low = 1e-3 * first  # of a size that nothing is known of: its sign is
    return Unknown(
        name, Kind.MODEL, first, scale, -math.inf if low is None else low, math.inf if high is None else float(high),
        unit=unit,
    )  # fmt: skip


def _limited(one: Unknown, bounds: tuple[float, float] | None, prior: tuple[float, float] | None) -> Unknown:
    """With what the user said of it."""
    if prior is not None:
        if not prior[1] > 0.0:
            raise ModelError(f"--prior {one.name}: expected MEAN:DEVIATION with a deviation > 0, got {prior[1]:g}")
        one = replace(one, prior=prior, first=prior[0], scale=abs(prior[0]) or prior[1])
    if bounds is None:
        return one
    low, high = bounds
    if not low < high:
        raise ModelError(f"--bounds {one.name}: expected LOW:HIGH with LOW < HIGH, got {low:g}:{high:g}")
    if low < one.low or high > one.high:
        raise ModelError(f"--bounds {one.name}: the model takes {one.low:g} to {one.high:g}, got {low:g}:{high:g}")
    if prior is not None and not low <= prior[0] <= high:
        raise ModelError(f"--prior {one.name}: expected a mean within --bounds {low:g}:{high:g}, got {prior[0]:g}")
    first = one.first if low < one.first < high else 0.5 * (low + high)
    scale = abs(first) or 0.25 * (high - low)
    return replace(one, low=low, high=high, first=first, scale=scale)


def lasting(recordings: Sequence[Recording], taken: Iterable[str]) -> list[Unknown]:
    """Errors of sensors that last, of the sizes in their sheets: offsets, and where the sheet has them scale and skew
    of the axes. taken: names of unknowns that the user asked for, which go first."""
    taken, found, seen = set(taken), [], set()
    for number, one in ((k, one) for k, recording in enumerate(recordings) for one in recording.series):
        tool = one.instrument
        if tool is None:
            continue
        gained = f"gain.{one.channel}" in taken
        parts = ((Kind.BIAS, tool.offset), (Kind.SCALE, np.zeros(0) if gained else tool.scale), (Kind.SKEW, tool.skew))
        for kind, sizes in parts:
            for k, size in enumerate(sizes):
                name = f"{kind.value}.{one.component(k)}"
                if size <= 0.0 or name in taken:
                    continue
                own = kind is Kind.BIAS and len(recordings) > 1
                if own:
                    name = f"{name}@{number + 1}"
                if name not in seen:
                    seen.add(name)
                    component = k if kind is not Kind.SCALE or len(sizes) == one.width else -1
                    found.append(Unknown(name, kind, 0.0, float(size), prior=(0.0, float(size)), asked=False,
                                         channel=one.channel, component=component,
                                         recording=number if own else -1))  # fmt: skip
    return found


OFFSETS = ("x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "wx", "wy", "wz")
_OFFSET_SIZES = (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.3, 0.3)
_OFFSET_PRIORS = (0.5, 0.5, 0.5, 0.3, 0.3, 0.5, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0)
"""m, rad, m/s, rad/s, body axes: what counts as one, and how far from the first guess a start is believed to be."""


JOINT_SIZES, JOINT_PRIORS = (0.1, 0.3), (0.5, 1.0)
"""The same of a joint: rad or m, rad/s or m/s."""


def starts(segments: Mapping[int, tuple[bool, Sequence[int], int]]) -> list[Unknown]:
    """State that these segments begin with, as offsets from a first guess.

    segments   of each whether its base is free: pose and twist are unknown then; the joints whose position and velocity
               are unknown; how many joints there are
    """
    found = []
    for segment, (free, joints, count) in segments.items():
        rows = [
            (word, k, _OFFSET_SIZES[k], _OFFSET_PRIORS[k]) for k, word in enumerate(OFFSETS)
        ] if free else []  # fmt: skip
        for k, word in enumerate(("position", "velocity")):
            rows += [
                (f"joint_{word}[{j}]", len(OFFSETS) + k * count + j, JOINT_SIZES[k], JOINT_PRIORS[k]) for j in joints
            ]
        found += [
            Unknown(f"start.{segment}.{word}", Kind.START, 0.0, size, prior=(0.0, prior), asked=False,
                    segment=segment, coordinate=coordinate)
            for word, coordinate, size, prior in rows
        ]  # fmt: skip
    return found
