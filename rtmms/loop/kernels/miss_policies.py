"""The miss policies, the bookkeeping of claims around them, and the records that both work on.

Plain arithmetic, none of it fused: the bits are those of the same in numpy. Nothing here allocates or raises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import from_dtype
from numba.extending import intrinsic

from rtmms.base.contract import MissPolicy
from rtmms.base.jit import kernel
from rtmms.base.memory import pointer_to

# Memory that compiled code and Python share: each record is declared once, as a numpy structured dtype.
#
# From it follow the accessor in kernels (`record_at`: an address as a record, whose fields are attributes), arrays of
# records (`records_at`, for carray), and the view from Python (`view`: the same attributes, read and written in place).
# A name that ends in _ns is an instant or a length in ns; one that ends in _at is an address.


WORD, NUMBER, FLAG, MARK = np.int64, np.float64, np.bool_, np.uint8


def record(*fields: tuple[str, Any]) -> np.dtype[Any]:
    """A record of these fields (name, type), laid out as C would; its elements have attributes in plain Python, too."""
    return np.dtype((np.record, np.dtype(list(fields), align=True)))


def words(*names: str) -> np.dtype[Any]:
    """A record of int64 alone."""
    return record(*((name, WORD) for name in names))


def record_at(dtype: np.dtype[Any]) -> Any:
    """An intrinsic that takes an address (int64) for such a record."""
    kind = from_dtype(dtype)

    @intrinsic
    def at(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(address), generate

    return at


def records_at(dtype: np.dtype[Any]) -> Any:
    """An intrinsic that takes an address for a pointer to such records, for carray."""
    return pointer_to(from_dtype(dtype))


def view(array: npt.NDArray[Any], k: int = 0) -> Any:
    """Record k of an array of records, each field an attribute. The array must live as long."""
    kind: Any = np.ctypeslib.as_ctypes_type(np.dtype((np.void, array.dtype)))  # type: ignore[arg-type]
    return kind.from_buffer(array, k * array.itemsize)


def address(array: npt.NDArray[Any]) -> int:
    """Of the first element. Who owns the memory keeps it in place for as long as the address is used."""
    return int(array.ctypes.data)


FALLBACK = words(
    "policy",  # a MissPolicy
    "hold_timeout_ns",  # age of a value after which `home` stands in, whatever the policy
    "complete_ns",  # when all commands were in hand last
    "grace_until_ns",  # misses until then count for nothing
    "excused",  # of the last miss: it counts for nothing
    "stood_in",  # of the last step: the MissPolicy that stood in, NONE where nothing was missing
)
"""What a run's fallback commands depend on; rtmms.loop.fallback.Fallback fills it."""

ACTUATOR = record(
    ("slope", NUMBER),  # change of the command over the last step that had one; kept only for `extrapolate`
    ("previous", NUMBER),  # the command of the step before
    ("neutral", NUMBER),
    ("lower", NUMBER),  # -inf, inf where there is no limit
    ("upper", NUMBER),
    ("home_step", NUMBER),  # farthest that `home` may move in one step
    ("valued_ns", WORD),  # when it had its last news
    ("since_ns", WORD),  # when it was claimed
    ("held", FLAG),  # claimed, as the exchange reported last
    ("answered", FLAG),  # had a command since it was claimed
    ("missing", MARK),  # 1: to be replaced; OLD: held for too long
)
"""One actuator; its command stands apart, in one piece with those of the others."""

INTERRUPTED, PUBLISHED, RESOLVED = range(3)
"""What a compiled step came to: a signal before anything was done; the state is out, and the rest is for Python; the
command is complete, and where the plant can be stepped so it has been."""

SEND_EVERY_NS = 1_000_000
"""In free mode, a state goes out so often, though the last one was not answered."""


FIRST_NS = 1_000_000_000
"""For a peer that joins, to send its first command: misses until then count neither for limits nor `abort`."""

OLD = 2
"""The mark of what is missing and was held for too long; 1 of the others."""

fallbacks_at, actuators_at = records_at(FALLBACK), records_at(ACTUATOR)


def within(value: float, lower: float, upper: float) -> float:
    """The value, moved to the limit that it is beyond."""
    if value < lower:
        return lower
    if value > upper:
        return upper
    return value


clamp = kernel(within, inline=True)


@kernel(fused=False)
def move_home(actuators: Any, command: Any, mark: int) -> None:
    """`home`: towards neutral, at the limited rate, where `missing` has the mark."""
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing == mark:
            step = actuator.home_step
            command[i] += max(min(actuator.neutral - command[i], step), -step)


@kernel(fused=False)
def extrapolate(actuators: Any, command: Any) -> None:
    """With the last change a step, where missing is 1; all within their limits."""
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing == 1:
            command[i] += actuator.slope
        command[i] = clamp(command[i], actuator.lower, actuator.upper)
        actuator.previous = command[i]  # so that the next good one is not read as one great change


@kernel(fused=False)
def take_complete(now_ns: int, fallbacks: Any, actuators: Any, command: Any) -> None:
    """Every claimed actuator has its command.

    fallbacks  (1,) FALLBACK;  actuators (n,) ACTUATOR;  command (n,) float64, as in all that follow
    """
    memory = fallbacks[0]
    memory.complete_ns, memory.stood_in = now_ns, MissPolicy.NONE
    for i in range(len(actuators)):
        actuators[i].answered = actuators[i].held
    if memory.policy == MissPolicy.EXTRAPOLATE:
        for i in range(len(actuators)):
            actuators[i].slope = command[i] - actuators[i].previous
            actuators[i].previous = command[i]


@kernel(fused=False)
def note_missing(now_ns: int, fallbacks: Any, actuators: Any, fresh: Any, renewed: Any) -> None:
    """Which claimed actuators have no command, when the others had theirs, and whether that counts.

    fresh, renewed   (n,) uint8, see rtmms.loop.ports.Exchange
    """
    owed = False
    for i in range(len(actuators)):
        actuator = actuators[i]
        missing = actuator.held and fresh[i] == 0
        actuator.missing = missing
        if fresh[i] or renewed[i]:
            actuator.valued_ns = now_ns
        renewed[i] = 0
        if fresh[i]:
            actuator.answered = True
        owed = owed or (missing and (actuator.answered or now_ns - actuator.since_ns >= FIRST_NS))
    fallbacks[0].excused = now_ns < fallbacks[0].grace_until_ns or not owed


@kernel(fused=False)
def replace_missing(now_ns: int, fallbacks: Any, actuators: Any, command: Any) -> None:
    """The policy on what is missing, after `note_missing`; `home` on what was held for too long. `abort` holds: a run
    that ends for it does not come here."""
    memory = fallbacks[0]
    memory.stood_in = memory.policy
    if memory.policy == MissPolicy.ABORT:
        memory.stood_in = MissPolicy.HOLD
    old = False
    for i in range(len(actuators)):
        actuator = actuators[i]
        if actuator.missing and now_ns - max(actuator.valued_ns, memory.complete_ns) > memory.hold_timeout_ns:
            actuator.missing = OLD
            old = True
    if memory.policy == MissPolicy.EXTRAPOLATE:
        extrapolate(actuators, command)
    elif memory.policy == MissPolicy.HOME:
        move_home(actuators, command, 1)
    if old:
        move_home(actuators, command, OLD)
        memory.stood_in = MissPolicy.HOME
