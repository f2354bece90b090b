"""Shortcuts in numba's compiler, which change how long it takes and not what it makes.

Two thirds of the time of compiling kernels is numba's own Python. Each shortcut here answers a question from memory
that numba answers from scratch thousands of times. `rtmms.jit` installs them. They use private parts of numba: where a
version has no such part, `install` leaves that version as it is.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any

from llvmlite.binding import ffi
from numba.core import base, cpu, dispatcher, ir, postproc, transforms
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.types import Function
from numba.core.typing import Context


def _compare_flags(self: Any, other: Any) -> Any:
    """Compare the options that one of two sets of flags has set; numba reads all options of both into dictionaries."""
    if self is other:
        return True
    if not isinstance(other, TargetConfig):
        return NotImplemented
    if type(self) is not type(other):
        return self.values() == other.values()
    mine, others = self._values, other._values
    if mine == others:
        return True
    options = self.options
    for name in mine.keys() | others.keys():
        default = options[name].default
        if mine.get(name, default) != others.get(name, default):
            return False
    return True


_hashes: dict[type, int] = {}


def _hash_flags(self: Any) -> int:
    """Hash the names of the options, as numba does: flags change while they are keys."""
    kind = type(self)
    if kind not in _hashes:
        _hashes[kind] = hash(tuple(sorted(kind.options)))
    return _hashes[kind]


_resolve = Function.get_call_type
_calls: dict[int, tuple[Any, dict[Any, list[tuple[Any, Any, Any]]]]] = {}
"""Resolved calls by the function's identity: the function, and for its arguments flags, signature, implementation."""


def _resolve_call(self: Any, context: Any, arguments: Any, keywords: Any) -> Any:
    """Resolve a call of one of numba's own functions or operators once for each kind of arguments and flags."""
    key = id(context), tuple(arguments), tuple(keywords.items()) if keywords else ()
    try:
        known = _calls.setdefault(id(self), (self, {}))[1].setdefault(key, [])
    except TypeError:  # an argument that cannot be hashed
        return _resolve(self, context, arguments, keywords)
    flags = ConfigStack().top_or_none()
    signature: Any
    for used, signature, implementation in known:
        if used == flags:
            self._impl_keys[signature.args] = implementation
            return signature
    signature = _resolve(self, context, arguments, keywords)
    known.append((None if flags is None else flags.copy(), signature, self._impl_keys[signature.args]))
    return signature


_compile = dispatcher.Dispatcher.compile
_depth = 0


def _compile_without_collector(self: Any, signature: Any) -> Any:
    """Compile with Python's garbage collector off: it would look at a growing heap again and again.

    A kernel compiles those that it calls within its own compilation. The collector comes back after the outermost.
    """
    global _depth
    if not gc.isenabled() and not _depth:
        return _compile(self, signature)
    gc.disable()
    _depth += 1
    try:
        return _compile(self, signature)
    finally:
        _depth -= 1
        if not _depth:
            gc.enable()


def _list_variables(self: Any, value: Any) -> list[Any]:
    """List the variables in a value of numba's intermediate representation, in order."""
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        listed: list[Any] = value.list_vars()
        return listed
    if isinstance(value, (list, tuple)):
        members: Any = value
    elif isinstance(value, dict):
        members = value.values()
    else:
        return []
    found: list[Any] = []
    for member in members:
        kind = type(member)
        if kind is ir.Var:
            found.append(member)
        elif kind is ir.Expr:
            found += member.list_vars()
        elif kind not in _LEAVES:
            found += _list_variables(self, member)
    return found


_LEAVES = frozenset((str, int, float, bool, type(None), ir.Loc))
_takes_location: dict[Any, bool] = {}
_has_loc = getattr(base, "_has_loc", None)


def _has_location(function: Any) -> bool:
    """Return whether an implementation has an argument `loc`, looked up once for each function."""
    known = _takes_location.get(function)
    if known is None:
        assert _has_loc is not None
        known = _takes_location[function] = _has_loc(function)
    return known


_process = postproc.PostProcessor.run


def _process_kernel(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Leave out the live variables of each block, which only object mode and generators read.

    numba computes them some eight times for each function.
    """
    flags = ConfigStack().top_or_none()
    if emit_dels or flags is None or flags.enable_pyobject or flags.force_pyobject or self.func_ir.is_generator:
        _process(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = postproc.VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None


def _registered(context: Any) -> int:
    """Count the entries of all registries that a context has installed."""
    counted = 0
    for registry in context._registries:
        counted += sum(len(entries) for entries in vars(registry).values() if type(entries) is list)
    return counted


def _refresh_when_new(refresh: Any) -> Any:
    """Leave a refresh out where no registry has a new entry: numba asks for one with nearly every lookup."""

    def refresh_new(self: Any) -> None:
        contexts = [self, getattr(self, "typing_context", self)]
        if self.__dict__.get("_entries_seen") == [_registered(context) for context in contexts]:
            return
        refresh(self)
        self._entries_seen = [_registered(context) for context in contexts]

    return refresh_new


def install() -> None:
    """Install all shortcuts that this version of numba has a place for."""
    TargetConfig.__eq__ = _compare_flags
    TargetConfig.__hash__ = _hash_flags
    function: Any = Function
    function.get_call_type = _resolve_call
    compiled: Any = dispatcher.Dispatcher
    compiled.compile = _compile_without_collector
    for context in (cpu.CPUContext, Context):
        context.refresh = _refresh_when_new(context.refresh)
    ir.Loc.__deepcopy__ = lambda self, memo: self  # nothing changes a location
    if hasattr(ir.FunctionIR, "get_block_entry_vars"):
        postproc.PostProcessor.run = _process_kernel
    if hasattr(ir.Inst, "_rec_list_vars"):
        ir.Inst._rec_list_vars = _list_variables
    if _has_loc is not None:
        base._has_loc = _has_location
    with suppress(AttributeError):
        # numba measures how long each call of LLVM waits, once for each kernel that is being compiled
        ffi.lib._lock._cblist.clear()
