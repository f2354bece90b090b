"""Check the arguments of a plant's members once: the command of a step, the seed of a reset, arrays and poses."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.errors import ArgumentError, ModelError, RtmmsError, RtmmsWarning

if TYPE_CHECKING:
    from rtmms.plant.protocol import Array, Channel, CoupledLimit, Plant

_SEEDS = 1 << 63


def read_command(place: str, actuators: Sequence[Channel], values: Any) -> Array:
    """Return a command as finite float64.

    Parameters
    ----------
    place : str
        Name of the plant, for the message.
    actuators : Sequence[Channel]
        Actuators, in the order of the command.
    values : array_like
        Command to check.

    Returns
    -------
    (n_actuators,) array
        Copy of the command.

    Raises
    ------
    ArgumentError
        The type, the shape or a value is wrong; the message has the place, the value and what is expected.
    """
    n = len(actuators)
    try:
        result = np.asarray(values)
        wrong = (result.dtype.kind not in "fiu" and result.size > 0) or np.ma.is_masked(values)
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise ArgumentError(f"{place}: command: expected {_expected(actuators)}, got {_shown(values)}")
    if result.shape != (n,):  # before it is copied: a view may be of any size
        raise ArgumentError(
            f"{place}: command must have shape ({n},), got {result.shape}: expected {_expected(actuators)}"
        )
    command: Array = result.astype(np.float64)
    if not np.isfinite(command).all():
        refuse_not_finite(place, actuators, command)
    return command


def refuse_not_finite(place: str, actuators: Sequence[Channel], command: Any) -> None:
    """Raise an error that names the actuators whose command is not finite.

    Parameters
    ----------
    place : str
        Name of the plant, for the message.
    actuators : Sequence[Channel]
        Actuators, in the order of the command.
    command : (n_actuators,) array_like
        Command with a value that is not finite.

    Raises
    ------
    ArgumentError
        Always.
    """
    values = np.asarray(command, dtype=float)
    named = ", ".join(actuator.name for actuator, v in zip(actuators, values, strict=True) if not np.isfinite(v))
    raise ArgumentError(
        f"{place}: command: {named} must be finite, expected {_expected(actuators)}, got {_shown(values.tolist())}"
    )


def read_seed(place: str, seed: Any) -> int:
    """Return a seed as a whole number.

    Parameters
    ----------
    place : str
        Name of the plant, for the message.
    seed : object
        Value to check.

    Returns
    -------
    int
        From 0 to 2^63 - 1.

    Raises
    ------
    ArgumentError
        The value is no such number.
    """
    try:
        number = None if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = None
    if number is None or not 0 <= number < _SEEDS:
        raise ArgumentError(f"{place}: reset: seed: expected a whole number from 0 to 2^63 - 1, got {_shown(seed)}")
    return number


def read_numbers(place: str, name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Return finite float64 of a given shape.

    Parameters
    ----------
    place, name : str
        Place and name of the argument, for the message.
    values : array_like
        Value to check.
    shape : tuple[int, ...]
        Required shape.

    Returns
    -------
    array
        Copy of the numbers.

    Raises
    ------
    ArgumentError
        The type, the shape or a value is wrong; the message has the place, the value and what is expected.
    """
    expected = f"{place}: {name}: expected finite numbers of shape {shape}"
    try:
        asked = np.asarray(values)
        wrong = (asked.dtype.kind not in "fiu" and asked.size > 0) or np.ma.is_masked(values)
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise ArgumentError(f"{expected}, got {_shown(values)}")
    if asked.shape != shape:  # before it is copied: a view may be of any size
        raise ArgumentError(f"{expected}, got shape {asked.shape}")
    result: Array = asked.astype(np.float64)
    if not np.isfinite(result).all():
        raise ArgumentError(f"{expected}, got {_shown(result.tolist())}")
    return result


def read_table(place: str, name: str, values: Any, expected: str) -> Array:
    """Return numbers of any shape as contiguous float64.

    Parameters
    ----------
    place, name : str
        Place and name of the argument, for the message.
    values : array_like
        Value to check.
    expected : str
        Description of the expected value, for the message.

    Returns
    -------
    array
        The numbers.

    Raises
    ------
    ArgumentError
        The value has no numbers, or more than fit into memory.
    """
    try:
        asked = np.asarray(values)
        if (asked.dtype.kind not in "fiu" and asked.size > 0) or np.ma.is_masked(values):
            raise TypeError
        return np.ascontiguousarray(asked, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{place}: {name}: expected {expected}, got {values!r:.60}") from None
    except MemoryError:
        raise ArgumentError(
            f"{place}: {name}: expected an array that fits into memory, got one of {8 * asked.size:,} bytes"
        ) from None


def read_out(place: str, name: str, values: Any, shape: tuple[int, ...], *, apart_from: Array) -> Array:
    """Return an array to write into, after a check of its type, shape and memory.

    Parameters
    ----------
    place, name : str
        Place and name of the argument, for the message.
    values : object
        Array to check: float64, writable, whose elements do not overlap.
    shape : tuple[int, ...]
        Required shape.
    apart_from : array
        Memory that is read while the result is written, and must not be shared.

    Returns
    -------
    array
        The same array.

    Raises
    ------
    ArgumentError
        The array does not fit.
    """
    if not isinstance(values, np.ndarray) or values.shape != shape:
        got = f"shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise ArgumentError(f"{place}: {name}: expected {shape}, got {got}")
    if values.dtype != np.float64 or not values.flags.writeable:
        kind = values.dtype if values.flags.writeable else f"{values.dtype}, read-only"
        raise ArgumentError(f"{place}: {name}: expected a writeable array of float64, got {kind}")
    reach = 0
    for length, stride in sorted(zip(shape, map(abs, values.strides), strict=True), key=lambda item: item[1]):
        if length > 1 and stride < max(reach, 8):
            raise ArgumentError(f"{place}: {name}: expected numbers that do not overlap, got strides {values.strides}")
        reach = stride * length if length > 1 else reach
    if np.may_share_memory(values, apart_from):
        raise ArgumentError(
            f"{place}: {name}: expected an array with its own memory, got one that shares memory with the commands"
        )
    return values


def read_pose(place: str, values: Mapping[str, Any], pose: Array, twist: Array) -> None:
    """Write the given position, quaternion, velocity and angular velocity into a pose and a twist.

    Parameters
    ----------
    place : str
        Name of the plant, for the message.
    values : Mapping[str, Any]
        Any of position, quaternion, velocity and angular_velocity.
    pose : (7,) array
        Position, m, and quaternion to write; the quaternion is normalised.
    twist : (6,) array
        Velocity, m/s, and angular velocity, rad/s, to write.

    Raises
    ------
    ArgumentError
        A value has the wrong shape, is not finite, or the quaternion is 0; nothing is written.
    """
    parts = {
        "position": pose[:3], "quaternion": pose[3:], "velocity": twist[:3], "angular_velocity": twist[3:],
    }  # fmt: skip
    result = {
        name: read_numbers(place, name, values[name], part.shape) for name, part in parts.items() if name in values
    }
    if "quaternion" in result:
        size = float(np.linalg.norm(result["quaternion"]))
        if size == 0.0:
            raise ArgumentError(f"{place}: quaternion: expected (w, x, y, z) other than 0")
        result["quaternion"] = result["quaternion"] / size
    for name, value in result.items():
        parts[name][:] = value


def checked_outputs(plant: Plant) -> dict[str, Any]:
    """Return one observation of a plant, after a check of its channels, its outputs and its snapshot.

    Parameters
    ----------
    plant : Plant
        Any plant.

    Returns
    -------
    dict[str, Any]
        Outputs by name.

    Raises
    ------
    ModelError
        Two channels have one name, an output is missing or has another shape than its channel, or the snapshot is not
        bytes.
    """
    for kind, channels in (("actuator", plant.actuators), ("output", plant.outputs)):
        names = [channel.name for channel in channels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ModelError(f"{kind} '{twice[0]}': expected unique names, got it {names.count(twice[0])} times")
    for actuator in plant.actuators:
        if (actuator.lower is not None and actuator.neutral < actuator.lower) or (
            actuator.upper is not None and actuator.neutral > actuator.upper
        ):
            warnings.warn(
                f"actuator '{actuator.name}': neutral: expected a value within its limits, {actuator.lower} "
                f"to {actuator.upper}, got "
                f"{actuator.neutral}: without a command it would be beyond them",
                RtmmsWarning,
                stacklevel=2,
            )
    outputs = plant.observe()
    refuse_outputs(plant, outputs)
    try:
        blob = plant.snapshot()
    except ModelError:  # a plant without snapshots, such as some FMUs
        blob = b""
    if not isinstance(blob, bytes):
        raise ModelError(f"snapshot(): expected bytes, got {type(blob).__name__}")
    return dict(outputs)


def refuse_outputs(plant: Plant, outputs: Mapping[str, Any], when: str = "") -> None:
    """Raise an error where an observation differs from the plant's channels.

    Parameters
    ----------
    plant : Plant
        Any plant.
    outputs : Mapping[str, Any]
        What its `observe` returned.
    when : str, default ''
        Time of the observation, for the message.

    Raises
    ------
    ModelError, RtmmsError
        An output is missing, or has another shape than its channel; RtmmsError during a run.
    """
    error: type[RtmmsError] = RtmmsError if when else ModelError
    for channel in plant.outputs:
        if channel.name not in outputs:
            raise error(f"{when}output '{channel.name}': the plant declares it, but observe() does not return it")
        shape = np.shape(outputs[channel.name])
        if shape != tuple(channel.shape):
            raise error(
                f"{when}output '{channel.name}': expected the declared shape {tuple(channel.shape)} from observe(), "
                f"got {shape}"
            )


def limits_of(actuators: Sequence[Channel]) -> Array:
    """Return the limits of actuators.

    Parameters
    ----------
    actuators : Sequence[Channel]
        Actuators.

    Returns
    -------
    (n, 2) array
        Lower and upper limit of each; -inf and inf where there is none.
    """
    rows = [
        (-np.inf if actuator.lower is None else actuator.lower, np.inf if actuator.upper is None else actuator.upper)
        for actuator in actuators
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def apply_limits(commands: Any, actuators: Sequence[Channel], coupled: Sequence[CoupledLimit] = ()) -> Array:
    """Return commands as a plant applies them: clamped, and with saturated differences.

    The difference of two commands that limit each other is saturated smoothly, and their mean persists
    (rtmms.robots.manta.rods.limit_commands).

    Parameters
    ----------
    commands : (..., n_actuators) array_like
        Commands.
    actuators : Sequence[Channel]
        Actuators with their limits.
    coupled : Sequence[CoupledLimit], default ()
        Limits of differences.

    Returns
    -------
    (..., n_actuators) array
        Commands that take effect.
    """
    limits = limits_of(actuators)
    result: Array = np.clip(commands, limits[:, 0], limits[:, 1])
    for item in coupled:
        first, second, room = result[..., item.first], result[..., item.second], item.max_difference - item.obeyed
        apart, middle = first - second, 0.5 * (first + second)
        half = 0.5 * np.sign(apart) * (item.obeyed + room * np.tanh((np.abs(apart) - item.obeyed) / room))
        beyond = np.abs(apart) > item.obeyed
        result[..., item.first] = np.where(beyond, middle + half, first)
        result[..., item.second] = np.where(beyond, middle - half, second)
    return result


def _expected(actuators: Sequence[Channel]) -> str:
    """Return a description of a plant's command, for messages."""
    names = [actuator.name for actuator in actuators]
    listed = ", ".join(names if len(names) <= 6 else [*names[:3], "...", names[-1]])
    return f"{len(names)} finite numbers ({listed})" if names else "no numbers"


def _shown(value: Any) -> str:
    """Return a value as text of at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


MAX_SUBSTEPS = 10_000
"""Largest number of substeps: nothing can interrupt a plant within a step."""


def refuse_substeps(place: str, substeps: Any) -> None:
    """Raise an error where a number of substeps is not a whole number from 1 to MAX_SUBSTEPS.

    Parameters
    ----------
    place : str
        Name of the plant, for the message.
    substeps : object
        Value to check.

    Raises
    ------
    ModelError
        The value is out of range or no whole number.
    """
    if isinstance(substeps, bool) or not isinstance(substeps, (int, np.integer)) or not 1 <= substeps <= MAX_SUBSTEPS:
        raise ModelError(f"{place}: substeps must be a whole number from 1 to {MAX_SUBSTEPS}, got {substeps!r:.40}")
