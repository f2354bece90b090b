"""How the code of kernels is linked and emitted: machine code only for entries, and each large body optimised twice.

numba emits machine code for each compiled function. It also links the bodies of all functions below into each function
and optimises them again. A kernel that only kernels call needs neither. `rtmms.jit` imports this module, which replaces
numba's class of libraries; the code of an entry stays what numba would make of it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import binding
from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.environment import lookup_environment

PACKAGE = "5rtmms"
"""The package in names that numba gives to compiled functions."""

OURS = f"_ZN{PACKAGE}"
"""Prefix of the names of compiled functions of the package."""

FROM_PYTHON = "_ZN7cpython"
"""Prefix of the functions through which Python enters a compiled function."""

ENTRIES = (FROM_PYTHON, "cfunc.")
"""Prefixes of the functions through which Python or C enters a compiled function."""

ENVIRONMENT = "_ZN08NumbaEnv"
"""Prefix of the variables that hold numba's environments of functions."""

MIN_SEPARATE = 400
"""Lines of LLVM's text from which a function is no candidate for inlining. LLVM inlines some 50 instructions."""


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of one compiled function.

    A kernel without an entry gets machine code when an address in it is asked for, and never otherwise. Large kernels
    that it calls are declared in it, and linked with the entry. An entry has copies of all kernels below, optimised
    with it. As weak symbols of one name those copies would be replaced by the copy that was loaded first: a process
    that compiles would run other copies, rounded otherwise in the last bit, than one that finds all in the cache. So
    each copy has a name of its own.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._linking_libraries: list[KernelLibrary] = []
        self._declared: dict[tuple[str, ...], KernelLibrary] = {}
        """Libraries of the functions that are only declared here, in the order of their calls."""
        self._own: tuple[str, ...] = ()
        """Names of the functions of a kernel without an entry."""
        self._is_deferred = False
        self._is_large = False

    def _defined(self) -> list[Any]:
        return [function for function in self._final_module.functions if not function.is_declaration]

    def _is_inner(self) -> bool:
        """Whether it has a kernel of the package, and no entry."""
        names = [function.name for function in self._defined()]
        return any(name.startswith(OURS) for name in names) and not any(name.startswith(ENTRIES) for name in names)

    def finalize(self) -> None:
        is_inner = self._is_inner()
        linked: list[KernelLibrary] = []
        below: dict[tuple[str, ...], KernelLibrary] = {}
        for library in self._linking_libraries:
            if library._is_large:
                below.setdefault(library._own, library)
            else:
                linked.append(library)
            for own, declared in library._declared.items():
                below.setdefault(own, declared)
        if is_inner:
            self._declared = below
        else:
            linked += below.values()
        self._linking_libraries = linked
        super().finalize()

    def _finalize_final_module(self) -> None:
        if self._is_inner():
            own = [function for function in self._defined() if function.linkage == Linkage.external]
            is_inlined = any(b"alwaysinline" in each for function in own for each in function.attributes)
            self._own = tuple(function.name for function in own)
            self._is_large = not is_inlined and sum(str(each).count("\n") for each in own) > MIN_SEPARATE
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
        """Serialize a kernel without an entry apart from the large ones below it.

        So a process that loads it optimises as often as a process that compiles it, which the last bits depend on.
        """
        self._ensure_finalized()
        if self._own:
            below = [library._state() for library in self._declared.values()]
            return (self.name, "deferred", (self._state(), below))
        state: tuple[str, str, Any] = super().serialize_using_object_code()
        return state

    def _state(self) -> tuple[str, tuple[str, ...], bool, bytes]:
        return self.name, self._own, self._is_large, self._get_module_for_linking().as_bitcode()

    @classmethod
    def _restored(cls, codegen: Any, state: tuple[str, tuple[str, ...], bool, bytes]) -> KernelLibrary:
        name, own, is_large, bitcode = state
        library: KernelLibrary = codegen.create_library(name)
        library._own, library._is_large = own, is_large
        library._final_module = library._shared_module = binding.parse_bitcode(bitcode)
        library._is_deferred = library._finalized = True
        return library

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        _, kind, data = state
        if kind != "deferred":
            return super()._unserialize(codegen, state)
        own, below = data
        library = cls._restored(codegen, own)
        for each in below:
            library._declared[each[1]] = cls._restored(codegen, each)
        return library


_set_env = JITCPUCodegen.set_env


def _set_known(codegen: Any, name: str, environment: Any) -> None:
    """Set an environment where a module that is emitted has its variable; `KernelLibrary._emit` sets it later, else."""
    if codegen._engine.is_symbol_defined(name):
        _set_env(codegen, name, environment)


def install() -> None:
    """Make numba use `KernelLibrary` for all code that is compiled from here on."""
    JITCPUCodegen._library_class = KernelLibrary
    JITCPUCodegen.set_env = _set_known
