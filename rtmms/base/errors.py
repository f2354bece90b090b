"""What rtmms raises: one class for each kind of fault that a caller may want to distinguish."""

from __future__ import annotations

import difflib
import errno
import os
import re
import warnings
from collections.abc import Iterable
from typing import Any


class RtmmsError(Exception):
    """Any fault that rtmms reports on purpose; its text names the place, what was got and what was expected."""


class ModelError(RtmmsError, ValueError):
    """A robot, a parameter or a mechanism that cannot be built as described."""


class UnknownNameError(ModelError):
    """A robot, controller, parameter or channel that does not exist; the text names the near misses,
    and `more`."""

    def __init__(self, kind: str, name: str, known: Iterable[str], more: str = "") -> None:
        known = sorted(known)
        close = set(difflib.get_close_matches(name, known, n=3, cutoff=0.6))
        close |= {k for k in known if k.lower() == name.lower() or (len(name) > 2 and k.startswith(name))}
        near = sorted(close, key=lambda k: (-difflib.SequenceMatcher(None, name, k).ratio(), abs(len(k) - len(name))))[
            :3
        ]
        listed = f"known: {', '.join(known)}" if known else "there is none"
        hint = f"did you mean {' or '.join(near)}?" if near else listed
        super().__init__(f"unknown {kind} '{name}'; {hint}" + (f" ({more})" if more else ""))
        self.kind, self.name, self.near, self.known = kind, name, near, known


class ArgumentError(RtmmsError, ValueError):
    """What a plant's member was handed cannot be: a command of another shape or type, or not finite; a seed that is no
    whole number. Nothing has happened then."""


class RtmmsWarning(RuntimeWarning):
    """A result of ours that holds, but not in the way that the caller may expect; the text names the place."""


class RenamedWarning(DeprecationWarning):
    """An old name of ours that goes with the next version; the text has the new one."""


def warn_renamed(owner: str, old: str, new: str, stacklevel: int = 2) -> None:
    """Warn the caller's caller (`stacklevel` 2) that a member of `owner` has another name now."""
    text = f"{owner}.{old} is {owner}.{new} now; the old name goes with the next version"
    warnings.warn(text, RenamedWarning, stacklevel=stacklevel + 1)


class Renamed:
    """A member of a class under its old name, with a warning: `old = Renamed("new")`."""

    def __init__(self, new: str) -> None:
        self._new, self._old = new, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        warn_renamed(owner.__name__, self._old, self._new)
        return getattr(instance, self._new)


class DivergedError(RtmmsError):
    """The simulation left the finite numbers, or the range in which its model means something.

    time       s         end of the step that failed
    quantity   str       the state that failed first, for example 'left.joint_angle[2, 29]'
    last_good  dict      the outputs at the last state that was sound
    """

    def __init__(self, time: float, quantity: str, last_good: dict[str, Any], reason: str = "is not finite") -> None:
        super().__init__(f"the simulation diverged at t = {time:.6g} s: {quantity} {reason}")
        self.time, self.quantity, self.last_good, self.reason = time, quantity, last_good, reason


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_LIMITS = {
    errno.EFBIG: "ulimit -f", errno.ENOSPC: "df", errno.EMFILE: "ulimit -n", errno.ENFILE: "sysctl fs.file-max",
    errno.ENOMEM: "ulimit -v, free", errno.EAGAIN: "ulimit -u", errno.EDQUOT: "quota",
}  # fmt: skip


def limit_reached(error: BaseException) -> str:
    """A sentence when the system gave no more of something (memory, files, room, a working directory that was
    deleted); '' for any other fault."""
    if isinstance(error, MemoryError):
        return "the system gives no more memory (see: ulimit -v, free)"
    if isinstance(error, OSError) and error.errno in _LIMITS:
        where = f" for {error.filename}" if error.filename else ""
        return f"the system refused{where}: {error.strerror} (see: {_LIMITS[error.errno]})"
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except FileNotFoundError:
            return "the working directory was deleted; cd to one that is there"
        if str(error.strerror).startswith("No usable temporary directory"):
            return f"{error.strerror}: expected one that can be written; name it in TMPDIR"
    return ""


def shown(text: object, keep: str = "") -> str:
    """A value of others as a terminal may have it: what would move the cursor, change settings, reorder letters or
    begin a new line is spelled out, and so is a byte of a file's name that is no UTF-8.

    keep   control characters that stay
    """
    return _CONTROLS.sub(lambda found: found[0] if found[0] in keep else _spelled(found[0]), str(text))


def _spelled(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def uncoloured(fault: BaseException) -> str:
    """Return the text of a fault, without the terminal's colours: numba writes them where colorama is installed."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(fault))
