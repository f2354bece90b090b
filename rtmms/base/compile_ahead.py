"""Compilation of a tree's kernels in a second process, from the end, while the first process begins at the start.

Both store each kernel in the cache, and look there before they compile one. So they meet in the middle, whichever is
faster. `rtmms.base.jit.compile_in_parallel` starts the second process; it runs `compile_from_the_end`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from numba.core import errors, typed_passes, typeinfer, types


def _last_first(constraints: list[Any], inferer: Any) -> Iterator[Any]:
    """Yield the constraints of types: those that call no kernel in order, then calls of kernels from last to first."""
    calls = []
    for constraint in constraints:
        if type(constraint) is typeinfer.CallConstraint:
            variable = inferer.typevars[constraint.func]
            if variable.defined and isinstance(variable.type, types.Dispatcher):
                calls.append(constraint)
                continue
        yield constraint
    yield from reversed(calls)


def _propagate(self: Any, inferer: Any) -> list[Exception]:
    """Apply constraints from the end. numba repeats this until no type changes, so that the order changes no type."""
    result: list[Exception] = []
    for constraint in _last_first(self.constraints, inferer):
        try:
            constraint(inferer)
        except (errors.ForceLiteralArg, errors.TypingError) as error:
            result.append(error)
    return result


class _TypingDone(Exception):
    """Signal that all kernels below an entry are compiled."""


def _stop(self: Any, state: Any) -> bool:
    if state.func_id.func_name in _stopped:
        raise _TypingDone
    return bool(_lower(self, state))


_stopped: set[str] = set()
_lower = typed_passes.NativeLowering.run_pass


def compile_from_the_end(module: str, last: str, first: str) -> None:
    """Compile kernels that take an address, and those below them from the one that is called last.

    Parameters
    ----------
    module : str
        Module of the kernels.
    last : str
        Name of the kernel that the first process compiles last.
    first : str
        Name of the kernel that the first process begins with. Only the kernels that it calls are compiled.
    """
    typeinfer.ConstraintNetwork.propagate = _propagate
    typed_passes.NativeLowering.run_pass = _stop
    entries = import_module(module)
    _stopped.add(first)
    with suppress(_TypingDone):
        getattr(entries, first).compile((types.int64,))
    getattr(entries, last).compile((types.int64,))
