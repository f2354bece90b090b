"""Linking and emission of kernels' code, and shortcuts in numba's compiler that change no code."""

from __future__ import annotations

import gc
import hashlib
from contextlib import suppress
from typing import Any

from llvmlite import binding
from llvmlite.binding import Linkage, ffi
from numba.core import base, cpu, dispatcher, ir, postproc, transforms
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.environment import lookup_environment
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.core.types import Function
from numba.core.typing import Context

# How the code of kernels is linked and emitted: machine code only for entries, and each large body optimised twice.
#
# numba emits machine code for each compiled function. It also links the bodies of all functions below into each
# function and optimises them again. A kernel that only kernels call needs neither. `rtmms.base.jit` imports this
# module, which replaces numba's class of libraries; the code of an entry stays what numba would make of it.


PACKAGE = "5rtmms"
"""Part of the names of compiled functions for our package."""

OURS = f"_ZN{PACKAGE}"
"""Prefix of the names of compiled functions of the package."""

FROM_PYTHON = "_ZN7cpython"
"""Prefix of the functions through which Python enters a compiled function."""

ENTRIES = (FROM_PYTHON, "cfunc.")
"""Prefixes of the functions through which Python or C enters a compiled function."""

ENVIRONMENT = "_ZN08NumbaEnv"
"""Prefix of the variables that hold numba's environments of functions."""

MIN_SEPARATE_LINES = 400
"""Lines of LLVM's text from which a function is no candidate for inlining. LLVM inlines some 50 instructions."""


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of one compiled function.

    A kernel without an entry gets machine code only when an address in it is requested. Large kernels that it calls are
    declared in it, and linked with the entry. An entry has copies of all kernels below, optimised with it. As weak
    symbols of one name, those copies would be replaced by the copy that was loaded first. Then a process that compiles
    would run other copies, rounded otherwise in the last bit, than a process that finds all in the cache. So each copy
    has its own name.

    Parameters
    ----------
    codegen : Any
        Code generator of numba.
    name : str
        Name of the library.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._linking_libraries: list[KernelLibrary] = []
        self._declared: dict[tuple[str, ...], KernelLibrary] = {}
        """Libraries of the functions that are only declared here, in the order of their calls."""
        self._function_names: tuple[str, ...] = ()
        """Names of the functions of a kernel without an entry."""
        self._is_deferred = False
        self._is_large = False

    def _defined(self) -> list[Any]:
        return [function for function in self._final_module.functions if not function.is_declaration]

    def _is_inner(self) -> bool:
        """Return whether it has a kernel of the package, and no entry."""
        names = [function.name for function in self._defined()]
        return any(name.startswith(OURS) for name in names) and not any(name.startswith(ENTRIES) for name in names)

    def finalize(self) -> None:
        """Link the small libraries, declare the large ones, and finalize."""
        is_inner = self._is_inner()
        linked: list[KernelLibrary] = []
        below: dict[tuple[str, ...], KernelLibrary] = {}
        for library in self._linking_libraries:
            if library._is_large:
                below.setdefault(library._function_names, library)
            else:
                linked.append(library)
            for name, declared in library._declared.items():
                below.setdefault(name, declared)
        if is_inner:
            self._declared = below
        else:
            linked += below.values()
        self._linking_libraries = linked
        super().finalize()

    def _finalize_final_module(self) -> None:
        if self._is_inner():
            external_functions = [function for function in self._defined() if function.linkage == Linkage.external]
            is_inlined = any(b"alwaysinline" in each for function in external_functions for each in function.attributes)
            self._function_names = tuple(function.name for function in external_functions)
            self._is_large = (
                not is_inlined and sum(str(each).count("\n") for each in external_functions) > MIN_SEPARATE_LINES
            )
            self._finalize_dynamic_globals()
            self._is_deferred = self._finalized = True
            return
        functions = self._defined()
        entries = [function.name for function in functions if function.name.startswith(FROM_PYTHON + PACKAGE)]
        if entries:
            tag = hashlib.sha256(entries[0].encode()).hexdigest()[:16]
            for function in functions:
                if function.linkage == Linkage.linkonce_odr and function.name.startswith(OURS):
                    function.name = f"{function.name}.{tag}"
        self._emit()

    def _emit(self) -> None:
        self._is_deferred = False
        super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(ENVIRONMENT) and (environment := lookup_environment(variable.name)):
                self._codegen.set_env(variable.name, environment)

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, and emit machine code if necessary.

        Parameters
        ----------
        name : str
            Name of the function.

        Returns
        -------
        int
            The address; 0 if the library does not have it.
        """
        self._ensure_finalized()
        if self._is_deferred:
            if all(function.name != name for function in self._defined()):
                return 0
            module = self._get_module_for_linking().clone()
            for library in self._declared.values():
                module.link_in(library._get_module_for_linking(), preserve=True)
            self._final_module = module
            self._emit()
        return int(super().get_pointer_to_function(name))

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Return a serialized form; a kernel without an entry is separate from the large ones below it.

        So a process that loads it optimises as often as a process that compiles it. The last bits depend on that.

        Returns
        -------
        tuple[str, str, Any]
            Name, kind and data of the library.
        """
        self._ensure_finalized()
        if self._function_names:
            below = [library._state() for library in self._declared.values()]
            return (self.name, "deferred", (self._state(), below))
        state: tuple[str, str, Any] = super().serialize_using_object_code()
        return state

    def _state(self) -> tuple[str, tuple[str, ...], bool, bytes]:
        return self.name, self._function_names, self._is_large, self._get_module_for_linking().as_bitcode()

    @classmethod
    def _restored(cls, codegen: Any, state: tuple[str, tuple[str, ...], bool, bytes]) -> KernelLibrary:
        name, function_names, is_large, bitcode = state
        library: KernelLibrary = codegen.create_library(name)
        library._function_names, library._is_large = function_names, is_large
        library._final_module = library._shared_module = binding.parse_bitcode(bitcode)
        library._is_deferred = library._finalized = True
        return library

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        _, kind, data = state
        if kind != "deferred":
            return super()._unserialize(codegen, state)
        library_state, below = data
        library = cls._restored(codegen, library_state)
        for each in below:
            library._declared[each[1]] = cls._restored(codegen, each)
        return library


_set_env = JITCPUCodegen.set_env


def _set_known(codegen: Any, name: str, environment: Any) -> None:
    """Set an environment if the emitted module has its variable; otherwise `KernelLibrary._emit` sets it later."""
    if codegen._engine.is_symbol_defined(name):
        _set_env(codegen, name, environment)


def install() -> None:
    """Make numba use `KernelLibrary` for all code that is compiled from here on."""
    JITCPUCodegen._library_class = KernelLibrary
    JITCPUCodegen.set_env = _set_known


# Shortcuts in numba's compiler, which change how long it takes and not what it makes.
#
# Two thirds of the time of compiling kernels is numba's own Python. Each shortcut here answers a question from memory
# that numba answers from scratch thousands of times. `rtmms.base.jit` installs them. They use private parts of numba:
# where a version has no such part, `install` leaves that version as it is.


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
    """Compile with Python's garbage collector off, because it would scan a growing heap repeatedly.

    A kernel compiles those that it calls within its own compilation. The collector is on again after the outermost.
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
    result: list[Any] = []
    for member in members:
        kind = type(member)
        if kind is ir.Var:
            result.append(member)
        elif kind is ir.Expr:
            result += member.list_vars()
        elif kind not in _LEAVES:
            result += _list_variables(self, member)
    return result


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
    """Return a refresh that is left out without a new entry; numba asks for one with nearly every lookup."""

    def refresh_new(self: Any) -> None:
        contexts = [self, getattr(self, "typing_context", self)]
        if self.__dict__.get("_entries_seen") == [_registered(context) for context in contexts]:
            return
        refresh(self)
        self._entries_seen = [_registered(context) for context in contexts]

    return refresh_new


def install_shortcuts() -> None:
    """Install all shortcuts that this version of numba supports."""
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
