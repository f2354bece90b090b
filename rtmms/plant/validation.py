"""What is handed to a plant's members, checked once: the command of a step, the seed of a reset."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from rtmms.plant.protocol import Array, Channel, CoupledLimit

_SEEDS = 1 << 63


def read_command(place: str, actuators: Sequence[Channel], given: Any) -> Array:
    """A command as (n_actuators,) float64, finite; of a plant at `place`, in the order of `actuators`.

    ArgumentError, naming the place, what was got and what is expected.
    """
    n = len(actuators)
    try:
        found = np.asarray(given)
        wrong = (found.dtype.kind not in "fiu" and found.size > 0) or np.ma.is_masked(given)
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise ArgumentError(f"{place}: command: expected {_expected(actuators)}, got {_shown(given)}")
    if found.shape != (n,):  # before it is copied: a view may be of any size
        raise ArgumentError(
            f"{place}: command must have shape ({n},), got {found.shape}: expected {_expected(actuators)}"
        )
    command: Array = found.astype(np.float64)
    if not np.isfinite(command).all():
        refuse_not_finite(place, actuators, command)
    return command


def refuse_not_finite(place: str, actuators: Sequence[Channel], command: Any) -> None:
    """ArgumentError that names the actuators whose command is not finite."""
    values = np.asarray(command, dtype=float)
    named = ", ".join(one.name for one, v in zip(actuators, values, strict=True) if not np.isfinite(v))
    raise ArgumentError(
        f"{place}: command: {named} must be finite, expected {_expected(actuators)}, got {_shown(values.tolist())}"
    )


def read_seed(place: str, seed: Any) -> int:
    """A whole number from 0 to 2^63 - 1; ArgumentError for anything else."""
    try:
        number = None if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = None
    if number is None or not 0 <= number < _SEEDS:
        raise ArgumentError(f"{place}: reset: seed: expected a whole number from 0 to 2^63 - 1, got {_shown(seed)}")
    return number


def read_numbers(place: str, name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Finite float64 of a shape; ArgumentError, naming the place, what was got and what is expected."""
    expected = f"{place}: {name}: expected finite numbers of shape {shape}"
    try:
        asked = np.asarray(given)
        wrong = (asked.dtype.kind not in "fiu" and asked.size > 0) or np.ma.is_masked(given)
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise ArgumentError(f"{expected}, got {_shown(given)}")
    if asked.shape != shape:  # before it is copied: a view may be of any size
        raise ArgumentError(f"{expected}, got shape {asked.shape}")
    found: Array = asked.astype(np.float64)
    if not np.isfinite(found).all():
        raise ArgumentError(f"{expected}, got {_shown(found.tolist())}")
    return found


def read_table(place: str, name: str, given: Any, expected: str) -> Array:
    """Numbers of any shape as contiguous float64; ArgumentError for what is none, and for more than memory holds."""
    try:
        asked = np.asarray(given)
        if (asked.dtype.kind not in "fiu" and asked.size > 0) or np.ma.is_masked(given):
            raise TypeError
        return np.ascontiguousarray(asked, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{place}: {name}: expected {expected}, got {given!r:.60}") from None
    except MemoryError:
        raise ArgumentError(f"{place}: {name}: {8 * asked.size:,} bytes are more than there are") from None


def read_out(place: str, name: str, given: Any, shape: tuple[int, ...], *, apart_from: Array) -> Array:
    """An array to write into: float64, writable, of a shape, each number of it for itself; ArgumentError otherwise.

    apart_from   what is still read when it is written
    """
    if not isinstance(given, np.ndarray) or given.shape != shape:
        got = f"shape {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
        raise ArgumentError(f"{place}: {name}: expected {shape}, got {got}")
    if given.dtype != np.float64 or not given.flags.writeable:
        kind = given.dtype if given.flags.writeable else f"{given.dtype}, read-only"
        raise ArgumentError(f"{place}: {name}: expected float64 that can be written, got {kind}")
    reach = 0
    for length, stride in sorted(zip(shape, map(abs, given.strides), strict=True), key=lambda one: one[1]):
        if length > 1 and stride < max(reach, 8):
            raise ArgumentError(f"{place}: {name}: expected numbers that do not overlap, got strides {given.strides}")
        reach = stride * length if length > 1 else reach
    if np.may_share_memory(given, apart_from):
        raise ArgumentError(f"{place}: {name}: expected memory of its own, got that of the commands")
    return given


def read_pose(place: str, given: Mapping[str, Any], pose: Array, twist: Array) -> None:
    """Write what is given of position, quaternion, velocity and angular_velocity into pose (7,) and twist (6,)."""
    parts = {
        "position": pose[:3], "quaternion": pose[3:], "velocity": twist[:3], "angular_velocity": twist[3:],
    }  # fmt: skip
    found = {name: read_numbers(place, name, given[name], part.shape) for name, part in parts.items() if name in given}
    if "quaternion" in found:
        size = float(np.linalg.norm(found["quaternion"]))
        if size == 0.0:
            raise ArgumentError(f"{place}: quaternion: expected (w, x, y, z) other than 0")
        found["quaternion"] = found["quaternion"] / size
    for name, value in found.items():
        parts[name][:] = value


def limits_of(actuators: Sequence[Channel]) -> Array:
    """(n, 2) lower and upper limits, -inf and inf where there are none."""
    rows = [
        (-np.inf if one.lower is None else one.lower, np.inf if one.upper is None else one.upper) for one in actuators
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def obeyed(commands: Any, actuators: Sequence[Channel], coupled: Sequence[CoupledLimit] = ()) -> Array:
    """Commands (..., n_actuators) as a plant obeys them: each within its limits, and the difference of two that limit
    each other saturated smoothly, their mean kept (rtmms.robots.manta.rods.limit_commands)."""
    limits = limits_of(actuators)
    found: Array = np.clip(commands, limits[:, 0], limits[:, 1])
    for one in coupled:
        first, second, room = found[..., one.first], found[..., one.second], one.most - one.obeyed
        apart, middle = first - second, 0.5 * (first + second)
        half = 0.5 * np.sign(apart) * (one.obeyed + room * np.tanh((np.abs(apart) - one.obeyed) / room))
        beyond = np.abs(apart) > one.obeyed
        found[..., one.first] = np.where(beyond, middle + half, first)
        found[..., one.second] = np.where(beyond, middle - half, second)
    return found


def _expected(actuators: Sequence[Channel]) -> str:
    names = [one.name for one in actuators]
    listed = ", ".join(names if len(names) <= 6 else [*names[:3], "...", names[-1]])
    return f"{len(names)} finite numbers ({listed})" if names else "no numbers"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


MAX_SUBSTEPS = 10_000


def refuse_substeps(place: str, given: Any) -> None:
    """ModelError where it is no whole number from 1 to MAX_SUBSTEPS: nothing can end a plant within a step."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or not 1 <= given <= MAX_SUBSTEPS:
        raise ModelError(f"{place}: substeps must be a whole number from 1 to {MAX_SUBSTEPS}, got {given!r:.40}")
