"""How kernels are compiled: code without an entry, caches with gaps, two processes, and shortcuts in numba."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.core import dispatcher, ir, postproc, typeinfer
from numba.core.compiler import Flags
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig

from rtmms.base import code_library as numba_shortcuts
from rtmms.base import compile_ahead, jit
from rtmms.base.code_library import KernelLibrary
from rtmms.base.spatial import quaternion_columns
from rtmms.mechanism import entry

pytestmark = pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")

KINDS = {"quadrotor": "enter_{}", "snakeboard": "enter_{}_on_ground"}
"""Entries of robots; of these robots rounding shows most easily how often LLVM optimised their kernels."""

PROGRAM = """
import hashlib, json, sys
import numpy as np
import rtmms
from numba.core import event

class Listener(event.Listener):
    names = []
    def on_start(self, event): self.names.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass

with event.install_listener("numba:compile", Listener()):
    plant = rtmms.load(sys.argv[1])
neutral = np.array([channel.neutral for channel in plant.actuators])
digest = hashlib.sha256()
for step in range(200):
    plant.step(neutral + 0.01 * np.sin(0.05 * step + np.arange(len(neutral))))
    digest.update(plant.snapshot())
    digest.update(b"".join(np.ascontiguousarray(value).tobytes() for value in plant.observe().values()))
print(json.dumps([digest.hexdigest(), Listener.names]))
"""


def _run(robot: str, cache: Path, before: str = "") -> tuple[str, list[str]]:
    """Hash of a run's states and outputs, and the names of the kernels that it compiled."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "RTMMS_QUIET": "1"}
    arguments = [sys.executable, "-c", before + PROGRAM, robot]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    digest, names = json.loads(done.stdout)
    return digest, names


@pytest.mark.full
@pytest.mark.parametrize("robot", KINDS)
def test_a_cache_with_gaps_gives_the_same_bits(tmp_path: Path, robot: str) -> None:
    """Whichever kernels come from the cache, and in whichever order two processes compiled them."""
    alone = (
        "import rtmms.base.jit; from contextlib import nullcontext\n"
        "rtmms.base.jit.compile_in_parallel = lambda *_: nullcontext()\n"
    )
    cold, names = _run(robot, tmp_path / "cold", alone)
    assert len(names) > 20
    assert _run(robot, tmp_path / "cold") == (cold, [])
    indices = sorted((tmp_path / "cold").rglob("*.nbi"))
    for k, index in enumerate(indices):
        if not index.name.startswith("inner-") or k % 3 == 0:
            index.unlink()
    gaps, names = _run(robot, tmp_path / "cold", alone)
    assert gaps == cold
    assert len(names) > 5
    kernels = [kernel for kernel in dir(entry) if kernel.startswith("enter_")]
    outputs, step = _entries(robot, kernels)
    ahead = (
        f"from rtmms.base.compile_ahead import compile_from_the_end as c; c({entry.__name__!r}, {outputs!r}, {step!r})"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "ahead")}
    subprocess.run([sys.executable, "-c", ahead], env=environment, check=True)
    helped, names = _run(robot, tmp_path / "ahead", alone)
    assert helped == cold
    assert step in names
    assert not {outputs, "evaluate", "one_step"} & set(names)


def _entries(robot: str, kernels: list[str]) -> tuple[str, str]:
    result = KINDS[robot].format("outputs"), KINDS[robot].format("step")
    assert set(result) <= set(kernels)
    return result


def test_a_kernel_without_an_entry_has_code_when_its_address_is_asked_for() -> None:
    inner = quaternion_columns.get_overload.__self__
    arguments = (types.float64,) * 4
    inner.get_call_template(arguments, {})
    result = inner.overloads[arguments]
    library = result.library
    assert isinstance(library, KernelLibrary)
    name = result.fndesc.mangled_name
    engine = cpu_target.target_context.codegen()._engine
    assert library.get_pointer_to_function("no_such_function") == 0
    library.get_pointer_to_function(name)
    assert engine.is_symbol_defined(name)
    assert library.get_pointer_to_function(name) != 0


def test_a_stored_library_has_the_same_parts() -> None:
    """Own code, and what is only declared in it."""
    inner = quaternion_columns.get_overload.__self__
    arguments = (types.float64,) * 4
    inner.get_call_template(arguments, {})
    result = inner.overloads[arguments]
    result.library._declared[("other",)] = result.library
    try:
        state = result.library.serialize_using_object_code()
    finally:
        del result.library._declared[("other",)]
    restored = KernelLibrary._unserialize(result.library.codegen, state)
    assert restored._function_names == result.library._function_names != ()
    assert [library._function_names for library in restored._declared.values()] == [result.library._function_names]
    assert restored.serialize_using_object_code()[2][0][:3] == state[2][0][:3]


def _flags() -> Iterator[Any]:
    for fastmath in (False, {"contract"}, {"nsz", "contract"}):
        for error_model in ("python", "numpy"):
            for forced in (None, False, True):
                flags = Flags()
                flags.fastmath = fastmath
                flags.error_model = error_model
                if forced is not None:
                    flags.forceinline = forced
                yield flags


def test_flags_compare_as_all_their_values_do() -> None:
    """An option that is set to its default equals one that is not set."""
    every = list(_flags())
    for item in every:
        for other in every:
            assert (item == other) == (item.values() == other.values())
            assert hash(item) == hash(other) or item != other
    assert every[0] != "flags"
    assert hash(every[0]) == hash(tuple(sorted(every[0].values())))
    assert TargetConfig.__eq__ is numba_shortcuts._compare_flags


def test_calls_resolve_as_without_the_shortcut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same function, compiled by plain numba, gives the same code for ints, floats, complex numbers and arrays."""

    def mixed(a: Any, b: Any) -> Any:
        return a * b - a / (b + 2) + abs(a) * np.sqrt(a * a) + max(1, 2) * b

    cases = [(1.5, 2.5), (1 + 2j, 2), (2, 3)]
    with_memory = [njit(error_model=model)(mixed)(*case) for case in cases for model in ("numpy", "python")]
    monkeypatch.setattr(types.Function, "get_call_type", numba_shortcuts._resolve)
    assert [njit(error_model=model)(mixed)(*case) for case in cases for model in ("numpy", "python")] == with_memory


def test_an_overload_that_is_new_is_found() -> None:
    """numba refreshes its registries when a lookup fails; nothing new, and it does not."""
    from numba.extending import overload

    def doubled(x: Any) -> Any:
        return 2 * x

    @njit
    def use(x: Any) -> Any:
        return doubled(x)

    overload(doubled)(lambda x: lambda x: 2 * x)
    assert use(4) == 8


def test_generators_and_object_mode_have_live_variables() -> None:
    @njit
    def count(n: int) -> Iterator[int]:
        for k in range(n):
            stored = k * k
            yield stored + n

    @jit_forced
    def plain(x: Any) -> Any:
        text = str(x)
        return text + text

    assert list(count(4)) == [4, 5, 8, 13]
    assert plain([1]) == "[1][1]"
    assert postproc.PostProcessor.run is numba_shortcuts._process_kernel


def jit_forced(function: Any) -> Any:
    from numba import jit as numba_jit

    return numba_jit(forceobj=True, looplift=False)(function)


@pytest.mark.parametrize("was", [True, False])
def test_the_collector_is_as_before_after_a_compilation(was: bool) -> None:
    observed = []

    def inside(x: Any) -> Any:
        return x + 1

    def compile_and_fail(self: Any, signature: Any) -> Any:
        observed.append(gc.isenabled())
        raise ZeroDivisionError

    before = gc.isenabled()
    try:
        (gc.enable if was else gc.disable)()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(numba_shortcuts, "_compile", compile_and_fail)
            with pytest.raises(ZeroDivisionError):
                njit(inside).compile((types.int64,))
        assert gc.isenabled() is was
        assert observed == [False]
    finally:
        (gc.enable if before else gc.disable)()
    assert dispatcher.Dispatcher.compile is numba_shortcuts._compile_without_collector


def test_variables_are_listed_as_numba_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    scope, place = ir.Scope(None, ir.Loc("f", 1)), ir.Loc("f", 2)
    a, b, c = (ir.Var(scope, name, place) for name in "abc")
    call = ir.Expr.call(a, (b, c), (("k", b),), place)
    pair = ir.Expr.build_tuple([a, b], place)
    for result, expected in (
        (call.list_vars(), [a, b, c, b]), (pair.list_vars(), [a, b]),
        (ir.Assign(call, c, place).list_vars(), [a, b, c, b, c]),
        (ir.SetItem(a, b, c, place).list_vars(), [a, b, c]), (ir.Return(a, place).list_vars(), [a]),
    ):  # fmt: skip
        assert sorted(variable.name for variable in result) == sorted(variable.name for variable in expected)


def test_constraints_of_calls_come_last_and_backwards() -> None:
    class Variable:
        def __init__(self, kind: Any) -> None:
            self.defined, self.type = kind is not None, kind

    class Inferer:
        def __init__(self) -> None:
            kernel = Variable(types.Dispatcher(entry.enter_step))
            self.typevars = {"kernel": kernel, "sum": Variable(types.int64), "open": Variable(None)}

    def call(name: str) -> Any:
        return typeinfer.CallConstraint("out", name, (), {}, None, None)

    calls = [call("kernel"), call("sum"), call("kernel"), call("open")]
    ordered = list(compile_ahead._last_first([*calls, "other"], Inferer()))
    assert ordered == [calls[1], calls[3], "other", calls[2], calls[0]]
