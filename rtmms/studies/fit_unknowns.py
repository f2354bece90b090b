"""Unknowns of a fit: parameters of the model, delays, gains and offsets of channels, states at segments' starts."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import parameter_values, parameters_of_plant
from rtmms.plant.protocol import Plant
from rtmms.studies.recordings import Recording, Series, spread

_ELEMENT = re.compile(r"(.+)\[(\d+)\]")


class Kind(Enum):
    """Place at which an unknown enters."""

    MODEL = "model"
    DELAY = "delay"
    GAIN = "gain"
    BIAS = "bias"
    SCALE = "scale"
    SKEW = "skew"
    START = "start"
    CLOCK = "clock"


OF_CHANNELS = (Kind.DELAY, Kind.GAIN, Kind.BIAS)
"""Kinds that a person requests by KIND.CHANNEL."""
ALL_CHANNELS = "*"
"""Channel of an unknown that all channels of a recording have in common."""
MAX_DELAY_S = 1.0
"""Bound of a delay in both directions, s."""


@dataclass(frozen=True)
class Unknown:
    """One unknown number.

    Attributes
    ----------
    name : str
        As 'drag_coefficient', 'body_drag_coefficient[0]', 'delay.imu.gyro', 'bias.depth.value'.
    kind : Kind
        Place at which it enters.
    first : float
        Start of the search.
    scale : float
        Size that counts as one.
    low, high : float
        Bounds.
    prior : tuple[float, float] | None, optional
        Mean and standard deviation of prior knowledge, None without it.
    asked : bool, default True
        The user requested it, and the report has it. The others separate persistent errors from the model's.
    unit : str, default ''
        Unit of the value.
    channel, component : str, int
        Channel of a channel's unknown, and its component; -1 for all components.
    recording : int, default -1
        Recording in which it holds, -1 for all: each power-on has offsets of its own.
    segment, coordinate : int, default -1
        Segment and coordinate of a first state.
    why : str, default '--fit'
        Why it is free.
    end : str, default ''
        Why the model cannot be built beyond a bound that the fit has found; '' for other bounds.
    narrowed : bool, default False
        The user gave the bounds; the model may accept values beyond them.
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
    why: str = "--fit"
    end: str = ""
    narrowed: bool = False

    @property
    def key(self) -> str:
        """Name without the number of the recording: 'drag_coefficient' of 'drag_coefficient@2'."""
        return self.name.rpartition("@")[0] if self.recording >= 0 and "@" in self.name else self.name


def asked_for(
    names: Sequence[str], recordings: Sequence[Recording], plant: Plant, bounds: Mapping[str, tuple[float, float]],
    priors: Mapping[str, tuple[float, float]], per_recording: Sequence[str] = (), *,
    delay_per_recording: bool = False,
) -> list[Unknown]:  # fmt: skip
    """Return the unknowns of --fit.

    Parameters
    ----------
    names : Sequence[str]
        Parameters of the robot, or delay, delay.CHANNEL, gain.CHANNEL, bias.CHANNEL.
    recordings : Sequence[Recording]
        Recordings of the robot.
    plant : Plant
        Its plant.
    bounds, priors : Mapping[str, tuple[float, float]]
        {name: (low, high)} and {name: (mean, standard deviation)}.
    per_recording : Sequence[str], default ()
        Names with a separate value for each recording; they need not be among `names`.
    delay_per_recording : bool, default False
        Each recording has a delay of all its channels.

    Returns
    -------
    list[Unknown]
        In the order of the names.

    Raises
    ------
    UnknownNameError, ModelError
        A name cannot be fitted; the message has it.
    """
    names = [*names, *(name for name in dict.fromkeys(per_recording) if name not in names)]
    repeated_names = {*per_recording}
    if delay_per_recording:
        names += [] if "delay" in names else ["delay"]
        repeated_names.add("delay")
    if not names:
        raise ModelError("--fit: expected the names of parameters, got none")
    result: list[Unknown] = []
    for name in names:
        if name in [item.key for item in result]:
            raise ModelError(f"--fit {name}: is named twice")
        built = _named(name, recordings, plant)
        if name in repeated_names:
            count = len(recordings)
            built = [
                replace(
                    item, name=f"{item.name}@{k + 1}" if count > 1 else item.name, recording=k, why="--per-recording"
                )
                for item in built
                for k in range(count)
            ]
        result += built
    known = list(dict.fromkeys(word for item in result for word in (item.name, item.key)))
    for option, table in (("--bounds", bounds), ("--prior", priors)):
        for name in table:
            if name not in known:
                raise UnknownNameError(f"key of {option}", name, known, "it must be among --fit")
    return [
        _limited(item, bounds.get(item.name, bounds.get(item.key)), priors.get(item.name, priors.get(item.key)))
        for item in result
    ]


def _named(name: str, recordings: Sequence[Recording], plant: Plant) -> list[Unknown]:
    kind, _, channel = name.partition(".")
    if name == Kind.DELAY.value:
        size, maximum = 0.01, MAX_DELAY_S
        return [Unknown(name, Kind.DELAY, 0.0, size, -maximum, maximum, None, True, "s", ALL_CHANNELS)]
    if kind in [of_channel.value for of_channel in OF_CHANNELS] and channel:
        return _of_channel(name, Kind(kind), channel, recordings)
    return [_of_model(name, plant)]


def _of_channel(name: str, kind: Kind, channel: str, recordings: Sequence[Recording]) -> list[Unknown]:
    known = {entry.channel: entry for recording in recordings for entry in recording.series}
    if channel not in known:
        raise UnknownNameError(f"channel of --fit {kind.value}", channel, known)
    item = known[channel]
    if kind is Kind.DELAY:
        return [Unknown(name, kind, 0.0, 0.01, -MAX_DELAY_S, MAX_DELAY_S, None, True, "s", channel)]
    if kind is Kind.GAIN:
        return [Unknown(name, kind, 1.0, 1.0, channel=channel)]
    size = _spread(item)
    return [
        Unknown(f"bias.{item.component(k)}", kind, 0.0, size, unit=item.unit, channel=channel, component=k)
        for k in range(item.width)
    ]


def _spread(series: Series) -> float:
    result = float(spread(series.values).max(initial=0.0))
    return result if result > 0.0 else 1.0


def value_of(plant: Plant, name: str) -> Any:
    """Return the present value of a parameter of a plant, or of a keyword of the function that made it.

    Parameters
    ----------
    plant : Plant
        The plant.
    name : str
        Name of the parameter.

    Returns
    -------
    Any
        The value.

    Raises
    ------
    UnknownNameError
        There is no such parameter; the message has the numbers of the plant.
    """
    table = parameter_values(plant)
    if name not in table:
        numbers = [key for key, value in table.items() if _varies(plant, key, value)]
        more = "or delay., gain., bias. and a channel"
        if not table:
            more = "the robot has no parameters; write its numbers as keywords of the function that makes it"
        raise UnknownNameError("parameter of --fit", name, numbers, more)
    return table[name]


def _varies(plant: Plant, name: str, value: Any) -> bool:
    """Return whether a parameter is a number that may vary a little, or a list of such numbers."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(isinstance(item, float) for item in value)
    if isinstance(value, float):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and name in _real_keywords(plant)


def _real_keywords(plant: Plant) -> set[str]:
    """Return the keywords of a function that are real numbers by annotation or default; a user may set them to 2."""
    result = set()
    for source in (getattr(plant, "keywords", None), getattr(plant, "parameters", None)):
        for field in dataclasses.fields(source) if dataclasses.is_dataclass(source) else ():
            factory = field.default_factory
            default = field.default if factory is dataclasses.MISSING else factory()
            if field.type is float or isinstance(default, float):
                result.add(field.name)
    return result


def split(name: str) -> tuple[str, int]:
    """Split the name of an element into the parameter and the index.

    Parameters
    ----------
    name : str
        As 'body_drag_area_m2[1]'.

    Returns
    -------
    tuple[str, int]
        Parameter and index; -1 for a name without an element.

    Examples
    --------
    >>> from rtmms.studies.fit_unknowns import split
    >>> split("body_drag_area_m2[1]")
    ('body_drag_area_m2', 1)
    """
    match = _ELEMENT.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, -1)


def _of_model(name: str, plant: Plant) -> Unknown:
    root, element = split(name)
    value = value_of(plant, root)
    may_vary = _varies(plant, root, value)
    if may_vary and isinstance(value, list | tuple):
        if not 0 <= element < len(value):
            last = len(value) - 1
            raise ModelError(f"--fit {name}: {root} has {len(value)} numbers: expected one of {root}[0] to [{last}]")
        value = value[element]
    elif element >= 0 or not may_vary:
        whole = isinstance(value, int) and not isinstance(value, bool)
        more = f"; where it is a real number, write its default as {value}.0" if whole else ""
        raise ModelError(
            f"--fit {name}: expected a parameter that is a real number, got {value!r}; sizes, words and "
            f"switches cannot be fitted{more}"
        )
    declared = parameters_of_plant(plant).get(root)
    first = float(value)
    scale = abs(first) or 1.0
    low, high, unit = -math.inf, math.inf, ""  # of a parameter that is not declared nothing is known
    if declared is not None:
        unit = declared.unit
        high = math.inf if declared.le is None else float(declared.le)
        if declared.low is not None:
            low = float(declared.low) + (1e-6 * scale if declared.strict else 0.0)
    return Unknown(name, Kind.MODEL, first, scale, low, high, unit=unit)


def _limited(unknown: Unknown, bounds: tuple[float, float] | None, prior: tuple[float, float] | None) -> Unknown:
    """Return the unknown with the user's bounds and prior."""
    if prior is not None:
        if not prior[1] > 0.0:
            raise ModelError(f"--prior {unknown.name}: expected MEAN:DEVIATION with a deviation > 0, got {prior[1]:g}")
        unknown = replace(unknown, prior=prior, first=prior[0], scale=abs(prior[0]) or prior[1])
    if bounds is None:
        return unknown
    low, high = bounds
    if not low < high:
        raise ModelError(f"--bounds {unknown.name}: expected LOW:HIGH with LOW < HIGH, got {low:g}:{high:g}")
    if low < unknown.low or high > unknown.high:
        raise ModelError(
            f"--bounds {unknown.name}: expected bounds within {unknown.low:g} to {unknown.high:g}, which the model "
            f"allows, got {low:g}:{high:g}"
        )
    if prior is not None and not low <= prior[0] <= high:
        raise ModelError(f"--prior {unknown.name}: expected a mean within --bounds {low:g}:{high:g}, got {prior[0]:g}")
    first = unknown.first if low < unknown.first < high else 0.5 * (low + high)
    scale = abs(first) or 0.25 * (high - low)
    return replace(unknown, low=low, high=high, first=first, scale=scale, narrowed=True)


def sensor_errors(recordings: Sequence[Recording], used: Iterable[str]) -> list[Unknown]:
    """Return the persistent errors of the sensors, of the sizes in their data sheets.

    They are offsets, and where the sheet has them scale and skew of the axes.

    Parameters
    ----------
    recordings : Sequence[Recording]
        Their series have instruments.
    used : Iterable[str]
        Names of the user's unknowns, which have precedence.

    Returns
    -------
    list[Unknown]
        Unknowns with priors.
    """
    used, result, visited = set(used), [], set()
    for number, item in ((k, entry) for k, recording in enumerate(recordings) for entry in recording.series):
        tool = item.instrument
        if tool is None:
            continue
        gained = f"gain.{item.channel}" in used
        parts = ((Kind.BIAS, tool.offset), (Kind.SCALE, np.zeros(0) if gained else tool.scale), (Kind.SKEW, tool.skew))
        for kind, sizes in parts:
            for k, size in enumerate(sizes):
                name = f"{kind.value}.{item.component(k)}"
                if size <= 0.0 or name in used:
                    continue
                per_recording = kind is Kind.BIAS and len(recordings) > 1
                if per_recording:
                    name = f"{name}@{number + 1}"
                if name not in visited:
                    visited.add(name)
                    component = k if kind is not Kind.SCALE or len(sizes) == item.width else -1
                    result.append(Unknown(name, kind, 0.0, float(size), prior=(0.0, float(size)), asked=False,
                                         why="an error that the sensor's sheet gives", channel=item.channel,
                                         component=component, recording=number if per_recording else -1))  # fmt: skip
    return result


OFFSETS = ("x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "wx", "wy", "wz")
_OFFSET_SIZES = (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.3, 0.3)
_OFFSET_PRIORS = (0.5, 0.5, 0.5, 0.3, 0.3, 0.5, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0)
"""Standard deviations of a start about its first guess: m, rad, m/s, rad/s, body axes."""


JOINT_SIZES = (0.1, 0.3)
"""Scales of a joint's start: rad or m, and rad/s or m/s."""
JOINT_PRIORS = (0.5, 1.0)
"""Priors of a joint's start: rad or m, and rad/s or m/s."""


def start_names(joints: Sequence[str]) -> list[tuple[str, tuple[str, ...], float, float]]:
    """Return the coordinates of a first state in order: the name, further names, the scale, and the prior.

    Parameters
    ----------
    joints : Sequence[str]
        Names of the joints, for 'JOINT' and 'JOINT.rate' beside 'joint_position[k]' and 'joint_velocity[k]'; '' for
        joints without a name.

    Returns
    -------
    list[tuple[str, tuple[str, ...], float, float]]
        12 of pose and twist, then the joints'.
    """
    rows: list[tuple[str, tuple[str, ...], float, float]] = [
        (word, (), _OFFSET_SIZES[k], _OFFSET_PRIORS[k]) for k, word in enumerate(OFFSETS)
    ]
    for k, (word, end) in enumerate((("position", ""), ("velocity", ".rate"))):
        rows += [
            (f"joint_{word}[{j}]", (f"{joint}{end}",) if joint else (), JOINT_SIZES[k], JOINT_PRIORS[k])
            for j, joint in enumerate(joints)
        ]
    return rows


@dataclass(frozen=True)
class FirstState:
    """Coordinates of a segment's first state that are unknown.

    Attributes
    ----------
    names : list[tuple[str, tuple[str, ...], float, float]]
        See `start_names`.
    movable : tuple[bool, ...]
        For each coordinate whether the mechanism allows a change.
    known : bool
        The segment begins at a reset: its state is known.
    """

    names: list[tuple[str, tuple[str, ...], float, float]]
    movable: tuple[bool, ...]
    known: bool


def starts(
    segments: Mapping[int, FirstState], free: Sequence[str] = (), pinned: Sequence[str] = ()
) -> list[Unknown]:  # fmt: skip
    """Return the unknown coordinates of the first states, as offsets from a first guess.

    Parameters
    ----------
    segments : Mapping[int, FirstState]
        First state of each segment, by its number.
    free, pinned : Sequence[str], default ()
        Names of --free and --pin, with or without 'start.': a coordinate, a joint, or a pattern such as
        'joint_velocity*'.

    Returns
    -------
    list[Unknown]
        One unknown for each free coordinate.

    Raises
    ------
    UnknownNameError
        No segment has that name.
    ModelError
        --free names a coordinate that the mechanism holds, or both options name it.
    """
    _refuse_unknown_starts(segments, free, pinned)
    result = []
    for segment, state in segments.items():
        for coordinate, (word, others, size, prior) in enumerate(state.names):
            freed, held = (_matches(patterns, (word, *others)) for patterns in (free, pinned))
            if freed and held:
                raise ModelError(f"--free and --pin: both name start.{word}; remove one of them")
            if freed and not state.movable[coordinate]:
                raise ModelError(
                    f"--free start.{freed}: the mechanism or a command determines {word}, so its start cannot "
                    "be fitted; remove the option"
                )
            if held or not state.movable[coordinate] or (state.known and not freed):
                continue
            why = "--free" if freed else "the recording does not begin at a reset"
            result.append(Unknown(f"start.{segment}.{word}", Kind.START, 0.0, size, prior=(0.0, prior), asked=False,
                                 segment=segment, coordinate=coordinate, why=why))  # fmt: skip
    return result


def _matches(patterns: Sequence[str], names: Sequence[str]) -> str:
    """Return the first pattern that is one of the names, or matches one; ''."""
    for pattern in patterns:
        plain = pattern.removeprefix("start.")
        if plain in names or ("*" in plain and any(fnmatchcase(name, plain) for name in names)):
            return plain
    return ""


def _refuse_unknown_starts(segments: Mapping[int, FirstState], free: Sequence[str], pinned: Sequence[str]) -> None:
    known = list(dict.fromkeys(
        f"start.{name}" for state in segments.values() for word, others, _, _ in state.names for name in (word, *others)
    ))  # fmt: skip
    plain = [name.removeprefix("start.") for name in known]
    for option, patterns in (("--free", free), ("--pin", pinned)):
        for pattern in patterns:
            if not _matches([pattern], plain):
                raise UnknownNameError(f"coordinate of {option}", pattern, known)
