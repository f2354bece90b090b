"""Exceptions of rtmms: one class for each kind of fault that a caller may want to distinguish."""

from __future__ import annotations

import difflib
import errno
import os
import re
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

Class = TypeVar("Class")


class RtmmsError(Exception):
    """Fault that rtmms reports on purpose; its text names the place, the expected and the given value."""


class ModelError(RtmmsError, ValueError):
    """Robot, parameter or mechanism that cannot be built as described."""


class UnknownNameError(ModelError):
    """Robot, controller, parameter or channel that does not exist; the text names similar names.

    Parameters
    ----------
    kind : str
        Kind of the object.
    name : str
        The unknown name.
    known : Iterable[str]
        The known names.
    more : str, default ''
        Further hint.

    Attributes
    ----------
    near : list of str
        Similar names.

    Examples
    --------
    >>> print(UnknownNameError("robot", "mantra", ["manta", "eel"]))
    unknown robot 'mantra'; did you mean manta?
    """

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
    """Invalid argument of a plant's method; the plant is unchanged.

    The argument is a command of another shape or type, one that is not finite, or a seed that is no whole number.
    """


class RtmmsWarning(RuntimeWarning):
    """Valid result that may differ from the caller's expectation; the text names the place."""


class RenamedWarning(DeprecationWarning):
    """Use of an old name that goes with the next version; the text has the new one."""


def warn_renamed(owner: str, old: str, new: str, stacklevel: int = 2, owner_now: str = "") -> None:
    """Warn the caller's caller that a member has a new name.

    Parameters
    ----------
    owner : str
        Name of the class.
    old, new : str
        Old and new name of the member.
    stacklevel : int, default 2
        Frames to the code that the warning names; 2 is the caller's caller.
    owner_now : str, default ''
        Name of the class or module that has the member now; '' for the same.
    """
    text = f"{owner}.{old} is {owner_now or owner}.{new} now; the next version removes the old name"
    warnings.warn(text, RenamedWarning, stacklevel=stacklevel + 1)


class Renamed:
    """Member of a class under its old name, with a warning: `old = Renamed("new")`.

    Parameters
    ----------
    new : str
        New name of the member.
    """

    def __init__(self, new: str) -> None:
        self.new, self._old = new, ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the old name."""
        self._old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        """Return the member of the new name, with a warning."""
        if instance is None:
            return self
        warn_renamed(owner.__name__, self._old, self.new)
        return getattr(instance, self.new)

    def __set__(self, instance: Any, value: Any) -> None:
        """Set the member of the new name, with a warning."""
        warn_renamed(type(instance).__name__, self._old, self.new)
        setattr(instance, self.new, value)


def renamed_fields(**names: str) -> Callable[[type[Class]], type[Class]]:
    """Return a decorator of a class that accepts old names of its fields, with a warning.

    Parameters
    ----------
    **names : str
        New name by old name, of keywords of the constructor and of attributes.

    Returns
    -------
    Callable[[type[Class]], type[Class]]
        The decorator, which stands above `@dataclass`.
    """

    def rename(cls: type[Class]) -> type[Class]:
        begin = cls.__init__

        @wraps(begin)
        def initialise(self: Any, *args: Any, **values: Any) -> None:
            for old, new in names.items():
                if old in values:
                    warn_renamed(cls.__name__, old, new)
                    values[new] = values.pop(old)
            begin(self, *args, **values)

        cls.__init__ = initialise  # type: ignore[method-assign]
        for old, new in names.items():
            member = Renamed(new)
            member.__set_name__(cls, old)
            setattr(cls, old, member)
        return cls

    return rename


def rename_class_attribute(cls: type, old: str, new: str) -> None:
    """Move a value that a subclass declares under an old name to the new one, with a warning.

    Parameters
    ----------
    cls : type
        The subclass, in `__init_subclass__` of the class whose attribute has a new name.
    old, new : str
        Old and new name of the attribute.
    """
    if old in vars(cls):
        warn_renamed(cls.__name__, old, new, stacklevel=3)
        setattr(cls, new, vars(cls)[old])
        delattr(cls, old)


class DivergedError(RtmmsError):
    """Divergence: the simulation left the finite numbers, or the range in which its model is valid.

    Parameters
    ----------
    time : float
        End of the step that failed, s, simulated.
    quantity : str
        State that failed first, for example 'left.joint_angle[2, 29]'.
    last_good : dict[str, Any]
        Outputs at the last sound state.
    reason : str, default 'is not finite'
        Failure of the state.
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
    """Return a sentence if the system refused memory, files or room, or a working directory was deleted.

    Parameters
    ----------
    error : BaseException
        Any exception.

    Returns
    -------
    str
        The sentence; empty for any other fault.
    """
    if isinstance(error, MemoryError):
        return "the system has no more memory (see: ulimit -v, free)"
    if isinstance(error, OSError) and error.errno in _LIMITS:
        where = f" for {error.filename}" if error.filename else ""
        return f"the system refused{where}: {error.strerror} (see: {_LIMITS[error.errno]})"
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except FileNotFoundError:
            return "the working directory was deleted; change to a folder that exists (cd)"
        if str(error.strerror).startswith("No usable temporary directory"):
            return f"{error.strerror}: expected one that can be written; name it in TMPDIR"
    return ""


def safe_text(text: object, keep: str = "") -> str:
    r"""Return a foreign value as safe text for a terminal.

    Characters that would move the cursor, change settings, reorder letters or begin a new line are spelled out. So is a
    byte of a file's name that is no UTF-8.

    Parameters
    ----------
    text : object
        The value.
    keep : str, default ''
        Control characters that stay.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> safe_text("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return _CONTROLS.sub(lambda match: match[0] if match[0] in keep else _spelled(match[0]), str(text))


def _spelled(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def uncoloured(fault: BaseException) -> str:
    """Return the text of a fault without terminal colours, which numba writes if colorama is installed.

    Parameters
    ----------
    fault : BaseException
        The exception.

    Returns
    -------
    str
        The text.
    """
    return re.sub(r"\x1b\[[0-9;]*m", "", str(fault))
